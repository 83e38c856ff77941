"""Changes parts of a JSON text and keeps every other character: numbers as they were written, the
order of keys, escapes, spaces.

Decoding a text and encoding it again would send `12345678901234567.89` through a float.
"""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

Edits = dict[tuple[int, str | int], str | None]
"""What becomes of the parts of objects and arrays, by the `id` of the object or array and the key
or index in it: other JSON text, or `None` for a key that is cut out."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\],:]|[^\s"{}\[\],:]++')
_decode = msgspec.json.Decoder(float_hook=float).decode  # with the hook 1e400 is infinite, no error


def decode_value(text: str) -> Any:
    """The value of a JSON text, to look at: a number may be less precise than its text.

    Raises:
        msgspec.DecodeError: it isn't JSON; or `UnicodeError`, `ValueError`, `RecursionError`.
    """
    return _decode(text)


def edit_json(text: str, value: object, edits: Edits) -> str:
    """The text with some of its parts changed, in one pass.

    A key that an object has twice is changed at both places: readers take the last one.

    Args:
        text: valid JSON.
        value: what `decode_value` made of that text.
        edits: what to change in it.
    """
    pieces: list[str] = []
    done = 0
    for start, end, instead in sorted(_spans(text, value, edits)):
        pieces += [text[done:start], instead]
        done = end
    return "".join([*pieces, text[done:]])


class _Open:
    """An object or array that has begun and not ended. Places count characters of the text."""

    def __init__(self, value: dict[str, object] | list[object], start: int) -> None:
        self.value = value
        self.start = start
        self.key: str | int = 0 if isinstance(value, list) else ""
        self.key_start: int | None = None  # None: the next string is a key
        self.end = start  # of the last part
        self.has_kept = False
        self.cut_from: int | None = None  # parts are cut from here to the first that is kept

    def part(self) -> object:
        """The value of the present part; `None` where the text has another one there before it."""
        if isinstance(self.value, dict):
            return self.value.get(str(self.key))
        at = int(self.key)
        return self.value[at] if at < len(self.value) else None


def _spans(text: str, value: object, edits: Edits) -> list[tuple[int, int, str]]:
    """The places that change: from where to where, and what is there instead."""
    spans: list[tuple[int, int, str]] = []
    path: list[_Open] = []
    for token in _TOKEN.finditer(text):
        start, end = token.span()
        match text[start]:
            case "{" | "[" as mark:
                inner = path[-1].part() if path else value
                path.append(_Open(_as_it_begins(inner, mark), start))
            case "}" | "]":
                closed = path.pop()
                if closed.cut_from is not None:
                    spans.append((closed.cut_from, closed.end, ""))
                if path:
                    _end_part(path[-1], closed.start, end, edits, spans)
            case ",":
                path[-1].key_start = None
                if isinstance(path[-1].key, int):
                    path[-1].key += 1
            case ":":
                pass
            case _ if path and path[-1].key_start is None and isinstance(path[-1].value, dict):
                _begin_member(path[-1], text[start:end], start, edits, spans)
            case _ if path:
                _end_part(path[-1], start, end, edits, spans)
            case _:
                pass
    return spans


def _as_it_begins(value: object, mark: str) -> dict[str, object] | list[object]:
    """The value, or an empty one, for which there are no edits, where the text has another kind."""
    if mark == "{":
        return cast("dict[str, object]", value) if isinstance(value, dict) else {}
    return cast("list[object]", value) if isinstance(value, list) else []


def _begin_member(
    parent: _Open, key: str, start: int, edits: Edits, spans: list[tuple[int, int, str]]
) -> None:
    parent.key = msgspec.json.decode(key, type=str) if "\\" in key else key[1:-1]
    parent.key_start = start
    is_cut = edits.get((id(parent.value), parent.key), "") is None
    if is_cut and not parent.has_kept and parent.cut_from is None:
        parent.cut_from = start
    if not is_cut and parent.cut_from is not None:
        spans.append((parent.cut_from, start, ""))
        parent.cut_from = None


def _end_part(
    parent: _Open, start: int, end: int, edits: Edits, spans: list[tuple[int, int, str]]
) -> None:
    place = (id(parent.value), parent.key)
    if place not in edits:
        parent.has_kept = True
    elif (instead := edits[place]) is not None:
        parent.has_kept = True
        spans.append((start, end, instead))
    elif parent.has_kept:
        spans.append((parent.end, end, ""))  # with the comma before it
    parent.end = end
