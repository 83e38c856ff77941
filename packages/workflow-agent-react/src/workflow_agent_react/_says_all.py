"""Whether JSON says all of a value, so that who judges the JSON judges the value.

An encoder may hide things: `SecretStr` is stars, `exclude=True` leaves a field out, NaN becomes
null, a custom serializer may write anything.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar, cast

import msgspec

from workflow_protocol import Schema, schema_of

T = TypeVar("T")


class NotSaid(ValueError):
    """JSON can't say all of a value. The message says which type it has."""


def encode_all(schema: Schema[T], value: T) -> bytes:
    """A validated value as JSON that says all of it.

    The value is not validated again where that can be avoided: a validator may give another value
    the second time.

    Raises:
        NotSaid: it has a part that JSON doesn't show.
    """
    for encode in (schema.encode, _encode_as_it_is):  # a validator may give another type
        try:
            data = encode(value)
            if says_all(value, msgspec.json.decode(data)) or schema.validate_json(data) == value:
                return data
        # What a type's own encoder, validator or `==` raises: then it can't be said.
        except Exception:  # noqa: BLE001 - a type's own methods may raise anything
            continue
    raise NotSaid(f"JSON doesn't show all of a {type(value).__name__}")


def _encode_as_it_is(value: object) -> bytes:
    return schema_of(type(value)).encode(value)


def says_all(value: object, told: object) -> bool:
    """Whether decoded JSON shows all of a value: each field, item and number."""
    match value:
        case None | bool():
            return told is value
        case Enum():
            return says_all(value.value, told)
        case int() | str():
            return type(told) in {int, str} and told == value
        case float():
            return type(told) is float and told == value and math.isfinite(value)
        case Mapping():
            return _shows_mapping(cast("Mapping[object, object]", value), told)
        case list() | tuple() | set() | frozenset() | deque():
            return _shows_items(list(cast("Sequence[object]", value)), told)
        case _:
            fields = _fields_of(value)
            return _is_said_by_type(value, told) if fields is None else _shows(fields, told)


def _shows_items(items: Sequence[object], told: object) -> bool:
    if not isinstance(told, list):
        return False
    said = cast("list[object]", told)
    return len(said) == len(items) and all(map(says_all, items, said))


def _shows_mapping(value: Mapping[object, object], told: object) -> bool:
    if not isinstance(told, dict) or not all(type(key) in {str, int} for key in value):
        return False
    said = cast("dict[str, object]", told)
    fields = ((str(key), each) for key, each in value.items())
    return len(value) == len(said) and _shows(fields, said)


def _shows(fields: Iterator[tuple[str, object]], told: object) -> bool:
    if not isinstance(told, dict):
        return False
    said = cast("dict[str, object]", told)
    return all(name in said and says_all(each, said[name]) for name, each in fields)


def _fields_of(value: object) -> Iterator[tuple[str, object]] | None:
    """The fields of a record, under the names that they are encoded with."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.fields(value)
        return ((field.encode_name, getattr(value, field.name)) for field in fields)
    if (fields_of_model := _model_fields(value)) is not None:
        return fields_of_model
    if dataclasses.is_dataclass(value):
        return ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
    return None


def _model_fields(value: object) -> Iterator[tuple[str, object]] | None:
    if "pydantic" not in sys.modules:
        return None
    import pydantic

    if isinstance(value, pydantic.RootModel) or getattr(value, "__pydantic_private__", None):
        return None  # no object; or it keeps something where no encoder looks
    fields = cast("Any", getattr(type(value), "__pydantic_fields__", None))
    if fields is None:
        return None
    extra = cast("Mapping[str, object]", getattr(value, "__pydantic_extra__", None) or {})

    def found() -> Iterator[tuple[str, object]]:
        for name, field in fields.items():
            yield field.serialization_alias or field.alias or name, getattr(value, name)
        yield from extra.items()

    return found()


def _is_said_by_type(value: object, told: object) -> bool:
    """Whether the value's own type, without what was annotated, reads the same value off it."""
    try:
        return schema_of(type(value)).validate_json(msgspec.json.encode(told)) == value
    except Exception:  # noqa: BLE001 - whatever the type raises, it doesn't read it
        return False
