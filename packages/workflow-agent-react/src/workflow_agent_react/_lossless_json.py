"""JSON without loss: it shows all of a value, so that who judges the JSON judges the value.

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

from workflow_agent_react._exact_json import decode_exactly
from workflow_protocol import Schema, schema_of

T = TypeVar("T")


class LossyEncoding(ValueError):
    """JSON can't show all of a value. The message names its type."""


def encode_lossless(schema: Schema[T], value: T) -> bytes:
    """A validated value as JSON that shows all of it.

    The value is not validated again where that can be avoided: a validator may give another value
    the second time. Sets are sorted, so that the same value has the same bytes in each process.

    Raises:
        LossyEncoding: it has a part that JSON doesn't show.
    """
    for encode in (schema.encode, _encode_by_own_type):  # a validator may give another type
        try:
            data = encode(value)
            if is_lossless(value, msgspec.json.decode(data)) or schema.validate_json(data) == value:
                return _with_sorted_sets(value, data)
        # What a type's own encoder, validator or `==` raises: then JSON is not enough.
        except Exception:  # noqa: BLE001 - a type's own methods may raise anything
            continue
    raise LossyEncoding(f"JSON doesn't show all of a {type(value).__name__}")


def _with_sorted_sets(value: object, data: bytes) -> bytes:
    decoded = decode_exactly(data.decode())
    return msgspec.json.encode(decoded) if _sort_sets(value, decoded) else data


def _sort_sets(value: object, decoded: object) -> bool:
    """Sort the lists that are sets, and say whether there are any."""
    pairs: list[tuple[object, object]] = []
    is_set = isinstance(value, set | frozenset)
    if _is_root(value):
        pairs = [(cast("Any", value).root, decoded)]
    elif isinstance(decoded, list):
        items = cast("list[object]", decoded)
        if is_set or isinstance(value, list | tuple | deque):
            pairs = list(zip(cast("Sequence[object]", value), items, strict=False))
    elif isinstance(decoded, dict):
        found = cast("dict[str, object]", decoded)
        parts = _fields_of(value) or ()
        if isinstance(value, Mapping):
            mapping = cast("Mapping[object, object]", value)
            parts = ((str(key), each) for key, each in mapping.items())
        pairs = [(each, found[name]) for name, each in parts if name in found]
    has_sets = [_sort_sets(each, of_it) for each, of_it in pairs]
    if is_set and isinstance(decoded, list):
        cast("list[object]", decoded).sort(key=msgspec.json.encode)
        return True
    return any(has_sets)


def _encode_by_own_type(value: object) -> bytes:
    return schema_of(type(value)).encode(value)


def is_lossless(value: object, decoded: object) -> bool:
    """Whether decoded JSON shows all of a value: each field, item and number."""
    match value:
        case None | bool():
            return decoded is value
        case Enum():
            return is_lossless(value.value, decoded)
        case int() | str():
            return type(decoded) in {int, str} and decoded == value
        case float():
            return type(decoded) is float and decoded == value and math.isfinite(value)
        case Mapping():
            return _mapping_matches(cast("Mapping[object, object]", value), decoded)
        case list() | tuple() | set() | frozenset() | deque():
            return _items_match(list(cast("Sequence[object]", value)), decoded)
        case _:
            fields = _fields_of(value)
            if fields is None:
                return _reads_back_equal(value, decoded)
            return _fields_match(fields, decoded)


def _items_match(items: Sequence[object], decoded: object) -> bool:
    if not isinstance(decoded, list):
        return False
    items_read = cast("list[object]", decoded)
    return len(items_read) == len(items) and all(map(is_lossless, items, items_read))


def _mapping_matches(value: Mapping[object, object], decoded: object) -> bool:
    if not isinstance(decoded, dict) or not all(type(key) in {str, int} for key in value):
        return False
    fields_read = cast("dict[str, object]", decoded)
    fields = ((str(key), each) for key, each in value.items())
    return len(value) == len(fields_read) and _fields_match(fields, fields_read)


def _fields_match(fields: Iterator[tuple[str, object]], decoded: object) -> bool:
    if not isinstance(decoded, dict):
        return False
    fields_read = cast("dict[str, object]", decoded)
    return all(
        name in fields_read and is_lossless(each, fields_read[name]) for name, each in fields
    )


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


def _is_root(value: object) -> bool:
    if "pydantic" not in sys.modules:
        return False
    import pydantic

    return isinstance(value, pydantic.RootModel)


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


def _reads_back_equal(value: object, decoded: object) -> bool:
    """Whether the value's own type, without what was annotated, reads the same value off it."""
    try:
        return schema_of(type(value)).validate_json(msgspec.json.encode(decoded)) == value
    except Exception:  # noqa: BLE001 - whatever the type raises, it doesn't read it
        return False
