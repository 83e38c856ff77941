"""One small port over the two validators: `schema_of(type)` gives a `Schema`.

pydantic is used when a type involves it (a model, a pydantic dataclass, an `Annotated` with
pydantic or annotated-types constraints) or when msgspec can't do it, and imported only then.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Protocol, TypeVar, cast, get_origin

import msgspec
from typing_extensions import TypeForm

from workflow_protocol._errors import SchemaTypeError
from workflow_protocol.schemas._by_msgspec import MsgspecSchema
from workflow_protocol.schemas._json_schema import JsonObject, title_of
from workflow_protocol.schemas._parts import (
    is_pydantic,
    parts_of,
    unknown_name,
)

T = TypeVar("T")


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
        """Decode and validate JSON text that a model or a person wrote.

        Raises:
            SchemaMismatch: it is not JSON, or not a value of the type.
        """
        ...

    def restore(self, data: bytes) -> T:
        """Read a value back that was stored: any of the forms that `stored_form` chooses from.

        Raises:
            SchemaMismatch: it is none of these.
        """
        ...

    def encode(self, value: T) -> bytes:
        """The value as compact JSON, for people and models. Not each type can be read back from it.

        Raises:
            TypeError: it can't be encoded, or (ValueError) is not of the type.
        """
        ...

    def other_forms(self, value: T, *, defaults: bool) -> Iterable[bytes]:
        """Further JSON of the value, from which it may be read back where `encode` doesn't do.

        Args:
            value: the value.
            defaults: only forms with the defaults, which would be made anew without.

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
    if isinstance(type_, str):
        raise SchemaTypeError(type_, "it is text; give the type itself, without quotes")
    libraries = {library: place for place, library in reversed([*_libraries_of(type_)])}
    if len(libraries) > 1:
        places = " and ".join(f"{place} is of {name}" for name, place in libraries.items())
        raise SchemaTypeError(
            type_, f"it mixes msgspec Structs and pydantic types: {places}; use one of them"
        )
    if "pydantic" not in libraries:
        schema = _by_msgspec(type_, last="msgspec" in libraries)
        if schema is not None:
            return schema
    return _by_pydantic(type_)


def _by_msgspec(type_: Any, *, last: bool) -> Schema[Any] | None:
    """The type by msgspec; nothing if it can't and pydantic may.

    Raises:
        SchemaTypeError: msgspec can't, and nobody else may.
    """
    try:
        return MsgspecSchema(type_)
    except (TypeError, NameError, RecursionError) as error:
        if not last and importlib.util.find_spec("pydantic") is not None:
            return None
        raise _refusal(type_, MsgspecSchema, error) from error


def _by_pydantic(type_: Any) -> Schema[Any]:
    from workflow_protocol.schemas._by_pydantic import PydanticSchema

    try:
        return PydanticSchema(type_)
    except Exception as error:  # types may have code of their own, which raises anything
        raise _refusal(type_, PydanticSchema, error) from error


def _refusal(type_: Any, build: Callable[[Any], object], error: Exception) -> SchemaTypeError:
    """What is wrong with a type: the innermost part that can't be used by itself, and why."""
    place, culprit, part_type = "$", error, type_
    for part in parts_of(type_, into_pydantic=True):
        if name := unknown_name(part.type):
            return SchemaTypeError(
                type_,
                f"{part.place}: the name {name!r} is not known when the program runs; import it "
                "outside of `if TYPE_CHECKING`",
            )
        if len(part.place) < len(place) or part.type is type_:
            continue
        try:
            build(part.type)
        except Exception as fault:  # noqa: BLE001 - any of them means that this part is at fault
            place, culprit, part_type = part.place, fault, part.type
    return SchemaTypeError(type_, f"{place}: {_words_of(culprit, part_type)}")


def _words_of(error: Exception, type_: Any) -> str:
    if isinstance(error, ImportError):  # of a package that a type needs
        return str(error)
    line, _, rest = str(error).partition("\n")
    line = f"{line} {rest.strip()}" if line.endswith(":") else line
    known = not line.startswith(("Unable to generate", "Generating JSON schema", "Cannot generate"))
    reason = line if known else f"no JSON is known for {title_of(type_)}"
    return (
        f"{reason}; use built-in types, dataclasses, TypedDicts, enums, pydantic models or "
        "msgspec Structs"
    )


def _libraries_of(type_: Any) -> Iterator[tuple[str, str]]:
    """Yield the place of each part that belongs to "pydantic" or "msgspec", and to which."""
    for place, part in parts_of(type_, into_pydantic=False):
        if get_origin(part) is Annotated:
            for constraint in part.__metadata__:
                module = type(constraint).__module__.partition(".")[0]
                if module in {"pydantic", "annotated_types"}:
                    yield place, "pydantic"
                elif isinstance(constraint, msgspec.Meta):
                    yield place, "msgspec"
        class_ = get_origin(part) or part
        if is_pydantic(class_):
            yield place, "pydantic"  # and pydantic looks after its own fields
        elif isinstance(class_, type) and issubclass(class_, msgspec.Struct):
            yield place, "msgspec"
