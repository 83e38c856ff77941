"""Whether two values are the same, class by class, and where they differ if not."""

from __future__ import annotations

import collections
import dataclasses
import decimal
import enum
import sys
from collections.abc import Iterable, Mapping, Set
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
    that was given differs from one that has its default. Private attributes of models count too,
    where their values can be compared.

    Raises:
        RecursionError: the values are nested too deeply.
    """
    return _compare(one, other, "$", fields_set)


def parts_of_value(value: object) -> dict[str, object]:
    """What a value is made of, each with its place in it: `.name`, `[0]`, `['key']`."""
    if isinstance(value, str | bytes | int | float | None):
        return {}
    if _is_mapping(value):
        return _by_key(value)
    if _is_set(value) or _is_list(value) or _is_deque(value):
        return _by_index(value)
    fields = _fields(value, fields_set=False)
    return {} if fields is None else {f".{name}": each for name, each in fields.items()}


def inside(value: object) -> Iterable[object]:
    """The same without the places, which is quick."""
    if isinstance(value, str | bytes | int | float | None):
        return ()
    if _is_mapping(value):
        return cast("Mapping[object, object]", value).values()
    if _is_set(value) or _is_list(value) or _is_deque(value):
        return cast("Iterable[object]", value)
    return (_fields(value, fields_set=False) or {}).values()


def _compare(one: object, other: object, place: str, fields_set: bool) -> Difference | None:
    if one is other:
        return None
    differs = Difference(place, one, other)
    if _is_number(one) and _is_number(other):
        same = one == other or (one != one and other != other)
        return None if same else differs
    if _is_set(one) and _is_set(other):
        return None if _is_equal(one, other) else differs
    if all(map(_is_list, (one, other))) or all(map(_is_deque, (one, other))):
        left, right = _by_index(one), _by_index(other)
    elif _is_mapping(one) and _is_mapping(other):
        left, right = _by_key(one), _by_key(other)
    elif type(one) is not type(other) or isinstance(one, enum.Enum):
        return differs
    else:
        fields, others = _fields(one, fields_set), _fields(other, fields_set)
        if fields is None or others is None:
            return None if _is_equal(one, other) else differs
        left = {f".{name}": each for name, each in fields.items()}
        right = {f".{name}": each for name, each in others.items()}
    if left.keys() != right.keys():
        return differs
    pairs = {at: (left[at], right[at]) for at in left}
    return _first(pairs | _private_pairs(one, other), place, fields_set)


def _first(
    pairs: Mapping[str, tuple[object, object]], place: str, fields_set: bool
) -> Difference | None:
    for at, (one, other) in pairs.items():
        if found := _compare(one, other, place + at, fields_set):
            return found
    return None


def _by_index(items: object) -> dict[str, object]:
    return {f"[{at}]": each for at, each in enumerate(cast("Iterable[object]", items))}


def _by_key(mapping: object) -> dict[str, object]:
    return {f"[{key!r}]": each for key, each in cast("Mapping[object, object]", mapping).items()}


def _is_equal(one: object, other: object) -> bool:
    if isinstance(one, decimal.Decimal) and str(one) == str(other):
        return True  # also NaN
    try:
        return bool(one == other)
    except RecursionError:
        raise
    except Exception:  # noqa: BLE001 - a class may compare as it likes
        return False


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool | enum.Enum)


def _is_list(value: object) -> bool:
    return isinstance(value, list) or type(value) is tuple


def _is_named_tuple(value: object) -> bool:
    return isinstance(value, tuple) and hasattr(type(cast("object", value)), "_asdict")


def _is_deque(value: object) -> bool:
    return isinstance(value, collections.deque)


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
        fields = {name: getattr(value, name, None) for name in names}
        config: Any = getattr(value, "__pydantic_config__", {})
        return getattr(value, "__dict__", {}) | fields if config.get("extra") == "allow" else fields
    if _is_named_tuple(value):
        return cast("Any", value)._asdict()
    if type(value).__eq__ is object.__eq__ and hasattr(value, "__dict__"):
        return dict(vars(value))
    return None


def _private_pairs(one: object, other: object) -> dict[str, tuple[object, object]]:
    """Private attributes of models but for those, such as locks, that equal only themselves."""
    left: dict[str, Any] = getattr(one, "__pydantic_private__", None) or {}
    right: dict[str, Any] = getattr(other, "__pydantic_private__", None) or {}
    pairs = {f".{name}": (left.get(name), right.get(name)) for name in left | right}
    return {
        at: pair
        for at, pair in pairs.items()
        if all(each is None or type(each).__eq__ is not object.__eq__ for each in pair)
    }
