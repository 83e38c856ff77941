"""The JSON under which a value is stored, so that every later reader gets that very value.

A schema may change what it reads (validators, aliases, defaults that are made anew), so what
`encode` gives need not be read back as the value that it was made of. The JSON that the value was
read from will do then, if reading it again gives the same. What has no such JSON is refused.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, get_origin

import msgspec

from workflow_protocol._errors import Fault, SchemaMismatch, SchemaTypeError
from workflow_protocol.schemas._difference import difference, inside, parts_of_value
from workflow_protocol.schemas._parts import (
    has_validators,
    is_one_shot,
    is_secret,
    parts_of,
)
from workflow_protocol.schemas._schema import Schema, schema_of

T = TypeVar("T")

_EMPTY = (list, dict, set, frozenset, tuple)
"""Default factories that give the same each time."""

_PLAIN = frozenset({str, bytes, int, float, bool, type(None)})


def check_storable(type_: object) -> None:
    """Refuse a role's schema whose values can't be stored, whatever they are.

    Raises:
        SchemaTypeError: it has secrets, which are encoded as asterisks, iterators, which can be
            read only once, or classes and members of enums, which no JSON gives; names the place.
    """
    parts = list(parts_of(type_, into_pydantic=True))
    converts = any(has_validators(part.type) for part in parts)  # from whatever the model writes
    for place, part in parts:
        if is_secret(part):
            raise SchemaTypeError(
                type_, f"{place} is a secret, which can't be stored and read back; use str"
            )
        if is_one_shot(part):
            raise SchemaTypeError(type_, f"{place} can be read only once; use list[…]")
        if get_origin(part) is type and not converts:
            raise SchemaTypeError(type_, f"{place} is a class, which no JSON gives; use Literal[…]")
        if isinstance(part, type) and issubclass(part, enum.Enum) and not converts:
            _check_members(type_, place, part)


def _check_members(type_: object, place: str, part: type[enum.Enum]) -> None:
    """Refuse an enum whose members can't all be read: of tuples, of objects, without any."""
    schema = schema_of(part)
    unread = [each.name for each in part if not _is_read_back(schema, each)]
    if unread or not list(part):
        fault = f"the member {unread[0]!r} has a value that no JSON gives" if unread else "is empty"
        raise SchemaTypeError(type_, f"{place}: {fault}; use members of strings or numbers")


def _is_read_back(schema: Schema[T], value: T) -> bool:
    try:
        return schema.restore(schema.encode(value)) is value
    except (SchemaMismatch, TypeError, ValueError):
        return False


def stored_form(schema: Schema[T], value: T, source: bytes | None = None) -> tuple[bytes, T]:
    """Choose the JSON to store a value as, and give the value as `Schema.restore` reads it.

    The first of these that is read back as an equal value: what `encode` gives, the JSON that the
    value was read from, and the schema's other forms. Equal is: of the same classes, with the same
    fields set; where there is no such form, equal but for which fields were set.

    Args:
        schema: the value's schema.
        value: a value of it.
        source: the JSON that `schema.validate_json` read the value from, where it did.

    Raises:
        SchemaMismatch: the value is not of the schema, or can't be stored; names the place.
    """
    try:
        return _first_kept(schema, value, source)
    except RecursionError:
        words = "it is nested too deeply to be stored, or contains itself"
        raise SchemaMismatch([Fault("", words)]) from None


def _first_kept(schema: Schema[T], value: T, source: bytes | None) -> tuple[bytes, T]:
    tried: list[tuple[bytes, T]] = []
    fault: Fault | None = None
    for form in _forms(schema, value, source):
        try:
            data = form()
        except RecursionError:
            raise
        except Exception as error:  # noqa: BLE001 - a serializer of the schema may raise anything
            fault = fault or _not_encoded(schema, value, error)
            continue
        try:
            back = schema.restore(data)
        except SchemaMismatch as misfit:
            fault = fault or misfit.faults[0]
            continue
        if not _is_json(data):
            fault = fault or _not_a_json_number(value)
            continue
        if difference(value, back) is None:
            return data, back
        tried.append((data, back))
    for data, back in tried:
        if difference(value, back, fields_set=False) is None:
            return data, back
    if tried:
        fault = _not_kept(value, tried[0][1])
    raise SchemaMismatch([fault or Fault("", "it can't be encoded")])


def is_same_value(schema: Schema[Any], one: bytes, other: bytes) -> bool:
    """Whether two stored forms are of the same value: sets are written in any order."""
    if one == other:
        return True
    try:
        return difference(schema.restore(one), schema.restore(other)) is None
    except (SchemaMismatch, RecursionError):
        return False


def is_made_anew(schema: Schema[T], value: T, source: bytes | None) -> bool:
    """Whether carrying a turn out again gives another value, as each has an id of its own.

    It is made anew where reading its source once more gives something else; without a source,
    where a class in it has a default that a function makes.
    """
    if has_defaults_made_anew(value):
        return True
    if source is None:
        return any(_has_factories(type(each)) for each in _all_in(value))
    try:
        return bool(value != schema.validate_json(source))
    except Exception:  # noqa: BLE001 - a class may compare as it likes
        return True


def has_defaults_made_anew(value: object) -> bool:
    """Whether a pydantic model in a value has a default that a function made, such as an id.

    Reading the value's source again would make another one.
    """
    if "pydantic" not in sys.modules:
        return False
    import pydantic

    return any(
        name not in each.model_fields_set and _makes_anew(field.default_factory)
        for each in _all_in(value)
        if isinstance(each, pydantic.BaseModel)
        for name, field in type(each).model_fields.items()
    )


def _has_factories(type_: type[object]) -> bool:
    """Whether a dataclass or a Struct has defaults that a function makes."""
    fields: Iterable[Any] = ()
    if issubclass(type_, msgspec.Struct):
        fields = msgspec.structs.fields(type_)
    elif dataclasses.is_dataclass(type_):
        fields = dataclasses.fields(type_)
    return any(_makes_anew(field.default_factory) for field in fields)


def _makes_anew(factory: object) -> bool:
    none = (None, dataclasses.MISSING, msgspec.NODEFAULT, *_EMPTY)
    return (get_origin(factory) or factory) not in none


def _all_in(value: object) -> Iterator[object]:
    """A value and all that is in it but for plain ones, each object once."""
    waiting = [value]
    seen: set[int] = set()
    while waiting:
        each = waiting.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            waiting += [part for part in inside(each) if type(part) not in _PLAIN]


def _is_json(data: bytes) -> bool:
    """Whether it is JSON as everybody reads it, which pydantic's NaN and Infinity are not."""
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
    except msgspec.DecodeError:
        return False
    return True


def _not_a_json_number(value: object, place: str = "$") -> Fault | None:
    if isinstance(value, float) and not math.isfinite(value):
        return Fault(
            place,
            "NaN and infinity are no JSON numbers; use None or a string, or set "
            "ser_json_inf_nan='strings' in the model's configuration",
        )
    parts = parts_of_value(value).items()
    faults = (_not_a_json_number(part, place + at) for at, part in parts)
    return next((fault for fault in faults if fault), None)


def _not_encoded(schema: Schema[Any], value: object, error: Exception, place: str = "$") -> Fault:
    """What can't be encoded: the innermost part of the value that can't be by itself."""
    for at, part in parts_of_value(value).items():
        try:
            schema.encode(part)
        except RecursionError:
            raise
        except Exception as fault:  # noqa: BLE001 - as in `_first_kept`
            return _not_encoded(schema, part, fault, place + at)
    return Fault(place, f"{type(error).__name__}: {error}")


def _forms(schema: Schema[T], value: T, source: bytes | None) -> Iterator[Callable[[], bytes]]:
    anew = has_defaults_made_anew(value)
    yield lambda: schema.encode(value)
    if source is not None and not anew:
        yield lambda: source
    others = iter(schema.other_forms(value, defaults=anew))
    while True:
        try:
            form = next(others)
        except StopIteration:
            return
        except Exception:  # noqa: BLE001 - as above; `encode` has told it already
            return
        yield lambda form=form: form


def _not_kept(value: object, back: object) -> Fault:
    place, given, read = difference(value, back, fields_set=False) or ("$", value, back)
    back_as = f"{_shown(given)} can't be stored: it would be read back as {_shown(read)}"
    if place.rpartition(".")[2].startswith("_"):
        return Fault(place, f"{back_as}; private attributes are not stored; make it a field")
    if type(given) is not type(read) and not isinstance(read, type(given)):
        expected = f"a value of type {type(read).__name__} is due, not {type(given).__name__}"
        return Fault(place, f"{expected} ({_shown(given)})")
    return Fault(place, f"{back_as}; use a type whose JSON gives the value back")


def _shown(value: object) -> str:
    try:
        return f"{value!r:.60}"
    except Exception:  # noqa: BLE001 - a class may write itself as it likes
        return f"a value of type {type(value).__name__}"
