"""What an error of the validator means, in a model's words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from workflow_protocol import Fault

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

_KINDS = {
    "null": "null",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "array": "an array",
    "object": "an object",
}
_BOUNDS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
}
_SIZES = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "minProperties": "at least {} keys",
    "maxProperties": "at most {} keys",
}
SEVERAL = "fits more than one of the forms that it may have; make it fit one"


def faults_of(error: ValidationError) -> Iterator[Fault]:
    """The faults that one error stands for, each with its place."""
    place = "$" + "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
    )
    keyword = error.kind.name
    match keyword:
        case "required":
            yield Fault(f"{place}.{_detail(error, 'property')}", "required, but missing")
        case "additionalProperties" | "unevaluatedProperties":
            for name in _detail(error, "unexpected") or ():
                yield Fault(f"{place}.{name}", "unknown field")
        case "anyOf" | "oneOf":
            yield from _of_union(error, place)
        case _:
            yield Fault(place, _words(keyword, error))


def _detail(error: ValidationError, name: str) -> Any:
    """What the error says beside its keyword. It differs from version to version of the library."""
    return error.kind.as_dict().get(name)


def _kinds(error: ValidationError) -> list[str]:
    """The types that were expected, in words."""
    types: Sequence[str] = _detail(error, "types") or ()
    return [_KINDS.get(each, each) for each in types]


def _words(keyword: str, error: ValidationError) -> str:
    match keyword:
        case "type":
            return f"expected {' or '.join(_kinds(error))}, got {_given(error.instance)}"
        case "enum":
            options = " or ".join(map(_json, _detail(error, "options") or ()))
            return f"expected {options}, got {_given(error.instance)}"
        case "const":
            return f"expected {_json(error.kind.value)}, got {_given(error.instance)}"
        case "falseSchema" | "additionalItems" | "unevaluatedItems":
            return "nothing may stand here"
        case "pattern":
            return f"expected a string that matches {error.kind.value}"
        case "uniqueItems":
            return "expected items that all differ"
        case _ if keyword in _BOUNDS:
            return f"expected {_BOUNDS[keyword]} {_json(error.kind.value)}"
        case _ if keyword in _SIZES:
            return f"expected {_SIZES[keyword].format(error.kind.value)}"
        case _:
            return error.message[:200]


def _of_union(error: ValidationError, place: str) -> Iterator[Fault]:
    """The faults of the member that the value comes nearest to, or the types there are."""
    context: Sequence[Sequence[ValidationError]] = error.kind.as_dict().get("context", ())
    if not all(context):
        yield Fault(place, SEVERAL)
        return
    depth = len(error.instance_path)
    near = [faults for faults in context if not _is_of_another_type(faults, depth)]
    if near:
        for each in min(near, key=_distance):
            yield from faults_of(each)
        return
    of_types = [each for faults in context for each in faults if each.kind.name == "type"]
    expected = " or ".join(dict.fromkeys(kind for each in of_types for kind in _kinds(each)))
    yield Fault(place, f"expected {expected}, got {_given(error.instance)}")


def _is_of_another_type(faults: Sequence[ValidationError], depth: int) -> bool:
    return any(each.kind.name == "type" and len(each.instance_path) == depth for each in faults)


def _distance(faults: Sequence[ValidationError]) -> tuple[int, int]:
    """A constant that differs is most often the tag of another member."""
    return sum(each.kind.name in {"const", "enum"} for each in faults), len(faults)


def _given(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool() | int() | float():
            return _json(value)
        case str():
            return f"a string ({value[:40]!r}{'…' if len(value) > 40 else ''})"
        case list():
            return "an array"
        case _:
            return "an object"


def _json(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError):
        return repr(value)[:100]
