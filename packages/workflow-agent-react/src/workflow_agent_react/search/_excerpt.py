"""A line that matches as a search shows it: whole, or the parts around the matches. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from workflow_util_agent import CONTROL_CODE, terminal_text

MAX_MATCH_CHARS = 240
"""A longer line is shown in parts of this length."""
MAX_PARTS = 5

Span = tuple[int, int]
"""Where a match begins and ends in a line, in bytes."""


def is_long(line: bytes | bytearray) -> bool:
    """Whether a line is shown in parts."""
    return len(line) > MAX_MATCH_CHARS and len(line.decode("utf-8", "replace")) > MAX_MATCH_CHARS


def beginning(line: bytes | bytearray) -> str:
    """The line, cut at its end if it is long."""
    text = line.decode("utf-8", "replace")
    if CONTROL_CODE.search(text):
        text = terminal_text(text)
    return text if len(text) <= MAX_MATCH_CHARS else f"{text[:MAX_MATCH_CHARS]} …"


def matched_line(place: str, line: bytes, spans: Sequence[Span]) -> str:
    """A line in which something was found: `path:line: text`.

    Of a long line, where these spans are known, the parts around them as `path:line:column: text`,
    with the column as `read_file` takes it; then how many more matches there are in it.
    """
    if not spans:
        return f"{place}: {beginning(line.rstrip())}"
    text = line.decode("utf-8", "replace")
    parts, shown = _parts(line, len(text), spans)
    lines = [f"{place}:{start + 1}: {_part(text, start, end)}" for start, end in parts]
    if shown < len(spans):
        more = len(spans) - shown
        column = _characters(line[: spans[shown][0]]) + 1
        lines.append(f"{place}: ({more} more match{'es' * (more != 1)}, from column {column} on)")
    return "\n".join(lines)


def _parts(line: bytes, length: int, spans: Sequence[Span]) -> tuple[list[Span], int]:
    """The parts to show, in characters, and how many of the matches are in them."""
    parts: list[Span] = []
    done, column = 0, 0  # the same place in bytes and in characters
    for index, (start, end) in enumerate(spans):
        first = column + _characters(line[done:start])
        last = first + _characters(line[start:end])
        done, column = start, first
        if parts and last <= parts[-1][1]:
            continue
        if len(parts) == MAX_PARTS:
            return parts, index
        before = max(MAX_MATCH_CHARS - (last - first), 0) // 2
        begin = min(max(first - before, 0), max(length - MAX_MATCH_CHARS, 0))
        begin = max(begin, parts[-1][1] if parts else 0)
        parts.append((begin, min(begin + MAX_MATCH_CHARS, length)))
    return parts, len(spans)


def _part(text: str, start: int, end: int) -> str:
    part = text[start:end]
    shown = terminal_text(part) if CONTROL_CODE.search(part) else part
    return f"{'… ' * (start > 0)}{shown}{' …' * (end < len(text))}"


def _characters(data: bytes) -> int:
    return len(data.decode("utf-8", "replace"))
