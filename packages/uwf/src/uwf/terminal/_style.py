"""Words with a style: coloured where a person looks, plain everywhere else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Style = Literal["good", "bad", "warn", "dim", "strong", "name"]

_CODES: dict[Style, str] = {
    "good": "32",
    "bad": "31",
    "warn": "33",
    "dim": "2",
    "strong": "1",
    "name": "36",
}
"""SGR parameters. All are of the terminal's own 16 colours, which it fits to its background."""

STATES: dict[str, Style] = {
    "running": "name",
    "suspended": "warn",
    "interrupted": "warn",
    "completed": "good",
    "failed": "bad",
    "cancelled": "dim",
    "corrupt": "bad",
}
"""How the state of a thread looks."""


@dataclass(frozen=True, slots=True)
class Styled:
    """A text with a style. Nothing in the text is markup: what steers a terminal is escaped."""

    text: str
    style: Style


Words: TypeAlias = str | Styled | Sequence[str | Styled]
"""What is printed: texts, some with a style."""


class Stream(Protocol):
    """Where it is printed."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        ...


def wants_colour(stream: Stream) -> bool:
    """Whether to colour what is printed there.

    Only on a terminal, and not under `TERM=dumb`. `FORCE_COLOR` asks for it anywhere (but `0`),
    and `NO_COLOR` forbids it (no-color.org); either counts when it isn't empty.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced != "0"
    return is_rich_terminal(stream)


def is_rich_terminal(stream: Stream) -> bool:
    """Whether a stream is a terminal that can do more than print lines."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in {"dumb", "unknown"}


def pieces(words: Words) -> list[Styled | str]:
    """The parts of what is printed, one after the other."""
    return [words] if isinstance(words, str | Styled) else list(words)


def render(words: Words, *, colour: bool) -> str:
    """The text as it is printed, escaped, with SGR codes where `colour` is on."""
    return "".join(_render_piece(each, colour=colour) for each in pieces(words))


def _render_piece(piece: Styled | str, *, colour: bool) -> str:
    if isinstance(piece, str):
        return printable(piece)
    text = printable(piece.text)
    return f"\x1b[{_CODES[piece.style]}m{text}\x1b[0m" if colour and text else text


def printable(text: str) -> str:
    """Text that can't steer a terminal: control characters but line ends and tabs are escaped."""
    return "".join(
        each if each.isprintable() or each in "\n\t" else repr(each)[1:-1] for each in text
    )


def printable_name(name: str) -> str:
    """The name of a file on one line, with nothing in it that steers a terminal."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")
