"""Text as a terminal finally shows it: without colours, control codes and overwritten frames."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from functools import lru_cache

_ROWS = 24
"""Of the screen: what has scrolled off it stays as it is."""
_FAR = 1_000
"""Columns that a jump reaches. It costs time by the column, and no window is wider."""
_MAX_MARKS = 32
"""Accents on one character."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# The alternatives and the classes in them are disjoint, so that each character is looked at once.
_CODE = r"""
    (?:\x1b\[|\x9b) (?P<arguments>[0-?]*) [ -/]* (?P<csi>[@-~]?)
    | (?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]) [^\x07\n\x1b\x9c]* (?:\x07|\x1b\\|\x9c)?  # title, link
    | \x1b [ -/]* (?P<escape>[0-~]?)
    | (?P<control>[\x00-\x08\x0b-\x1f\x7f-\x9f])
"""
_TOKEN = re.compile(rf"(?P<text>[^\x00-\x08\x0b-\x1f\x7f-\x9f]+) | {_CODE}", re.VERBOSE)
CONTROL_CODE = re.compile(_CODE, re.VERBOSE)
"""Matches one control code as terminals read them: a colour, a title, a carriage return. Tabs and
newlines are none."""


def terminal_text(text: str) -> str:
    """What a terminal finally shows of a text: 24 rows of any width, and what scrolled off them.

    Colours, titles, links and other control codes are gone, and so are frames that were
    overwritten: by a carriage return, a backspace, or a cursor that was moved up or set. Lines end
    in `\\n`. Tabs stay, but in lines where something was overwritten. Takes time in proportion to
    the length.
    """
    if _CONTROL.search(text) is None:
        return text
    text = text.replace("\r\n", "\n")
    if _CONTROL.search(text) is None:
        return text
    screen = _Screen()
    for token in _TOKEN.finditer(text):
        match token.lastgroup:
            case "text":
                screen.write(token[0])
            case "control":
                screen.control(token[0])
            case "csi":
                screen.command(token["csi"], token["arguments"])
            case "escape":
                screen.escape(token["escape"])
            case _:
                pass
    return screen.text()


class _Row:
    """A row and the cursor in it, as two stacks: each step costs as much as the cursor moves.

    A wide character takes two cells, of which the second is empty. A tab takes up to eight, until
    the cursor moves back: what it went over is blanks then.
    """

    __slots__ = ("_blank", "_has_tabs", "_left", "_right", "_was_moved_in")

    def __init__(self) -> None:
        self._blank = 0  # empty cells before `_left`
        self._left: list[str] = []
        self._right: list[str] = []  # the next cell last
        self._has_tabs = False
        self._was_moved_in = False

    @property
    def column(self) -> int:
        return self._blank + len(self._left)

    def text(self) -> str:
        whole = " " * self._blank + "".join(self._left) + "".join(reversed(self._right))
        return whole.rstrip(" ") if self._was_moved_in else whole

    def is_empty(self) -> bool:
        return not self._left and not self._right

    def write(self, text: str) -> None:
        cells = list(text) if _is_narrow(text) else self._cells(text)
        if not cells:
            return
        self._part_wide()
        self._left += cells
        if self._right:
            del self._right[-len(cells) :]
            if self._right and not self._right[-1]:
                self._right[-1] = " "

    def _cells(self, text: str) -> list[str]:
        cells: list[str] = []
        for character in text:
            width = _width(character)
            if width:
                cells += [character, *[""] * (width - 1)]
                continue
            row = cells or self._left
            at = -2 if len(row) > 1 and not row[-1] else -1
            if row and len(row[at]) < _MAX_MARKS:
                row[at] += character
        return cells

    def _part_wide(self) -> None:
        """What overwrites half a wide character leaves a blank for the other half."""
        if self._right and not self._right[-1]:
            self._right[-1] = " "
            if self._left:
                self._left[-1] = " "

    def go(self, column: int) -> None:
        steps = column - self.column
        if not steps:
            return
        self._was_moved_in = True
        if self._has_tabs:
            self._left = _without_tabs(self._left)
            self._has_tabs = False
        if steps < 0:
            kept = max(len(self._left) + steps, 0)
            back = self._left[kept:]
            blanks = -steps - len(back)
            self._right.extend(reversed(back))
            self._right.extend([" "] * blanks)
            del self._left[kept:]
            self._blank -= blanks
        else:
            on = self._right[-steps:]
            self._left.extend(reversed(on))
            self._left.extend([" "] * (steps - len(on)))
            del self._right[-steps:]

    def go_by(self, steps: int) -> None:
        column = self.column
        if steps > 0:
            self.go(max(column, min(column + steps, _FAR)))
        else:
            self.go(max(column + steps, 0))

    def tab(self) -> None:
        steps = 8 - self.column % 8
        if self._was_moved_in:
            self.go_by(steps)
        else:
            self._left += ["\t", *[""] * (steps - 1)]
            self._has_tabs = True

    def erase(self, what: int) -> None:
        """Erase to the end (0), from the beginning (1), or all (2); the cursor stays."""
        self._part_wide()
        if what in {1, 2}:
            self._was_moved_in = True
            self._blank, self._left = self.column, []
        if what == 1 and self._right:
            self._right[-1] = " "
        if what in {0, 2}:
            self._right = []

    def erase_next(self, count: int) -> None:
        self._part_wide()
        count = min(count, len(self._right))
        self._right[len(self._right) - count :] = [" "] * count

    def delete_next(self, count: int) -> None:
        self._part_wide()
        del self._right[max(len(self._right) - count, 0) :]

    def insert(self, count: int) -> None:
        self._part_wide()
        self._right.extend([" "] * min(count, _FAR))


class _Screen:
    def __init__(self) -> None:
        self._gone: list[str] = []
        self._rows = deque([_Row()])
        self._at = 0
        self._saved = (0, 0)

    @property
    def _row(self) -> _Row:
        return self._rows[self._at]

    def text(self) -> str:
        while len(self._rows) > self._at + 1 and self._rows[-1].is_empty():
            self._rows.pop()
        return "\n".join([*self._gone, *(row.text() for row in self._rows)])

    def write(self, text: str) -> None:
        first, *lines = text.split("\n")
        self._write_line(first)
        if len(lines) > _ROWS and self._at + 1 == len(self._rows):
            # All that is on the screen scrolls off, and most of the lines do.
            self._gone += [row.text() for row in self._rows]
            self._gone += lines[:-_ROWS]
            self._rows, self._at = deque([_Row()]), 0
            first, *lines = lines[-_ROWS:]
            self._write_line(first)
        for line in lines:
            self._next_row()
            self._write_line(line)

    def _write_line(self, line: str) -> None:
        first, *columns = line.split("\t")
        self._row.write(first)
        for column in columns:
            self._row.tab()
            self._row.write(column)

    def control(self, code: str) -> None:
        match code:
            case "\v" | "\f" | "\x85":
                self._next_row()
            case "\r":
                self._row.go(0)
            case "\b":
                self._row.go_by(-1)
            case _:
                pass

    def _next_row(self) -> None:
        if self._at + 1 < len(self._rows):
            self._at += 1
            self._row.go(0)
            return
        self._rows.append(_Row())
        if len(self._rows) > _ROWS:
            self._gone.append(self._rows.popleft().text())
        else:
            self._at += 1

    def escape(self, code: str) -> None:
        match code:
            case "7":
                self._saved = (self._at, self._row.column)
            case "8":
                self._go_to(*self._saved)
            case "D" | "E":
                self._next_row()
            case "M":
                self._go_to(self._at - 1, self._row.column)
            case "c":
                self._rows, self._at = deque([_Row()]), 0
            case _:
                pass

    def command(self, code: str, arguments: str) -> None:
        """A control sequence, `ESC [ arguments code` (ECMA-48). Others than these show nothing."""
        if arguments[:1] > ";":
            return  # private: modes, cursor shapes
        first, _, second = arguments.partition(";")
        given = _number(first)
        count = max(given, 1)
        row = self._row
        match code:
            case "A":
                self._go_to(self._at - count, row.column)
            case "B":
                self._go_to(self._at + count, row.column)
            case "C":
                row.go_by(count)
            case "D":
                row.go_by(-count)
            case "E":
                self._go_to(self._at + count, 0)
            case "F":
                self._go_to(self._at - count, 0)
            case "G" | "`":
                row.go_by(count - 1 - row.column)
            case "d":
                self._go_to(count - 1, row.column)
            case "H" | "f":
                self._go_to(count - 1, max(_number(second), 1) - 1)
            case "J":
                self._erase(given)
            case "K":
                row.erase(given)
            case "X":
                row.erase_next(count)
            case "P":
                row.delete_next(count)
            case "@":
                row.insert(count)
            case "s":
                self.escape("7")
            case "u":
                self.escape("8")
            case _:
                pass

    def _go_to(self, row: int, column: int) -> None:
        self._at = min(max(row, 0), _ROWS - 1)
        while len(self._rows) <= self._at:
            self._rows.append(_Row())
        self._row.go_by(column - self._row.column)

    def _erase(self, what: int) -> None:
        """Erase below the cursor (0), above it (1), or all (2, 3)."""
        if what in {0, 2, 3}:
            while len(self._rows) > self._at + 1:
                self._rows.pop()
        if what in {1, 2, 3}:
            for index in range(self._at):
                self._rows[index] = _Row()
        self._row.erase(min(what, 2))


def _without_tabs(cells: list[str]) -> list[str]:
    blanks: list[str] = []
    in_tab = False
    for cell in cells:
        in_tab = cell == "\t" or (in_tab and not cell)
        blanks.append(" " if in_tab else cell)
    return blanks


def _number(digits: str) -> int:
    return int(digits[:6]) if digits[:6].isdecimal() else 0


def _is_narrow(text: str) -> bool:
    return text.isascii() or max(text) < "\u0300"


@lru_cache(maxsize=4096)
def _width(character: str) -> int:
    if character < "\u0300":
        return 1
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
