"""The processes that descend from one, and killing them from outside of it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_AGAIN_S = 0.02
_GIVE_UP_S = 2.0  # what is in the kernel for longer (a dead disk) can't be waited for


class ProcessEntry(NamedTuple):
    """A line of the table of processes."""

    pid: int
    parent: int
    session: int
    ended: bool
    """It has ended, and its parent hasn't asked how."""


def kill_family(leader: int) -> None:
    """Kill what descends from a process or is in its session, and then the process itself.

    It is stopped first, so that it starts nothing new, and goes last: while it lives, what it
    adopts stays its descendant.
    """
    _send(leader, signal.SIGSTOP)
    deadline = time.monotonic() + _GIVE_UP_S
    while (family := _family(leader, processes())) and time.monotonic() < deadline:
        for pid in family:
            _send(pid, signal.SIGKILL)
        time.sleep(_AGAIN_S)
    _send(leader, signal.SIGKILL)


def _family(leader: int, entries: Iterable[ProcessEntry]) -> list[int]:
    alive = [each for each in entries if not each.ended and each.pid != leader]
    found = {leader}
    while True:
        more = {each.pid for each in alive if each.parent in found or each.session == leader}
        if more <= found:
            return sorted(found - {leader})
        found |= more


def processes() -> list[ProcessEntry]:
    """All processes that can be seen."""
    return list(from_proc() if os.path.exists("/proc/self/stat") else from_ps())


def from_proc() -> Iterator[ProcessEntry]:
    """The table as Linux keeps it."""
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, IndexError, ValueError):
            # pid (name) state ppid pgrp session …; the name may hold anything, brackets too
            fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
            ended = fields[0] in {b"Z", b"X"}
            yield ProcessEntry(int(name), int(fields[1]), int(fields[3]), ended)


def from_ps() -> Iterator[ProcessEntry]:
    """The table where there is no /proc, as on macOS, whose `ps` doesn't know sessions."""
    command = ["ps", "-A", "-o", "pid=,ppid=,stat="]
    listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        with suppress(OSError, ValueError):
            pid, parent, state = line.split()
            ended = state.startswith("Z")
            yield ProcessEntry(int(pid), int(parent), 0 if ended else os.getsid(int(pid)), ended)


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(OSError):
        os.kill(pid, number)
