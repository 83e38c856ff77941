"""Tables in the width that is there; elsewhere one line a row, its cells parted by tabs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TextIO

from uwf.terminal._style import Styled, Words, pieces, printable, render, wants_colour

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_LEAST = 24
"""A folded column of fewer characters can't be read; it gets lines of its own."""

RICH_STYLES = {
    "good": "green",
    "bad": "red",
    "warn": "yellow",
    "dim": "dim",
    "strong": "bold",
    "name": "cyan",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column. One that folds takes what the others leave, and as many lines as it needs."""

    heading: str = ""
    folds: bool = False
    align: Literal["left", "right"] = "left"
    width: int | None = None
    """In characters, for rows that are printed one by one; as wide as its cells otherwise."""


def plain_row(cells: Sequence[Words], *, colour: bool = False) -> str:
    """A row for programs: one line, whatever is in its cells."""
    return "\t".join(render(_flat(each), colour=colour) for each in cells).rstrip("\t")


def print_table(stream: TextIO, columns: Sequence[Column], rows: Sequence[Sequence[Words]]) -> None:
    """Draw a table on a terminal, with the headings if there are any."""
    console = make_console(stream)
    cells = [[_as_text(each) for each in row] for row in rows]
    widths = [
        column.width
        or max((text.cell_len for text in [*_column(cells, n), _heading(column)]), default=0)
        for n, column in enumerate(columns)
    ]
    fixed = sum(w + 2 for w, column in zip(widths, columns, strict=True) if not column.folds)
    folding = [n for n, column in enumerate(columns) if column.folds]
    wanted = sum(min(widths[n], _LEAST) for n in folding)
    if folding and fixed + wanted > console.width:
        _print_stacked(console, columns, widths, cells)
    else:
        console.print(_table(columns, widths, cells))


def make_console(stream: TextIO) -> Console:
    """The terminal as rich draws on it, with colours only where they are wanted."""
    from rich.console import Console

    return Console(
        file=stream,
        color_system="standard" if wants_colour(stream) else None,
        force_terminal=True,
        highlight=False,
    )


def _print_stacked(
    console: Console, columns: Sequence[Column], widths: list[int], rows: list[list[Text]]
) -> None:
    """What folds comes below the rest of its row."""
    from rich.padding import Padding

    firm = [n for n, column in enumerate(columns) if not column.folds]
    for row in rows:
        console.print(
            _table([columns[n] for n in firm], [widths[n] for n in firm], [[row[n] for n in firm]],
                   headings=False)
        )  # fmt: skip
        for n, column in enumerate(columns):
            if column.folds and row[n].plain:
                console.print(Padding(row[n], (0, 0, 0, 4)))


def _table(
    columns: Sequence[Column],
    widths: list[int],
    rows: list[list[Text]],
    *,
    headings: bool = True,
) -> Table:
    from rich.table import Table

    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        header_style="dim",
        show_header=headings and any(column.heading for column in columns),
    )
    for column, width in zip(columns, widths, strict=True):
        table.add_column(
            column.heading,
            justify=column.align,
            overflow="fold",
            no_wrap=not column.folds,
            min_width=None if column.folds else width,
        )
    for row in rows:
        table.add_row(*row)
    return table


def _column(rows: list[list[Text]], number: int) -> list[Text]:
    return [row[number] for row in rows]


def _heading(column: Column) -> Text:
    return _as_text(column.heading)


def _flat(words: Words) -> Words:
    """The words on one line."""
    return [
        Styled(_one_line(each.text), each.style) if isinstance(each, Styled) else _one_line(each)
        for each in pieces(words)
    ]


def _one_line(text: str) -> str:
    return " ".join(text.split()) if any(c in text for c in "\n\t\r") else text


def _as_text(words: Words) -> Text:
    from rich.text import Text

    text = Text()
    for each in pieces(_flat(words)):
        if isinstance(each, str):
            text.append(printable(each))
        else:
            text.append(printable(each.text), RICH_STYLES[each.style])
    return text
