"""The parts that a type is made of, each with its place: `$.owner.name`, `$.items[]`."""

from __future__ import annotations

import collections.abc
import dataclasses
import sys
import typing
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, cast, get_args, get_origin

import msgspec
import typing_extensions

_WRAPPERS = frozenset(
    {
        typing.Required,
        typing.NotRequired,
        typing_extensions.Required,
        typing_extensions.NotRequired,
        typing_extensions.ReadOnly,
    }
)
_ONE_SHOT = frozenset(
    {
        collections.abc.Iterable,
        collections.abc.Iterator,
        collections.abc.Generator,
        collections.abc.AsyncIterable,
        collections.abc.AsyncIterator,
        collections.abc.AsyncGenerator,
    }
)


class Part(NamedTuple):
    """A type inside a type."""

    place: str
    type: Any


def parts_of(type_: Any, *, into_pydantic: bool, place: str = "$") -> Iterator[Part]:
    """Yield a type and all that it is made of, each type once, from outside to inside.

    Args:
        type_: any type; a name in it that can't be resolved ends the walk at its class.
        into_pydantic: go into the fields of pydantic's classes too.
        place: where the type stands.
    """
    yield from _walk(type_, place, into_pydantic, set())


def _walk(type_: Any, place: str, into_pydantic: bool, seen: set[int]) -> Iterator[Part]:
    if id(type_) in seen:
        return
    seen.add(id(type_))
    origin = get_origin(type_)
    if origin in _WRAPPERS:
        yield from _walk(get_args(type_)[0], place, into_pydantic, seen)
        return
    if isinstance(type_, list):  # the parameters of a Callable
        return
    yield Part(place, type_)
    if origin is typing.Literal:
        return
    if origin is Annotated:
        yield from _walk(type_.__origin__, place, into_pydantic, seen)
        return
    below = place if origin is None or _is_union(origin) else f"{place}[]"
    for argument in get_args(type_):
        yield from _walk(argument, below, into_pydantic, seen)
    if type(type_).__name__ == "TypeAliasType":  # `type X = …` of Python 3.12
        yield from _walk(type_.__value__, place, into_pydantic, seen)
    elif hasattr(type_, "__supertype__"):  # NewType
        yield from _walk(type_.__supertype__, place, into_pydantic, seen)
    class_ = origin if isinstance(origin, type) else type_
    if isinstance(class_, type) and (into_pydantic or not is_pydantic(class_)):
        for name, field in _fields(cast("type[object]", class_)).items():
            yield from _walk(field, f"{place}.{name}", into_pydantic, seen)


def is_one_shot(type_: Any) -> bool:
    """Whether its values are iterators, which are empty after one reading."""
    return type_ in _ONE_SHOT or get_origin(type_) in _ONE_SHOT


def is_secret(type_: Any) -> bool:
    """Whether it is a type of pydantic whose values are encoded as asterisks."""
    class_ = get_origin(type_) or type_
    if "pydantic" not in sys.modules or not isinstance(class_, type):
        return False
    import pydantic

    return issubclass(class_, pydantic.SecretStr | pydantic.SecretBytes | pydantic.Secret)


def has_validators(type_: Any) -> bool:
    """Whether validators of pydantic stand on it, which may read it from any JSON."""
    if "pydantic" not in sys.modules:
        return False
    from pydantic import functional_validators

    if get_origin(type_) is Annotated:
        module = functional_validators.__name__
        return any(type(each).__module__ == module for each in type_.__metadata__)
    found: Any = getattr(type_, "__pydantic_decorators__", None)
    return found is not None and any(
        (found.validators, found.field_validators, found.root_validators, found.model_validators)
    )


def is_pydantic(type_: object) -> bool:
    """Whether a class is pydantic's own: it validates its fields itself."""
    if "pydantic" not in sys.modules or not isinstance(type_, type):
        return False
    import pydantic

    class_ = cast("type[object]", type_)
    return issubclass(class_, pydantic.BaseModel) or hasattr(class_, "__pydantic_validator__")


def unknown_name(type_: object) -> str:
    """The first name in a class's annotations that isn't known at run time."""
    if not isinstance(type_, type):
        return ""
    try:
        typing.get_type_hints(type_)
    except NameError as error:
        return error.name or str(error)
    except (TypeError, AttributeError):
        pass
    return ""


def _is_union(origin: object) -> bool:
    return origin is typing.Union or getattr(origin, "__name__", "") == "UnionType"


def _fields(type_: type[object]) -> dict[str, Any]:
    """The types of a class's fields; none where it has no fields, or a name isn't known here."""
    names = _field_names(type_)
    if not names:
        return {}
    try:
        hints = typing.get_type_hints(type_, include_extras=True)
    except (NameError, TypeError, AttributeError):
        return {}
    return {name: hints[name] for name in names if name in hints}


def _field_names(type_: type[Any]) -> list[str]:
    if issubclass(type_, msgspec.Struct):
        return list(type_.__struct_fields__)
    if dataclasses.is_dataclass(type_):
        return [field.name for field in dataclasses.fields(type_)]
    if typing_extensions.is_typeddict(type_):
        return list(type_.__annotations__)
    if is_pydantic(type_):
        return list(getattr(type_, "model_fields", ()))
    named: Any = getattr(type_, "_fields", ())  # of a NamedTuple
    return list(named) if type_.__base__ is tuple else []
