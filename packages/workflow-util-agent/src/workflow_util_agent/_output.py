"""The output of a command, of which the middle is left out when it is long."""

from __future__ import annotations

import os
import re
import tempfile
from typing import BinaryIO, Self

from workflow_util_agent._terminal import terminal_text

IN_MEMORY = 256 * 1024
"""Bytes; what is longer goes to a file without a name."""
_BEFORE = 64  # bytes before the end part, to see whether it begins within a control code
_SEQUENCE_BEGINS = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*)?\Z")
_SEQUENCE_ENDS = re.compile(rb"\[?[0-?]*[ -/]*[@-~]")


class ShortenedOutput:
    """The beginning and the end of a stream, in bounded memory however long it is.

    Long output goes to a temporary file. Close it, or use it as a context manager. Where there is
    no room for the file, less of the end is kept, 64 KiB at least.
    """

    def __init__(self, max_bytes: int) -> None:
        self._half = max(max_bytes // 2, 1)
        self._kept = _Bytes()
        self._after: bytearray | None = None  # what came when there was no room for the file
        self._room = 0
        self.size = 0
        """Bytes that came."""
        self.left_out = 0
        """Bytes that the `text` is without."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Forget what was kept."""
        self._kept.close()

    @property
    def is_long(self) -> bool:
        """Whether making the text of it takes a while."""
        return self.size > IN_MEMORY

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        if self._after is None:
            try:
                self._keep(data)
            except OSError:
                self._after = bytearray()
                self._room = min(self.size, 2 * self._half)
        if self._after is not None:
            self._after += data
            if len(self._after) > 2 * IN_MEMORY:
                del self._after[: -IN_MEMORY // 4]
        self.size += len(data)

    def _keep(self, data: bytes) -> None:
        """The first half stays where it is; what follows goes round in a ring behind it."""
        ring = self._half + _BEFORE
        view, at = memoryview(data), self.size
        if (room := self._half - at) > 0:
            self._kept.write(at, view[:room])
            at, view = at + len(view[:room]), view[room:]
        if len(view) > ring:
            at, view = at + len(view) - ring, view[-ring:]
        while view:
            start = (at - self._half) % ring
            part = view[: ring - start]
            self._kept.write(self._half + start, part)
            at, view = at + len(part), view[len(part) :]

    def text(self) -> str:
        """What was kept, as lines, as a terminal would show it; says how much was left out."""
        head, before, tail = self._parts()
        self.left_out = dropped = self.size - len(head) - len(tail)
        if not dropped:
            return _lines(head + tail)
        if _SEQUENCE_BEGINS.search(before) and (code := _SEQUENCE_ENDS.match(tail)):
            tail = tail[code.end() :]
        # Cut between characters: continuation bytes are 0b10xxxxxx.
        head = _without_half_a_character(head)
        tail = tail.lstrip(bytes(range(0x80, 0xC0)))
        return f"{_lines(head)}[… {dropped} bytes left out here …]\n{_lines(tail)}"

    def _parts(self) -> tuple[bytes, bytes, bytes]:
        """The beginning, a few bytes before the end part, and the end part."""
        if self._after is not None:
            length = min(self._half, self._room)
            return self._kept.read(0, length), b"", bytes(self._after)
        half, ring = self._half, self._half + _BEFORE
        head = self._kept.read(0, min(half, self.size))
        length = min(max(self.size - half, 0), ring)
        end = (self.size - half) % ring if length == ring else length
        rest = self._kept.read(half + end, length - end) + self._kept.read(half, end)
        cut = max(len(rest) - half, 0)
        return head, rest[:cut], rest[cut:]


class _Bytes:
    """Bytes by position: in memory, or in a file if they are many."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._file: BinaryIO | None = None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, at: int, data: memoryview) -> None:
        if self._file is None and at + len(data) <= IN_MEMORY:
            self._memory.extend(bytes(max(at - len(self._memory), 0)))
            self._memory[at : at + len(data)] = data
            return
        if self._file is None:
            file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by `close`
            try:
                _write(file, 0, memoryview(bytes(self._memory)))
            except OSError:
                file.close()
                raise
            self._file, self._memory = file, bytearray()
        _write(self._file, at, data)

    def read(self, at: int, size: int) -> bytes:
        if self._file is None:
            return bytes(self._memory[at : at + size])
        parts: list[bytes] = []
        while size > 0 and (part := os.pread(self._file.fileno(), size, at)):
            parts.append(part)
            at, size = at + len(part), size - len(part)
        return b"".join(parts)


def _write(file: BinaryIO, at: int, data: memoryview) -> None:
    while data:
        written = os.pwrite(file.fileno(), data, at)
        at, data = at + written, data[written:]


def _without_half_a_character(data: bytes) -> bytes:
    """The bytes without the first ones of a character whose others were cut off."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            wanted = 2 + (byte >= 0xE0) + (byte >= 0xF0)
            return data if wanted == back else data[:-back]
        if byte < 0x80:
            break
    return data


def _lines(data: bytes) -> str:
    text = terminal_text(data.decode("utf-8", "replace"))
    return f"{text}\n" if text and not text.endswith("\n") else text
