"""Whether two values are the same, class by class, and where they differ if not."""

from __future__ import annotations

import dataclasses
import enum
import sys
from collections.abc import Mapping, Sequence, Set
from typing import Any, NamedTuple, cast

import msgspec


class Difference(NamedTuple):
    """The place of a difference, as `$.items[0].name`, and what stands there on either side."""

    place: str
    one: object
    other: object


def difference(one: object, other: object, *, fields_set: bool = True) -> Difference | None:
    """Find the first place where two values differ; `None` where they don't.

    Lists and tuples of the same items are equal, as JSON tells them apart by the schema alone, and
    so are numbers of the same amount. NaN equals NaN. With `fields_set` a field of a pydantic model
    that was given differs from one that has its default.
    """
    try:
        return _compare(one, other, "$", fields_set)
    except RecursionError:
        return Difference("$", one, other)


def _compare(one: object, other: object, place: str, fields_set: bool) -> Difference | None:
    if one is other:
        return None
    differs = Difference(place, one, other)
    if _is_number(one) and _is_number(other):
        same = one == other or (one != one and other != other)
        return None if same else differs
    if _is_list(one) and _is_list(other):
        items, others = cast("Sequence[object]", one), cast("Sequence[object]", other)
        if len(items) != len(others):
            return differs
        pairs = {f"[{at}]": pair for at, pair in enumerate(zip(items, others, strict=True))}
        return _first(pairs, place, fields_set)
    if _is_set(one) and _is_set(other):
        return None if one == other else differs
    if _is_mapping(one) and _is_mapping(other):
        left, right = _by_key(one), _by_key(other)
    elif type(one) is not type(other) or isinstance(one, enum.Enum):
        return differs
    else:
        fields, others = _fields(one, fields_set), _fields(other, fields_set)
        if fields is None or others is None:
            return None if one == other else differs
        left = {f".{name}": each for name, each in fields.items()}
        right = {f".{name}": each for name, each in others.items()}
    if left.keys() != right.keys():
        return differs
    return _first({at: (left[at], right[at]) for at in left}, place, fields_set)


def _first(
    pairs: Mapping[str, tuple[object, object]], place: str, fields_set: bool
) -> Difference | None:
    for at, (one, other) in pairs.items():
        if found := _compare(one, other, place + at, fields_set):
            return found
    return None


def _by_key(mapping: object) -> dict[str, object]:
    return {f"[{key!r}]": each for key, each in cast("Mapping[object, object]", mapping).items()}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool | enum.Enum)


def _is_list(value: object) -> bool:
    return isinstance(value, list) or type(value) is tuple


def _is_set(value: object) -> bool:
    return isinstance(value, Set)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _fields(value: object, fields_set: bool) -> dict[str, Any] | None:
    """The fields of an object that is made of such; `None` for others."""
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if "pydantic" in sys.modules:
        import pydantic

        if isinstance(value, pydantic.BaseModel):
            fields = {name: value.__dict__.get(name) for name in type(value).model_fields}
            fields |= value.__pydantic_extra__ or {}
            if fields_set:
                fields["model_fields_set"] = frozenset(value.model_fields_set)
            return fields
    if dataclasses.is_dataclass(value):
        names = [field.name for field in dataclasses.fields(cast("Any", value))]
        return {name: getattr(value, name, None) for name in names}
    if type(value).__eq__ is object.__eq__ and hasattr(value, "__dict__"):
        return dict(vars(value))
    return None
