"""Types that pydantic validates. Imported when one is used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Generic, TypeVar, cast

import msgspec
import pydantic
from typing_extensions import TypeForm

from workflow_protocol._errors import Fault, SchemaMismatch
from workflow_protocol.schemas._by_msgspec import raised_in_a_validator
from workflow_protocol.schemas._fault_words import pydantic_fault
from workflow_protocol.schemas._json_schema import (
    JsonObject,
    copied,
    inline_root,
    title_of,
    with_sets_in_order,
)
from workflow_protocol.schemas._union_work import MAX_TRIES, count_tries, has_nested_unions

T = TypeVar("T")


class PydanticSchema(Generic[T]):
    """See `Schema`.

    Raises:
        pydantic.PydanticUserError: pydantic can't validate the type.
        pydantic.PydanticSchemaGenerationError: likewise, and it may not be imported.
        ImportError: the type needs a package that isn't installed.
        NameError: a field's type is a name that isn't known at run time.
    """

    def __init__(self, type_: TypeForm[T]) -> None:
        self.type = type_
        self.title = title_of(type_)
        self._adapter: pydantic.TypeAdapter[T] = pydantic.TypeAdapter(type_)
        self._json_schema = inline_root(with_sets_in_order(self._adapter.json_schema()))
        self._has_nested_unions = has_nested_unions(self._json_schema)

    def json_schema(self) -> JsonObject:
        return copied(self._json_schema)

    def validate_json(self, data: bytes | str) -> T:
        return self._validate(data, by_name=False)

    def restore(self, data: bytes) -> T:
        try:
            return self._validate(data, by_name=False)
        except SchemaMismatch:
            with contextlib.suppress(SchemaMismatch):
                return self._validate(data, by_name=True)
            raise

    def encode(self, value: T) -> bytes:
        return self._adapter.dump_json(value, by_alias=True, warnings=False)

    def other_forms(self, value: T, *, defaults: bool) -> Iterator[bytes]:
        """Without what only the encoding has, without defaults, and by the fields' own names.

        Computed fields are not taken back, `Json[…]` wants its text, an alias may be for one way
        only, and a default need not be of its field's type.
        """
        for by_alias in (True, False):
            for exclude_unset in (False,) if defaults else (False, True):
                yield self._adapter.dump_json(
                    value,
                    by_alias=by_alias,
                    exclude_unset=exclude_unset,
                    round_trip=True,
                    warnings=False,
                )

    def _validate(self, data: bytes | str, *, by_name: bool) -> T:
        by_alias = False if by_name else None  # None: as the type's configuration says
        if self._has_nested_unions:
            self._refuse_endless(data)
        try:
            return self._adapter.validate_json(data, by_alias=by_alias, by_name=by_name or None)
        except pydantic.ValidationError as error:
            raise SchemaMismatch(_faults(error, data)) from None
        except RecursionError:
            raise SchemaMismatch([Fault("", "the JSON is nested too deeply")]) from None
        except Exception as error:
            raise raised_in_a_validator(error, self.title) from error

    def _refuse_endless(self, data: bytes | str) -> None:
        try:
            tries = count_tries(self._json_schema, msgspec.json.decode(data))
        except (msgspec.DecodeError, UnicodeError):
            return  # pydantic says what is wrong
        except RecursionError:
            raise SchemaMismatch([Fault("", "the JSON is nested too deeply")]) from None
        if tries > MAX_TRIES:
            words = "the JSON is nested too deeply in forms that no tag tells apart; nest it less"
            raise SchemaMismatch([Fault("", words)])


def _faults(error: pydantic.ValidationError, data: bytes | str) -> list[Fault]:
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = None
    items = error.errors(include_url=False, include_context=False)
    faults = [pydantic_fault(cast("dict[str, Any]", item), value) for item in items]
    return list(dict.fromkeys(faults))  # members of a union often say the same
