"""The JSON under which a value is stored, so that every later reader gets that very value.

A schema may change what it reads (validators, aliases, defaults that are made anew), so what
`encode` gives need not be read back as the value that it was made of. The JSON that the value was
read from will do then, if reading it again gives the same. What has no such JSON is refused.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar, cast

from workflow_protocol._errors import Fault, SchemaMismatch, SchemaTypeError
from workflow_protocol.schemas._difference import difference
from workflow_protocol.schemas._parts import is_one_shot, is_secret, parts_of
from workflow_protocol.schemas._schema import Schema

T = TypeVar("T")

_EMPTY = (list, dict, set, frozenset, tuple)
"""Default factories that give the same each time."""


def check_storable(type_: object) -> None:
    """Refuse a role's schema whose values can't be stored, whatever they are.

    Raises:
        SchemaTypeError: it has secrets, which are encoded as asterisks, or iterators, which can be
            read only once; names the place.
    """
    for place, part in parts_of(type_, into_pydantic=True):
        if is_secret(part):
            raise SchemaTypeError(
                type_, f"{place} is a secret, which can't be stored and read back; use str"
            )
        if is_one_shot(part):
            raise SchemaTypeError(type_, f"{place} can be read only once; use list[…]")


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
    tried: list[tuple[bytes, T]] = []
    fault: Fault | None = None
    anew = has_defaults_made_anew(value)
    for form in _forms(schema, value, None if anew else source):
        try:
            data = form()
            back = schema.restore(data)
        except SchemaMismatch as misfit:
            fault = fault or misfit.faults[0]
            continue
        except Exception as error:  # noqa: BLE001 - a serializer of the schema may raise anything
            fault = fault or Fault("", f"{type(error).__name__}: {error}")
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


def has_defaults_made_anew(value: object) -> bool:
    """Whether a pydantic model in a value has a default that a function made, such as an id.

    Reading the value's source again would make another one.
    """
    if isinstance(value, list | tuple | set | frozenset):
        return any(map(has_defaults_made_anew, cast("Iterable[object]", value)))
    if isinstance(value, dict):
        return any(map(has_defaults_made_anew, cast("dict[object, object]", value).values()))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return any(map(has_defaults_made_anew, vars(value).values()))
    if "pydantic" not in sys.modules:
        return False
    import pydantic

    if not isinstance(value, pydantic.BaseModel):
        return False
    unset = [
        field.default_factory
        for name, field in type(value).model_fields.items()
        if name not in value.model_fields_set and field.default_factory is not None
    ]
    return any(each not in _EMPTY for each in unset) or any(
        map(has_defaults_made_anew, value.__dict__.values())
    )


def _forms(schema: Schema[T], value: T, source: bytes | None) -> Iterator[Callable[[], bytes]]:
    yield lambda: schema.encode(value)
    if source is not None:
        yield lambda: source
    others = iter(schema.other_forms(value))
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
    if type(given) is not type(read) and not isinstance(read, type(given)):
        expected = f"a value of type {type(read).__name__} is due, not {type(given).__name__}"
        return Fault(place, f"{expected} ({given!r:.60})")
    return Fault(
        place,
        f"{given!r:.60} can't be stored: it would be read back as {read!r:.60}; "
        "use a type whose JSON gives the value back",
    )
