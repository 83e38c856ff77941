"""Walks over JSON Schemas that know what is a keyword and what is a name.

A property may be called `title`, `default`, `$ref` or `properties`: under `properties` there are
names, under `const`, `enum`, `default` and `examples` there is data, and neither is ever changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast
from urllib.parse import unquote

from workflow_protocol import JsonObject

_ONE = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_MANY = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_ANYTHING: JsonObject = {}
_NAMED = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)


_MAX_INDEX_DIGITS = 9
"""More would be no place in an array, and too many can't even be made a number."""


def map_schemas(node: JsonObject, apply: Callable[[JsonObject], Any]) -> JsonObject:
    """The same schema with each schema directly below it replaced by what `apply` makes of it.

    Names of properties are no keywords, and what stands under `const`, `enum`, `default` and
    `examples` is data: it stays as it is, even where it looks like a schema.
    """
    return {key: _mapped(key, value, apply) for key, value in node.items()}


def _mapped(key: str, value: Any, apply: Callable[[JsonObject], Any]) -> Any:
    if key in _ONE and isinstance(value, dict):
        return apply(cast("JsonObject", value))
    if key in _MANY and isinstance(value, list):
        return [_applied(item, apply) for item in cast("list[Any]", value)]
    if key in _NAMED and isinstance(value, dict):
        below = cast("JsonObject", value)
        return {name: _applied(item, apply) for name, item in below.items()}
    return value


def _applied(item: Any, apply: Callable[[JsonObject], Any]) -> Any:
    return apply(cast("JsonObject", item)) if isinstance(item, dict) else item


def find_schema(root: JsonObject, ref: str) -> JsonObject | None:
    """The schema that a reference names, if it is one inside `root`: `#`, `#/$defs/Name` …"""
    if not ref.startswith("#") or (len(ref) > 1 and ref[1] != "/"):
        return None
    node: Any = root
    for part in ref[2:].split("/") if len(ref) > 1 else ():
        key = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = cast("JsonObject", node).get(key)
        elif isinstance(node, list) and key.isdecimal() and len(key) < _MAX_INDEX_DIGITS:
            node = _at(cast("list[Any]", node), int(key), None)
        else:
            return None
    return cast("JsonObject", node) if isinstance(node, dict) else None


def followed(root: JsonObject, node: JsonObject) -> JsonObject:
    """The schema with its reference followed; one that leads nowhere allows anything."""
    for _ in range(32):
        ref = node.get("$ref")
        if not isinstance(ref, str):
            return node
        target = find_schema(root, ref)
        if target is None:
            return {}
        node = target
    return {}


def members(node: JsonObject) -> Sequence[JsonObject]:
    """The alternatives of a union, without those that are `false`; nothing where it is none."""
    return _schemas_in(node.get("anyOf") or node.get("oneOf"))


def all_of(node: JsonObject) -> list[JsonObject]:
    """The schemas under `allOf`."""
    return _schemas_in(node.get("allOf"))


def types_of(node: JsonObject) -> list[str]:
    """The types that a schema names, each once and in their order; nothing where it names none."""
    declared: Any = node.get("type")
    if isinstance(declared, str):
        return [declared]
    return list(dict.fromkeys(_texts_in(declared)))


def required_of(node: JsonObject) -> list[str]:
    """The keys that an object must have."""
    return _texts_in(node.get("required"))


def item_schema(node: JsonObject, index: int) -> JsonObject:
    """The schema of an array's item; the empty one where any item may stand."""
    found: Any = node.get("items")
    first: Any = node.get("prefixItems", found)
    if isinstance(first, list):
        rest = node.get("items") if "prefixItems" in node else node.get("additionalItems")
        found = _at(cast("list[Any]", first), index, rest)
    return cast("JsonObject", found) if isinstance(found, dict) else _ANYTHING


def _at(items: list[Any], index: int, otherwise: Any) -> Any:
    return items[index] if index < len(items) else otherwise


def _texts_in(found: object) -> list[str]:
    listed = cast("list[object]", found) if isinstance(found, list) else []
    return [each for each in listed if isinstance(each, str)]


def _schemas_in(found: object) -> list[JsonObject]:
    listed = cast("list[object]", found) if isinstance(found, list) else []
    schemas = [_ANYTHING if each is True else each for each in listed]
    return [cast("JsonObject", each) for each in schemas if isinstance(each, dict)]


def constants(node: JsonObject) -> list[Any] | None:
    """The only values that a schema allows by `const` or `enum`; `None` where it has neither."""
    if "const" in node:
        return [node["const"]]
    values = node.get("enum")
    return cast("list[Any]", values) if isinstance(values, list) else None


def type_of(value: object) -> str:
    """The JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"


def properties_of(node: JsonObject) -> dict[str, Any]:
    """The named properties of an object's schema."""
    found = node.get("properties")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def walk(node: JsonObject) -> Iterator[JsonObject]:
    """Yield a schema and every schema in it. References aren't followed."""
    yield node
    below: list[JsonObject] = []

    def note(item: JsonObject) -> JsonObject:
        below.append(item)
        return item

    map_schemas(node, note)
    for item in below:
        yield from walk(item)
