"""Types that msgspec validates."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any, Generic, TypeVar, cast

import msgspec
from typing_extensions import TypeForm

from workflow_protocol._errors import Fault, SchemaMismatch
from workflow_protocol.schemas._fault_words import msgspec_fault
from workflow_protocol.schemas._json_schema import JsonObject, copied, inline_root, title_of

T = TypeVar("T")

_log = logging.getLogger("workflow_protocol")

_MAX_DEPTH = 200
"""As pydantic has it. msgspec goes as deep as the stack has room for, so that a value could be read
in one place and not in another."""


class MsgspecSchema(Generic[T]):
    """See `Schema`.

    Raises:
        TypeError: msgspec can't validate the type, or can't say what JSON it takes.
        NameError: a field's type is a name that isn't known at run time.
    """

    def __init__(self, type_: TypeForm[T]) -> None:
        self.type = type_
        self.title = title_of(type_)
        self._decoder = msgspec.json.Decoder(type_)
        self._json_schema = inline_root(msgspec.json.schema(type_))

    def json_schema(self) -> JsonObject:
        return copied(self._json_schema)

    def validate_json(self, data: bytes | str) -> T:
        if _is_too_deep(data):
            raise SchemaMismatch([Fault("", "the JSON is nested too deeply")])
        try:
            return self._decoder.decode(data)
        except (msgspec.DecodeError, UnicodeError) as error:  # ValidationError is a DecodeError
            raise SchemaMismatch([msgspec_fault(error, self._json_schema)]) from None
        except RecursionError:
            raise SchemaMismatch([Fault("", "the JSON is nested too deeply")]) from None
        except Exception as error:
            raise raised_in_a_validator(error, self.title) from error

    def restore(self, data: bytes) -> T:
        return self.validate_json(data)

    def encode(self, value: T) -> bytes:
        return msgspec.json.encode(value)

    def other_forms(self, value: T, *, defaults: bool) -> list[bytes]:
        del value, defaults
        return []


def _is_too_deep(data: bytes | str) -> bool:
    opening: tuple[Any, Any] = ("[", "{") if isinstance(data, str) else (b"[", b"{")
    if sum(map(data.count, opening)) <= _MAX_DEPTH:
        return False
    try:
        layer: list[object] = [msgspec.json.decode(data)]
    except (msgspec.DecodeError, UnicodeError):
        return False  # the decoder of the type says what is wrong
    except RecursionError:
        return True
    for _ in range(_MAX_DEPTH):
        layer = [part for each in layer for part in _inside(each)]
        if not layer:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


def raised_in_a_validator(error: Exception, title: str) -> SchemaMismatch:
    """What a validator of the type raised that isn't a `ValueError`: taken as the model's mistake.

    It may be a fault of the validator as well, so the log has the traceback.
    """
    _log.warning("a validator of %s raised %r", title, error, exc_info=error)
    return SchemaMismatch(
        [Fault("", f"this value is not accepted: {type(error).__name__}: {error}")]
    )
