"""What a command prints: data on stdout, the rest on stderr, JSON lines where asked for."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import TextIO

import msgspec


@dataclass(frozen=True, slots=True)
class Output:
    """Prints for people, or with `json` one JSON value a line for programs."""

    json: bool = False
    traceback: bool = False
    """Show the whole traceback of what failed."""
    _stream: TextIO = field(default_factory=lambda: sys.stdout)
    """Standard output as it is now, whatever stands in for it while a thread runs."""

    def data(self, value: object, text: str) -> None:
        """Print a command's result: `value` for programs, `text` for people."""
        self._print(to_json(value) if self.json else printable(text))

    def record(self, value: object) -> None:
        """Print one JSON line of several; nothing for people, who have the progress view."""
        if self.json:
            self._print(to_json(value))

    def raw(self, data: bytes) -> None:
        """Print bytes as they are."""
        self._stream.buffer.write(data)
        self._stream.buffer.flush()

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)

    def say(self, text: str) -> None:
        """Tell people something beside the result."""
        print(printable(text), file=sys.stderr, flush=True)


def to_json(value: object) -> str:
    """One line of JSON. What is no UTF-8, such as an odd file name, is escaped."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value))


def printable(text: str) -> str:
    """Text that can't steer a terminal: control characters but line ends and tabs are escaped."""
    return "".join(
        each if each.isprintable() or each in "\n\t" else repr(each)[1:-1] for each in text
    )


def pretty(data: bytes | str) -> str:
    """JSON text, indented for people."""
    return json.dumps(json.loads(data), indent=2, ensure_ascii=False)


def age(ms: int, now_ms: int) -> str:
    """How long ago a time was, in its largest unit."""
    seconds = max(0, now_ms - ms) // 1000
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"


def size(count: int) -> str:
    """Bytes in decimal units."""
    return f"{count / 1e9:.2f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
