"""One small port over the two validators: `schema_of(type)` gives a `Schema`.

pydantic is used when a type involves it (a model, a pydantic dataclass, an `Annotated` with
pydantic or annotated-types constraints) and imported only then; msgspec does everything else.
"""

from __future__ import annotations

import functools
import sys
import typing
from collections.abc import Iterator
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    Protocol,
    TypeVar,
    cast,
    get_args,
    get_origin,
)

import msgspec
from typing_extensions import TypeForm

from workflow_protocol._errors import Fault, SchemaMismatch, SchemaTypeError
from workflow_protocol._fault_words import msgspec_fault, pydantic_fault

if TYPE_CHECKING:
    import pydantic

T = TypeVar("T")

JsonObject = dict[str, Any]


class Schema(Protocol[T]):
    """What the engine and the adapters need of a role's schema, whichever library it is from."""

    @property
    def type(self) -> TypeForm[T]:
        """The type itself."""
        ...

    @property
    def title(self) -> str:
        """A short name for people and models."""
        ...

    def json_schema(self) -> JsonObject:
        """The JSON Schema (draft 2020-12) of the type; a fresh copy each time."""
        ...

    def validate_json(self, data: bytes | str) -> T:
        """Decode and validate JSON text.

        Raises:
            SchemaMismatch: it is not JSON, or not a value of the type.
        """
        ...

    def encode(self, value: T) -> bytes:
        """The value as compact JSON that `validate_json` accepts.

        Raises:
            TypeError: it can't be encoded, or (ValueError) is not of the type.
        """
        ...


def schema_of(type_: TypeForm[T]) -> Schema[T]:
    """Give the `Schema` of any type that pydantic or msgspec can validate.

    The result is cached per type. msgspec validates strictly ("1" is not an int); pydantic
    follows the model's own configuration, which is lax by default.

    Raises:
        SchemaTypeError: neither library can validate the type, or it mixes both.
    """
    try:
        return cast("Schema[T]", _cached_schema(type_))
    except TypeError as error:
        if isinstance(error, SchemaTypeError) or "unhashable" not in str(error):
            raise
        return _build_schema(type_)


@functools.lru_cache(maxsize=1024)
def _cached_schema(type_: Any) -> Schema[Any]:
    return _build_schema(type_)


def _build_schema(type_: Any) -> Schema[Any]:
    kinds = set(_validators_of(type_, set()))
    if kinds == {"msgspec", "pydantic"}:
        raise SchemaTypeError(type_, "it mixes msgspec Structs and pydantic types; use one of them")
    return _PydanticSchema(type_) if "pydantic" in kinds else _MsgspecSchema(type_)


class _MsgspecSchema(Generic[T]):
    def __init__(self, type_: TypeForm[T]) -> None:
        self.type = type_
        self.title = _title(type_)
        try:
            self._decoder = msgspec.json.Decoder(type_)
            self._json_schema = _inline_root(msgspec.json.schema(type_))
        except (TypeError, RecursionError) as error:
            raise SchemaTypeError(type_, str(error)) from error

    def json_schema(self) -> JsonObject:
        return msgspec.json.decode(msgspec.json.encode(self._json_schema))

    def validate_json(self, data: bytes | str) -> T:
        try:
            return self._decoder.decode(data)
        except (msgspec.DecodeError, UnicodeError) as error:  # ValidationError is a DecodeError
            raise SchemaMismatch([msgspec_fault(error, self._json_schema)]) from None
        except RecursionError:
            raise SchemaMismatch([Fault("", "the JSON is nested too deeply")]) from None

    def encode(self, value: T) -> bytes:
        return msgspec.json.encode(value)


def _inline_root(schema: JsonObject) -> JsonObject:
    """A named root comes as `{"$ref": …, "$defs": …}`; models do better with it in place.

    A root that refers to itself keeps its definition, which the inner references need.
    """
    ref = schema.get("$ref")
    if not isinstance(ref, str):
        return schema
    name = ref.rpartition("/")[2]
    definitions: JsonObject = dict(schema["$defs"])
    root: JsonObject = dict(definitions[name])
    if ref.encode() not in msgspec.json.encode(definitions):
        del definitions[name]
    if definitions:
        root["$defs"] = definitions
    return root


class _PydanticSchema(Generic[T]):
    def __init__(self, type_: TypeForm[T]) -> None:
        import pydantic

        self.type = type_
        self.title = _title(type_)
        self._error = pydantic.ValidationError
        try:
            self._adapter: pydantic.TypeAdapter[T] = pydantic.TypeAdapter(type_)
            self._json_schema = _inline_root(self._adapter.json_schema())
        except (pydantic.errors.PydanticUserError, TypeError) as error:
            raise SchemaTypeError(type_, str(error).partition("\n")[0]) from error

    def json_schema(self) -> JsonObject:
        return msgspec.json.decode(msgspec.json.encode(self._json_schema))

    def validate_json(self, data: bytes | str) -> T:
        try:
            return self._adapter.validate_json(data)
        except self._error as error:
            raise SchemaMismatch(_pydantic_faults(error, data)) from None

    def encode(self, value: T) -> bytes:
        # A value of another type is an error here, where pydantic would only warn.
        return self._adapter.dump_json(value, by_alias=True, warnings="error")


def _pydantic_faults(error: pydantic.ValidationError, data: bytes | str) -> list[Fault]:
    try:
        value: object = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        value = None
    items = error.errors(include_url=False, include_context=False)
    faults = [pydantic_fault(cast("dict[str, Any]", item), value) for item in items]
    return list(dict.fromkeys(faults))  # members of a union often say the same


def _title(type_: Any) -> str:
    name = getattr(type_, "__name__", None) if get_origin(type_) is None else None
    return name if isinstance(name, str) else str(type_).replace("typing.", "")


def _validators_of(type_: Any, seen: set[int]) -> Iterator[str]:
    """Yield "pydantic" and "msgspec" for each part of a type that belongs to one of them."""
    if id(type_) in seen:
        return
    seen.add(id(type_))
    if get_origin(type_) is Annotated:
        for constraint in type_.__metadata__:
            module = type(constraint).__module__.partition(".")[0]
            if module in {"pydantic", "annotated_types"}:
                yield "pydantic"
            elif isinstance(constraint, msgspec.Meta):
                yield "msgspec"
        yield from _validators_of(type_.__origin__, seen)
        return
    for argument in get_args(type_):
        yield from _validators_of(argument, seen)
    if type(type_).__name__ == "TypeAliasType":  # `type X = …` of Python 3.12
        yield from _validators_of(type_.__value__, seen)
    if not isinstance(type_, type):
        return
    class_ = cast("type[object]", type_)
    if _is_pydantic(class_):
        yield "pydantic"  # and pydantic looks after its own fields
        return
    if issubclass(class_, msgspec.Struct):
        yield "msgspec"
    if "__annotations__" in vars(class_):
        for field in _hints(class_).values():
            yield from _validators_of(field, seen)


def _hints(type_: type[object]) -> dict[str, Any]:
    """The field types of a dataclass or TypedDict; none where a name can't be resolved here."""
    try:
        return typing.get_type_hints(type_, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}


def _is_pydantic(type_: type[object]) -> bool:
    if "pydantic" not in sys.modules:
        return False
    import pydantic

    return issubclass(type_, pydantic.BaseModel) or hasattr(type_, "__pydantic_validator__")
