"""Reading one file of a folder: never through a link, and noticing who writes it meanwhile."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Generator
from typing import Literal

from workflow_cas import Stored, content
from workflow_protocol import Hash
from workflow_workspace.versions._known import KnownItem, is_clean, stat_key
from workflow_workspace.versions._options import Choice, credentials_in
from workflow_workspace.versions._records import Reason, VersionEntry

PART_BYTES = 1024 * 1024
"""Larger files are kept in parts of this size, so that no commit waits long for one."""
_TRIES = 3
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NO_ATIME = getattr(os, "O_NOATIME", 0)

Gone = Literal["gone"]


def left_out(state: os.stat_result, reason: Reason) -> KnownItem:
    """What is there but not kept."""
    entry = VersionEntry(kind="left_out", reason=reason)
    return KnownItem(stat_key(state), entry, False, reason != "unreadable")


def read_link(folder_fd: int, name: str, state: os.stat_result) -> KnownItem | Gone:
    """A link, as a link."""
    read_at_ns = time.time_ns()
    try:
        target = os.readlink(name, dir_fd=folder_fd)
    except OSError:
        return "gone"
    key = stat_key(state)
    return KnownItem(
        key, VersionEntry(kind="link", target=target), False, is_clean(key, read_at_ns)
    )


def read_file(
    folder_fd: int,
    name: str,
    state: os.stat_result,
    choice: Choice,
    put: Callable[[Stored], Hash],
    *,
    wanted: bool,
) -> KnownItem | Gone:
    """A regular file; `put` gets its contents.

    Args:
        wanted: the user wants it, even if it looks like a private key.
    """
    for number in range(_TRIES):
        read_at_ns = time.time_ns()
        try:
            fd = _open(folder_fd, name)
        except OSError as error:
            return _not_opened(error, state)
        with open(fd, "rb", buffering=0) as file:
            before = os.fstat(fd)
            if not stat.S_ISREG(before.st_mode):
                return "gone"  # something else has taken the name: the next scan finds it
            if before.st_size > choice.options.max_file_bytes:
                return left_out(before, "too large")
            reading = _Reading(fd, choice, put, wanted=wanted)
            try:
                found = reading.whole(before.st_size)
            except OSError:
                return left_out(before, "unreadable")
            after = stat_key(os.fstat(fd))
            del file
        steady = after == stat_key(before)
        if steady or number == _TRIES - 1:
            return _item(found, before, steady=steady, read_at_ns=read_at_ns)
    raise AssertionError("the last try returns")


def _item(
    found: tuple[tuple[Hash, ...], int] | Reason,
    state: os.stat_result,
    *,
    steady: bool,
    read_at_ns: int,
) -> KnownItem:
    key = stat_key(state)
    if isinstance(found, str):
        entry = VersionEntry(kind="left_out", reason=found)
    else:
        parts, size = found
        entry = VersionEntry(
            kind="file", mode=state.st_mode & 0o777, size=size, parts=parts, changed=not steady
        )
    return KnownItem(key, entry, False, steady and is_clean(key, read_at_ns))


class _Reading:
    """One reading of an open file."""

    def __init__(
        self, fd: int, choice: Choice, put: Callable[[Stored], Hash], *, wanted: bool
    ) -> None:
        self._fd = fd
        self._choice = choice
        self._put = put
        self._wanted = wanted

    def whole(self, size: int) -> tuple[tuple[Hash, ...], int] | Reason:
        """The parts and how many bytes they are, or why there are none."""
        if size <= PART_BYTES:
            data = os.read(self._fd, size + 1)
            if len(data) <= PART_BYTES and (len(data) <= size or not os.read(self._fd, 1)):
                return self._reason(data) or ((self._put(content(data)),), len(data))
            os.lseek(self._fd, 0, os.SEEK_SET)
        return self._in_parts()

    def _in_parts(self) -> tuple[tuple[Hash, ...], int] | Reason:
        """All is looked through before any of it is kept; a secret may lie across two parts."""
        overlap = max(self._choice.longest_secret, 512)
        before = b""
        for data in self._parts():
            if (reason := self._reason(before + data)) is not None:
                return reason
            before = data[-overlap:]
        os.lseek(self._fd, 0, os.SEEK_SET)
        parts: list[Hash] = []
        size, before = 0, b""
        for data in self._parts():
            if (reason := self._reason(before + data)) is not None:
                return reason
            parts.append(self._put(content(data)))
            size += len(data)
            before = data[-overlap:]
            if size > self._choice.options.max_file_bytes:
                return "too large"
        return tuple(parts), size

    def _parts(self) -> Generator[bytes]:
        while data := _read_up_to(self._fd, PART_BYTES):
            yield data

    def _reason(self, data: bytes) -> Reason | None:
        if self._choice.holds_secret(data):
            return "configured key"
        return None if self._wanted else credentials_in(data)


def _read_up_to(fd: int, size: int) -> bytes:
    data = os.read(fd, size)
    while data and len(data) < size and (more := os.read(fd, size - len(data))):
        data += more
    return data


def _open(folder_fd: int, name: str) -> int:
    if _NO_ATIME:
        try:
            return os.open(name, _READ | _NO_ATIME, dir_fd=folder_fd)
        except PermissionError:  # only the owner may ask for it
            pass
    return os.open(name, _READ, dir_fd=folder_fd)


def _not_opened(error: OSError, state: os.stat_result) -> KnownItem | Gone:
    if error.errno in {errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EMLINK}:
        return "gone"
    if error.errno in {errno.ENXIO, errno.ENODEV}:
        return left_out(state, "not a file")
    return left_out(state, "unreadable")
