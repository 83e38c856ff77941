"""Texts in the columns of a terminal: Chinese characters, say, take two, and accents none."""

from __future__ import annotations

HANGING = 2
"""How much further the rest of a broken line stands in."""
_LEAST = 8
"""Narrower than this nothing can be read; it is left to the terminal."""


def flatten(text: str) -> str:
    """All of a text on one line, safe to print: control characters become spaces."""
    return "".join(c if c.isprintable() else " " for c in text).rstrip()


def fit(text: str, columns: int) -> str:
    """One line of at most so many columns, safe to print."""
    flat = flatten(text)
    if _fitting(flat, columns) == len(flat):
        return flat
    return f"{flat[: _fitting(flat, columns - 1)]}…" if columns > 0 else ""


def columns_of(text: str) -> int:
    """How many columns a line takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def hang(line: str, indent: int, width: int | None) -> list[str]:
    """Break a line for where it begins at `indent`; what follows stands under its own text.

    Args:
        line: safe to print. Its leading spaces are its own indent, such as that of JSON.
        indent: the columns before it.
        width: columns of the terminal; `None` breaks nothing.
    """
    if width is None:
        return [line]
    own = len(line) - len(line.lstrip(" "))
    room = max(_LEAST, width - indent - own - HANGING)
    rows = split_columns(line[own:], room)
    return [f"{' ' * (own + (HANGING if at else 0))}{row}" for at, row in enumerate(rows)]


def split_columns(text: str, width: int) -> list[str]:
    """Break a text into rows of at most so many columns, at spaces where there are some."""
    rows: list[str] = []
    while text:
        end = max(1, _fitting(text, width))
        if end < len(text):
            space = text.rfind(" ", 0, end + 1)
            if space > 0 and text[:space].strip():
                end = space
        rows.append(text[:end].rstrip() if end < len(text) else text)
        text = text[end:].lstrip(" ") if end < len(text) else ""
    return rows or [""]


def _fitting(text: str, width: int) -> int:
    """How many characters fit into so many columns."""
    if text.isascii():
        return min(len(text), max(0, width))
    from rich.cells import get_character_cell_size

    columns = 0
    for at, character in enumerate(text):
        columns += get_character_cell_size(character)
        if columns > width:
            return at
    return len(text)
