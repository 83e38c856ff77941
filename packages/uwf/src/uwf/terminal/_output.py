"""What a command prints: data on stdout, the rest on stderr, JSON lines where asked for."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TextIO

import msgspec

from uwf.terminal._style import Words, is_rich_terminal, render, wants_colour
from uwf.terminal._table import Column, plain_row, print_table

_COLUMNS = 80
"""Of a terminal that does not tell."""


@dataclass(frozen=True, slots=True)
class Output:
    """Prints for people, or with `json` one JSON value a line for programs."""

    json: bool = False
    traceback: bool = False
    """Show the whole traceback of what failed."""
    _stream: TextIO = field(default_factory=lambda: sys.stdout)
    """Standard output as it is now, whatever stands in for it while a thread runs."""

    @property
    def width(self) -> int | None:
        """The columns of the terminal that the result goes to; `None` where that is none."""
        return terminal_columns(self._stream) if self._stream.isatty() else None

    def data(self, value: object, text: Words) -> None:
        """Print a command's result: `value` for programs, `text` for people."""
        self._print(
            to_json(value) if self.json else render(text, colour=wants_colour(self._stream))
        )

    def table(
        self, columns: Sequence[Column], rows: Iterable[tuple[object, Sequence[Words]]]
    ) -> None:
        """Print rows: for each the value for programs, and its cells for people.

        On a terminal it is a table in the terminal's width. Elsewhere each row is one line, whole,
        with tabs between its cells and without the headings; it is printed when it comes.
        """
        if not self.json and is_rich_terminal(self._stream):
            if drawn := [cells for _, cells in rows]:
                print_table(self._stream, columns, drawn)
            return
        colour = wants_colour(self._stream)
        for value, cells in rows:
            self._print(to_json(value) if self.json else plain_row(cells, colour=colour))

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

    def say(self, text: Words) -> None:
        """Tell people something beside the result."""
        print(render(text, colour=wants_colour(sys.stderr)), file=sys.stderr, flush=True)


def terminal_columns(stream: TextIO) -> int:
    """The columns of the terminal that a stream goes to; `COLUMNS` counts first, as elsewhere."""
    if not os.environ.get("COLUMNS", "").isdigit():
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
    return shutil.get_terminal_size().columns


def to_json(value: object) -> str:
    """One line of JSON. What is no UTF-8, such as an odd file name, is escaped."""
    try:
        return msgspec.json.encode(value).decode()
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value))


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
