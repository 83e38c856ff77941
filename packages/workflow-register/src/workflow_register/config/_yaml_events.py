"""What YAML allows and no configuration needs, found in its events before anything is made of them.

Some of it would end in an error of the parser's own (a mapping as a key, a tag), some takes long
or never ends (nesting, aliases in a circle), and some can't be sent or kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

from ruamel.yaml import YAML

MAX_VALUES = 20_000
MAX_DEPTH = 64

_NO_TAGS = {None, "!"}
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?")
_LONG_NUMBER = re.compile(r"[-+]?(?:\d|0x)[\w.+-]{300,}", re.ASCII)


class EventFault(NamedTuple):
    """A fault and its line, from 1."""

    line: int
    message: str


class _OpenCollection(NamedTuple):
    """A collection whose end has not come."""

    is_mapping: bool
    anchor: str | None


def find_event_fault(events: Iterator[Any]) -> EventFault | None:
    """The first thing in a parser's events that no configuration can have."""
    stack: list[_OpenCollection] = []
    counts = [0]
    for number, event in enumerate(events):
        kind = type(event).__name__.removesuffix("Event")
        if kind in {"SequenceEnd", "MappingEnd"}:
            stack.pop()
            counts.pop()
            continue
        if kind not in {"Scalar", "Alias", "SequenceStart", "MappingStart"}:
            continue
        line = event.start_mark.line + 1
        is_key = bool(stack) and stack[-1].is_mapping and counts[-1] % 2 == 0
        counts[-1] += 1
        if message := _fault(event, kind, stack, is_key=is_key):
            return EventFault(line, message)
        if number > MAX_VALUES:
            message = f"it has more than {MAX_VALUES:,} values; is it the right file?"
            return EventFault(line, message)
        if kind in {"SequenceStart", "MappingStart"}:
            if len(stack) >= MAX_DEPTH:
                return EventFault(line, f"more than {MAX_DEPTH} levels are nested here")
            stack.append(_OpenCollection(kind == "MappingStart", event.anchor))
            counts.append(0)
    return None


def reused_anchor(events: Iterator[Any]) -> int | None:
    """The line of the first anchor whose name another one had."""
    seen: set[str] = set()
    for event in events:
        anchor = getattr(event, "anchor", None)
        if anchor is None or type(event).__name__ == "AliasEvent":
            continue
        if anchor in seen:
            return event.start_mark.line + 1
        seen.add(anchor)
    return None


def _fault(event: Any, kind: str, stack: list[_OpenCollection], *, is_key: bool) -> str:
    if kind == "Alias":
        if any(each.anchor == event.anchor for each in stack):
            return "an alias (*) refers to a value that contains it; write the value out"
        return "a key should be text, not an alias (*)" if is_key else ""
    tag = None if event.tag is None else str(event.tag)
    if tag not in _NO_TAGS:
        return "a tag (!) has no meaning here; remove it"
    if kind != "Scalar":
        return "a key should be text, not a list or mapping; put it in quotes" if is_key else ""
    value = str(event.value)
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        return "half of a surrogate pair is no character; write the whole character"
    if event.style is None and tag is None:
        if _DATE.match(value) and not _is_date(value):
            return "a date should be text; put it in quotes"
        if _LONG_NUMBER.fullmatch(value):
            return "a number has too many digits"
    return ""


def _is_date(text: str) -> bool:
    """Whether the parser can make a date of it, which is refused later, beside other faults."""
    try:
        cast("Any", YAML(typ="safe", pure=True)).load(text)
    except ValueError:
        return False
    return True
