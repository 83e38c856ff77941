"""Tables in the width that is there, and rows for programs."""

import io
import os
import pty
import re
import select

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from uwf.terminal._output import Output
from uwf.terminal._style import Styled, Words
from uwf.terminal._table import Column, print_table

COLUMNS = (Column("id"), Column("state"), Column("task", folds=True))
PROMPT = "Find out which of the modules read the file and say what they make of it."
ROW: list[Words] = ["01KB9Z3V2Q7W8E9R0T1Y2U3I4O", Styled("completed", "good"), PROMPT]
HOSTILE = "[red]x[/red] :boom: \x1b[31my\x1b]8;;http://e\x07 \u202eevil\u2066 \r\nend"


class Terminal:
    """A stream that is a terminal, and what was drawn on it."""

    def __init__(self) -> None:
        self._ours, theirs = pty.openpty()
        self.stream = io.TextIOWrapper(os.fdopen(theirs, "wb", buffering=0), encoding="utf-8")

    def drawn(self) -> str:
        """All that was drawn, the terminal closed."""
        self.stream.flush()
        parts: list[bytes] = []
        while select.select([self._ours], [], [], 0)[0]:
            parts.append(os.read(self._ours, 65_536))
        self.stream.close()
        os.close(self._ours)
        return b"".join(parts).decode().replace("\r\n", "\n")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def draw(monkeypatch: pytest.MonkeyPatch, columns: int, *rows: list[Words]) -> str:
    monkeypatch.setenv("COLUMNS", str(columns))
    terminal = Terminal()
    print_table(terminal.stream, COLUMNS, rows)
    return terminal.drawn()


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_a_table_is_as_wide_as_the_terminal_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    plain = without_colours(draw(monkeypatch, columns, ROW, ROW))
    assert max(map(cell_len, plain.splitlines())) <= columns
    words = plain.split()
    assert words.count("01KB9Z3V2Q7W8E9R0T1Y2U3I4O") == words.count("completed") == 2
    for word in PROMPT.split():
        assert words.count(word) == 2 * PROMPT.split().count(word)


def test_a_column_that_would_be_too_narrow_gets_lines_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = without_colours(draw(monkeypatch, 60, ROW)).splitlines()
    assert lines[0].split() == ["01KB9Z3V2Q7W8E9R0T1Y2U3I4O", "completed"]
    assert lines[1].strip() == "Find out which of the modules read the file and say what"


def test_states_are_coloured_on_a_terminal_but_not_with_no_color_or_a_dumb_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "\x1b[32mcompleted" in draw(monkeypatch, 120, ROW)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in draw(monkeypatch, 120, ROW)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    terminal = Terminal()
    Output(_stream=terminal.stream).table(COLUMNS, [(None, ROW)])
    assert terminal.drawn() == f"{ROW[0]}\tcompleted\t{PROMPT}\n"


def test_no_text_in_a_table_is_markup_or_steers_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = draw(monkeypatch, 400, [HOSTILE, Styled(HOSTILE, "bad"), HOSTILE])
    plain = without_colours(drawn)
    assert plain.count("[red]x[/red] :boom: \\x1b[31my\\x1b]8;;http://e\\x07 \\u202eevil") == 3
    assert "\x1b" not in plain
    assert "\u202e" not in plain


def piped(**options: bool) -> tuple[Output, io.StringIO]:
    stream = io.StringIO()
    return Output(_stream=stream, **options), stream


def test_a_row_that_is_piped_is_one_line_of_whole_cells_between_tabs() -> None:
    output, stream = piped()
    output.table(COLUMNS, [(None, ["a", Styled("b", "bad"), "long " * 100 + "\nend\tof it"])])
    assert stream.getvalue() == "a\tb\t" + "long " * 100 + "end of it\n"


def test_force_color_colours_what_is_piped_and_leaves_its_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    output, stream = piped()
    output.table(COLUMNS, [(None, ["a", Styled("b", "bad"), ""])])
    output.data(None, ["x ", Styled("y", "dim")])
    assert stream.getvalue() == "a\t\x1b[31mb\x1b[0m\nx \x1b[2my\x1b[0m\n"


def test_json_has_one_value_a_row_and_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    output, stream = piped(json=True)
    output.table(COLUMNS, [({"a": 1}, ROW), ({"a": 2}, ROW)])
    assert stream.getvalue() == '{"a":1}\n{"a":2}\n'


@given(st.lists(st.text(), min_size=1))
def test_a_piped_row_is_one_printable_line_with_a_tab_between_two_cells(cells: list[str]) -> None:
    output, stream = piped()
    output.table([Column()] * len(cells), [(None, cells)])
    line = stream.getvalue().removesuffix("\n")
    assert "\n" not in line
    assert line.count("\t") < len(cells)
    assert all(each.isprintable() or each == "\t" for each in line)
