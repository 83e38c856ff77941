"""Where two JSON values differ, by path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import msgspec

_Members = dict[str | int, object]


class ValueDifference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A place where two values differ. What is missing on one side is left out."""

    path: str
    """Such as `$.findings[0].title`."""
    a: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    b: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def json_differences(a: bytes, b: bytes) -> Iterator[ValueDifference]:
    """Give each place where two JSON texts differ, in the order of the first one.

    Spacing and the order of keys are no difference; 1 and 1.0 are one. A text that is no JSON
    differs as a whole, as a string.
    """
    if a == b:
        return
    yield from _walk("$", _decoded(a), _decoded(b))


def _decoded(data: bytes) -> object:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return data.decode("utf-8", "replace")


def _walk(path: str, a: object, b: object) -> Iterator[ValueDifference]:
    if isinstance(a, dict) and isinstance(b, dict):
        left, right = cast("_Members", a), cast("_Members", b)
        for key in dict.fromkeys([*left, *right]):
            name = str(key)
            place = f"{path}.{name}" if name.isidentifier() else f"{path}[{name!r}]"
            yield from _member(place, left, right, key)
    elif isinstance(a, list) and isinstance(b, list):
        left: _Members = dict(enumerate(cast("list[object]", a)))
        right: _Members = dict(enumerate(cast("list[object]", b)))
        for index in range(max(len(left), len(right))):
            yield from _member(f"{path}[{index}]", left, right, index)
    else:
        raw, other = _encoded(cast("object", a)), _encoded(b)
        if raw != other:
            yield ValueDifference(path=path, a=raw, b=other)


def _member(path: str, a: _Members, b: _Members, key: str | int) -> Iterator[ValueDifference]:
    if key not in a:
        yield ValueDifference(path=path, b=_encoded(b[key]))
    elif key not in b:
        yield ValueDifference(path=path, a=_encoded(a[key]))
    else:
        yield from _walk(path, a[key], b[key])


def _encoded(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))
