"""Limits for all processes of a command together: control groups of Linux, versions 2 and 1.

A group is made beside or below the one that this process is in, wherever that is allowed: as root,
in a container that may write its groups, or in a systemd unit with `Delegate=`. Nothing else binds
the processes of root. Whether it works is found out by trying it, once.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Literal

import msgspec

Hit = Literal["memory", "processes"]

_REMOVE_S = 0.5  # version 1 needs a moment after its last process
_number = count()


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What all processes of a command may have together."""

    memory_bytes: int
    """What they hold, with the files that they keep in a tmpfs."""
    processes: int
    """How many there may be at a time; a thread counts as one."""


class GroupParent(msgspec.Struct, frozen=True):
    """A group that groups can be made in, and the names of their files."""

    folder: str
    memory: str = ""
    """The file for a limit in bytes."""
    swap: str = ""
    """The file that keeps a group from swapping instead, where swap is counted."""
    kills: str = ""
    """The file that counts what was killed for want of memory, as `oom_kill N`."""
    counts: bool = False
    """Whether it limits processes: `pids.max`, and `pids.events` with `max N`."""


class LimitedGroup:
    """A control group for one command. Close it when the command has ended."""

    def __init__(self, parents: Sequence[GroupParent], limits: Limits) -> None:
        name = f"uwf-{os.getpid()}-{next(_number)}"
        self._parents = {os.path.join(parent.folder, name): parent for parent in parents}
        try:
            for folder, parent in self._parents.items():
                os.mkdir(folder)
                if parent.memory:
                    _write(f"{folder}/{parent.memory}", limits.memory_bytes)
                    with suppress(FileNotFoundError):
                        swap = 0 if "swap" in parent.swap else limits.memory_bytes
                        _write(f"{folder}/{parent.swap}", swap)
                if parent.counts:
                    _write(f"{folder}/pids.max", limits.processes)
        except OSError:
            self.close()
            raise

    @property
    def joins(self) -> list[str]:
        """The files into which a process writes 0 to be in the group."""
        return [f"{folder}/cgroup.procs" for folder in self._parents]

    def hits(self) -> list[Hit]:
        """The limits that were reached."""
        found: list[Hit] = []
        for folder, parent in self._parents.items():
            if parent.kills and _count(f"{folder}/{parent.kills}", "oom_kill"):
                found.append("memory")
            if parent.counts and _count(f"{folder}/pids.events", "max"):
                found.append("processes")
        return sorted(found)

    def kill(self) -> None:
        """Kill what is in it, whatever its session and its parent."""
        for file in self.joins:
            for line in _lines(file):
                with suppress(OSError, ValueError):
                    os.kill(int(line), signal.SIGKILL)

    def remove(self) -> bool:
        """Remove it if nothing is in it any more; whether it is gone."""
        removed = [_removed(folder) for folder in self._parents]
        return all(removed)

    def close(self) -> None:
        """Kill what is left in it, and remove it."""
        for folder in self._parents:
            deadline = time.monotonic() + _REMOVE_S
            while not _removed(folder) and time.monotonic() < deadline:
                self.kill()
                time.sleep(0.002)


def limited_group(limits: Limits) -> LimitedGroup | None:
    """A new group with these limits; none where groups can't be made."""
    if not (parents := group_parents()):
        return None
    try:
        return LimitedGroup(parents, limits)
    except OSError:
        return None


def limits_work() -> bool:
    """Whether limits for all processes of a command can be held here."""
    return bool(group_parents())


@cache
def group_parents() -> tuple[GroupParent, ...]:
    """Where groups with both limits can be made and joined; nothing if they can't."""
    mounts, own = _lines("/proc/self/mountinfo"), _lines("/proc/self/cgroup")
    for kinds in (("",), ("memory", "pids")):
        found: list[GroupParent] = []
        for kind in kinds:
            makers = (parent_of_kind(folder, kind) for folder in candidates(mounts, own, kind))
            found += [next((maker for maker in makers if _works(maker)), GroupParent(""))]
        if all(parent.folder for parent in found):
            for parent in found:
                _remove_stale(parent.folder)
            return tuple(found)
    return ()


def parent_of_kind(folder: str, kind: str) -> GroupParent:
    """A folder of a controller of version 1, or of version 2 if that is empty."""
    if kind == "pids":
        return GroupParent(folder, counts=True)
    if kind == "memory":
        return GroupParent(
            folder,
            memory="memory.limit_in_bytes",
            swap="memory.memsw.limit_in_bytes",  # of both together
            kills="memory.oom_control",
        )
    return GroupParent(
        folder, memory="memory.max", swap="memory.swap.max", kills="memory.events", counts=True
    )


def candidates(mounts: Sequence[str], own: Sequence[str], kind: str) -> Iterator[str]:
    """The group that this process is in, then those above it.

    Args:
        mounts: the lines of `/proc/self/mountinfo`.
        own: the lines of `/proc/self/cgroup`.
        kind: a controller of version 1, or nothing for version 2.
    """
    group = next((path for kinds, path in map(_group, own) if kind in kinds.split(",")), None)
    for line in mounts:
        left, _, right = line.partition(" - ")
        _, _, _, root, place, *_ = left.split(" ")
        system, _, options = right.split(" ", 2)
        fits = (
            system == "cgroup2" if not kind else system == "cgroup" and kind in options.split(",")
        )
        if not fits or group is None:
            continue
        path = PurePosixPath(group)
        inside = path.relative_to(root) if path.is_relative_to(root) else PurePosixPath()
        for folder in (inside, *inside.parents) if inside.parts else (inside,):
            yield os.path.normpath(f"{place}/{folder}")
        return


def _group(line: str) -> tuple[str, str]:
    _, kinds, path = line.split(":", 2)
    return kinds, path


def _works(parent: GroupParent) -> bool:
    limits = Limits(memory_bytes=1 << 30, processes=100)
    try:
        group = LimitedGroup([parent], limits)
    except OSError:
        return False
    try:
        script = 'for file; do echo 0 > "$file" || exit 1; done'
        tried = subprocess.run(
            ["/bin/sh", "-c", script, "sh", *group.joins],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=5,
            check=False,
        )
        return tried.returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
    finally:
        group.close()


def _remove_stale(folder: str) -> None:
    """Remove the groups that killed engines have left. One that is in use can't be removed."""
    for name in os.listdir(folder):
        pid = name.split("-")[1] if name.startswith("uwf-") and name.count("-") == 2 else ""
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            _removed(f"{folder}/{name}")


def _removed(folder: str) -> bool:
    try:
        os.rmdir(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _write(file: str, value: int) -> None:
    fd = os.open(file, os.O_WRONLY)  # without making it: the controller may be off
    try:
        os.write(fd, str(value).encode())
    finally:
        os.close(fd)


def _lines(file: str) -> list[str]:
    try:
        return Path(file).read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []


def _count(file: str, name: str) -> int:
    values = (line.split(" ") for line in _lines(file))
    return next((int(value[1]) for value in values if value[0] == name), 0)
