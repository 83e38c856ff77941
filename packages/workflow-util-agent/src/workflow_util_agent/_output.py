"""The output of a command, of which the middle is left out when it is long."""

from __future__ import annotations


class ShortenedOutput:
    """The beginning and the end of a stream, in bounded memory however long it is."""

    def __init__(self, max_bytes: int) -> None:
        self._half = max(max_bytes // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._half:
            self._trim()

    def _trim(self) -> None:
        extra = len(self._tail) - self._half
        if extra > 0:
            self._dropped += extra
            del self._tail[:extra]

    def text(self) -> str:
        """What was kept, as lines; says how much was left out in the middle."""
        self._trim()
        if not self._dropped:
            return _whole_lines((self._head + self._tail).decode("utf-8", "replace"))
        # Cut between characters: continuation bytes are 0b10xxxxxx.
        head = self._head.decode("utf-8", "replace").rstrip("\ufffd")
        tail = self._tail.lstrip(bytes(range(0x80, 0xC0))).decode("utf-8", "replace")
        left_out = f"[… {self._dropped} bytes left out here …]\n"
        return f"{_whole_lines(head)}{left_out}{_whole_lines(tail)}"


def _whole_lines(text: str) -> str:
    text = text.replace("\r\n", "\n")
    return f"{text}\n" if text and not text.endswith("\n") else text
