"""Exact find and replace in the text of a file. Pure.

The model sees lines that end in `\\n`; the file keeps what it has: its encoding and byte order
mark, each untouched line ending, a missing newline at the end. Text is never matched loosely: what
doesn't occur exactly is refused, with the nearest place.
"""

from __future__ import annotations

import bisect
import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

import msgspec

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace._encoding import Text, ending_of, with_newlines
from workflow_util_agent import CONTROL_CODE, terminal_text

_MAX_NEAR_LINES = 5_000
_MAX_NEAR_WIDTH = 400
_MAX_DIFFED = 200
_MAX_DIFF_LINES = 24
_MAX_COMPARED = 60_000
_MAX_PLACES = 10_000


class Edit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Exact text to find, and the text to put in its place."""

    old: str
    new: str
    replace_all: bool = False


class PatchError(ToolError):
    """An edit doesn't fit the file. Nothing was changed."""


class Patched(msgspec.Struct, frozen=True):
    """The file's new bytes, and the lines (in the new file, from 1) where each change begins."""

    data: bytes
    lines: tuple[int, ...]


def apply_edits(file: Text, edits: Sequence[Edit]) -> Patched:
    """Apply the edits one after the other; each sees what the ones before it made.

    Raises:
        PatchError: one of them doesn't fit, or would mix encodings. All or nothing: there is no
            result then.
    """
    if not file.is_known and file.mark:
        raise PatchError(f"the file is not valid {file.encoding}, so it can't be changed safely")
    text = file.text
    lines: list[int] = []
    for number, edit in enumerate(edits, start=1):
        try:
            if not file.is_known:
                _must_not_mix(edit)
            text, lines = _apply(text, edit, lines)
        except PatchError as error:
            if len(edits) == 1:
                raise
            raise PatchError(f"edit {number} of {len(edits)}: {error}; nothing changed") from None
    return Patched(_encode(file, text), tuple(lines))


def _must_not_mix(edit: Edit) -> None:
    if any(not character.isascii() and character not in edit.old for character in edit.new):
        raise PatchError(
            "the file is not UTF-8 and its encoding is not known, so text beyond ASCII would mix "
            "two encodings in it; use ASCII only, or make it UTF-8 first with shell_exec and "
            "iconv -f ENCODING -t UTF-8"
        )


def _encode(file: Text, text: str) -> bytes:
    try:
        return file.encode(text)
    except UnicodeEncodeError as error:
        raise PatchError(
            f"the file is {file.encoding}, which has no {text[error.start]!r}; use other "
            "characters, or write the whole file with write_file, which makes it UTF-8"
        ) from None


def _apply(text: str, edit: Edit, lines: list[int]) -> tuple[str, list[int]]:
    ending = ending_of(text)
    old, new = with_newlines(edit.old, ending), with_newlines(edit.new, ending)
    if not old:
        raise PatchError(
            "old is empty; give the exact text to replace, or use write_file for a whole file"
        )
    if old == new:
        raise PatchError("old and new are the same, so there is nothing to change")
    if "\0" in new and "\0" not in text:
        raise PatchError("new has a null character, which would make it a binary file")
    view = _View(text)
    spans = view.places(old, edit)
    if not spans and CONTROL_CODE.search(text):
        view = _View(text, without_codes=True)
        spans = view.places(old, edit)
    if not spans:
        raise PatchError(_no_match(view.shown, old))
    if len(spans) > 1 and not edit.replace_all:
        raise PatchError(_ambiguous([view.line(start) for start in spans]))
    if len(spans) > _MAX_PLACES:
        raise PatchError(f"old occurs more than {_MAX_PLACES} times; use shell_exec with sed")
    more = new.count("\n") - old.count("\n")
    places = [view.line(start) for start in spans]
    moved = [line + more * bisect.bisect_left(places, line) for line in lines]
    changed = [line + more * index for index, line in enumerate(places)]
    return view.replace(spans, old, new), sorted({*moved, *changed})


class _View:
    """A text as the model sees it, lines ending in `\n`, with the way back to the original.

    Args:
        text: the text with its own line endings.
        without_codes: leave out control codes, as `read_file` does. They stay where they are, but
            for those within what is replaced.
    """

    def __init__(self, text: str, *, without_codes: bool = False) -> None:
        self._whole = text
        self._codes: list[int] = []  # where in `_text` something is left out, and how much so far
        self._left_out: list[int] = [0]
        self._text = self._without_codes(text) if without_codes else text
        self._lone = "\r" if ending_of(text) == "\r" else "\n"
        self.shown = with_newlines(self._text, self._lone)
        # Where in `shown` the newlines are that stand for two characters.
        self._wide = [
            match.start() - index for index, match in enumerate(re.finditer("\r\n", self._text))
        ]
        self._newlines = [match.start() for match in re.finditer("\n", self.shown)]

    def _without_codes(self, text: str) -> str:
        pieces: list[str] = []
        done = size = 0
        for start, end in _not_shown(text):
            pieces.append(text[done:start])
            size += start - done
            done = end
            self._codes.append(size)
            self._left_out.append(done - size)
        return "".join([*pieces, text[done:]])

    def places(self, old: str, edit: Edit) -> list[int]:
        """Where the old text occurs, a few too many at most."""
        return list(islice(self._find(old, overlapping=not edit.replace_all), _MAX_PLACES + 1))

    def _find(self, old: str, *, overlapping: bool) -> Iterator[int]:
        start = self.shown.find(old)
        while start >= 0:
            yield start
            start = self.shown.find(old, start + (1 if overlapping else len(old)))

    def line(self, position: int) -> int:
        return bisect.bisect_left(self._newlines, position) + 1

    def replace(self, spans: Sequence[int], old: str, new: str) -> str:
        head, tail = 0, 0
        if self._codes:  # those in what stays the same stay too
            head = _common(old, new)
            tail = min(_common(old[::-1], new[::-1]), min(len(old), len(new)) - head)
            old, new = old[head : len(old) - tail], new[head : len(new) - tail]
        pieces: list[str] = []
        done = 0
        for start in spans:
            start += head
            pieces.append(self._whole[done : self._original(start, after_codes=True)])
            pieces.append(self._with_endings(start, old, new))
            done = self._original(start + len(old), after_codes=not old)
        pieces.append(self._whole[done:])
        return "".join(pieces)

    def _original(self, position: int, *, after_codes: bool) -> int:
        position += bisect.bisect_left(self._wide, position)
        where = bisect.bisect_right if after_codes else bisect.bisect_left
        return position + self._left_out[where(self._codes, position)]

    def _with_endings(self, start: int, old: str, new: str) -> str:
        """`new` with line endings: those of the lines it replaces, then those around it."""
        old_lines, new_lines = old.split("\n"), new.split("\n")
        had = [self._ending(at) for at in self._newlines_in(start, start + len(old))]
        wanted = len(new_lines) - 1
        head = min(_common(old_lines, new_lines), wanted, len(had))
        tail = min(_common(old_lines[::-1], new_lines[::-1]), wanted - head, len(had) - head)
        middle = had[head : len(had) - tail]
        filler = middle[-1] if middle else self._ending_near(start, had[:head])
        needed = wanted - head - tail
        middle = (middle + [filler] * needed)[:needed]
        endings = [*had[:head], *middle, *had[len(had) - tail :], ""]
        return "".join(line + end for line, end in zip(new_lines, endings, strict=True))

    def _newlines_in(self, start: int, end: int) -> list[int]:
        first = bisect.bisect_left(self._newlines, start)
        return self._newlines[first : bisect.bisect_left(self._newlines, end)]

    def _ending(self, newline: int) -> str:
        index = bisect.bisect_left(self._wide, newline)
        is_wide = index < len(self._wide) and self._wide[index] == newline
        return "\r\n" if is_wide else self._lone

    def _ending_near(self, start: int, before: Sequence[str]) -> str:
        """The ending of the line before, else of the line after, else a plain newline."""
        if before:
            return before[-1]
        index = bisect.bisect_left(self._newlines, start)
        around = self._newlines[max(index - 1, 0) : index + 1]
        return self._ending(around[0]) if around else self._lone


def _not_shown(text: str) -> Iterator[tuple[int, int]]:
    """Where control codes are, and frames that another one overwrites as a whole, in order."""
    begin = 0
    for line in text.split("\n"):
        last = line.rstrip("\r").rfind("\r") + 1
        if last and terminal_text(line) == terminal_text(line[last:]):
            yield begin, begin + last
        else:
            last = 0
        for code in CONTROL_CODE.finditer(text, begin + last, begin + len(line)):
            if not text.startswith("\r\n", code.start()):
                yield code.span()
        begin += len(line) + 1


def _common(left: Sequence[str], right: Sequence[str]) -> int:
    """How many items are the same at the beginning of both."""
    return sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False))
    )


def _ambiguous(lines: Sequence[int]) -> str:
    times = len(lines) if len(lines) <= _MAX_PLACES else f"more than {_MAX_PLACES}"
    where = ", ".join(map(str, lines[:10])) + (", …" if len(lines) > 10 else "")
    return (
        f"old occurs {times} times, at lines {where}; add surrounding lines to old so that it "
        "occurs once, or set replace_all"
    )


def _no_match(shown: str, old: str) -> str:
    message = "old does not occur in the file"
    if re.match(r"\s*\d+\|", old):
        return f"{message}; leave out the line numbers that read_file puts before each line"
    if "\ufffd" in old and "\ufffd" not in shown:
        return f"{message}: \ufffd stands for a byte that isn't text; choose old without it"
    if old.endswith("\n") and shown.endswith(old[:-1]):
        return f"{message}: the file has no newline at its end; leave the last newline out of old"
    near = _nearest(shown.split("\n"), old.strip("\n").split("\n"))
    if near is None:
        return f"{message}, nor anything like it; call read_file and copy the text exactly"
    first, found, wanted = near
    if [line.split() for line in found] == [line.split() for line in wanted]:
        message += " (only the spaces or tabs differ)"
    diff = list(_difference(found, wanted))[:_MAX_DIFF_LINES]
    return "\n".join(
        [f"{message}; the nearest place is line {first}. - is the file, + is your old:", *diff]
    )


def _difference(found: Sequence[str], wanted: Sequence[str]) -> Iterator[str]:
    # Not ndiff: it compares within lines too, and takes minutes for long texts that differ much.
    diff = difflib.unified_diff(found[:_MAX_DIFFED], wanted[:_MAX_DIFFED], n=1, lineterm="")
    for line in islice(diff, 2, None):
        if not line.startswith("@@"):
            yield f"{line[0]} {line[1 : _MAX_NEAR_WIDTH + 1]}".replace("\t", "\\t")


def _nearest(
    lines: Sequence[str], wanted: Sequence[str]
) -> tuple[int, Sequence[str], Sequence[str]] | None:
    """The place in `lines` most like `wanted`: its first line (from 1) and as many lines."""
    lines = [line[:_MAX_NEAR_WIDTH] for line in lines[:_MAX_NEAR_LINES]]
    offsets: dict[str, list[int]] = {}
    for offset, line in enumerate(wanted):
        offsets.setdefault(_bare(line), []).append(offset)
    offsets.pop("", None)
    # Each line that both have votes for the start that would align them.
    votes = Counter(
        max(number - offset, 0)
        for number, line in enumerate(lines)
        for offset in offsets.get(_bare(line), ())[:5]
    )
    if votes:
        start = votes.most_common(1)[0][0]
    else:
        longest = max(wanted, key=len)
        close = difflib.get_close_matches(
            longest[:_MAX_NEAR_WIDTH], lines[: _MAX_COMPARED // (len(longest) + 1)], 1, 0.6
        )
        if not close:
            return None
        start = max(lines.index(close[0]) - list(wanted).index(longest), 0)
    return start + 1, lines[start : start + len(wanted)], wanted


def _bare(line: str) -> str:
    return " ".join(line[:_MAX_NEAR_WIDTH].split()).lower()
