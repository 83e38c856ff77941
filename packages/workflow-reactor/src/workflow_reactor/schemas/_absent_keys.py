"""The way back from strict mode: a null that stands for a key that isn't there.

In strict mode a model must write every key, and null for one that it would leave out. Where the
schema itself doesn't take null, such a key is dropped before anybody validates the value. That is
done for lax endpoints too: models write `"limit": null` unasked.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from workflow_protocol import JsonObject
from workflow_reactor.schemas._walk import (
    constants,
    followed,
    members,
    properties_of,
    type_of,
    types_of,
)


def without_absent(schema: JsonObject, text: str) -> str:
    """The JSON text without the nulls that stand for absent keys.

    A text without such nulls comes back as it is, and so does one that isn't JSON.
    """
    if "null" not in text:
        return text
    try:
        value = msgspec.json.decode(text)
        restored = _restored(schema, schema, value)
        return text if restored is value else msgspec.json.encode(restored).decode()
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return text


def _restored(root: JsonObject, node: JsonObject, value: Any) -> Any:
    """The value with absent keys dropped: the same object where there is nothing to drop."""
    node = followed(root, node)
    if "allOf" in node:
        return _of_all(root, node, value)
    if options := members(node):
        return _of_union(root, node, options, value)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return _of_object(root, node, fields)
    if isinstance(value, list):
        items = cast("list[Any]", value)
        schemas = [_item_schema(node, index) for index in range(len(items))]
        restored = [_restored(root, *each) for each in zip(schemas, items, strict=True)]
        return items if all(map(operator.is_, restored, items)) else restored
    return value


def _item_schema(node: JsonObject, index: int) -> JsonObject:
    first: Any = node.get("prefixItems", ())
    found: Any = first[index] if index < len(first) else node.get("items")
    return cast("JsonObject", found) if isinstance(found, dict) else {}


def _of_object(root: JsonObject, node: JsonObject, fields: dict[str, Any]) -> dict[str, Any]:
    properties = properties_of(node)
    required = cast("Sequence[str]", node.get("required", ()))
    restored: dict[str, Any] = {}
    changed = False
    for name, value in fields.items():
        below: Any = properties.get(name, node.get("additionalProperties"))
        schema = cast("JsonObject", below) if isinstance(below, dict) else {}
        optional = name in properties and name not in required
        if value is None and optional and not takes_null(root, schema):
            changed = True
            continue
        restored[name] = _restored(root, schema, value)
        changed |= restored[name] is not value
    return restored if changed else fields


def _of_all(root: JsonObject, node: JsonObject, value: Any) -> Any:
    beside = {key: each for key, each in node.items() if key != "allOf"}
    for each in _all_of(node):
        value = _restored(root, each, value)
    return _restored(root, beside, value)


def _all_of(node: JsonObject) -> list[JsonObject]:
    parts = cast("Sequence[Any]", node.get("allOf", ()))
    return [cast("JsonObject", each) for each in parts if isinstance(each, dict)]


def _of_union(root: JsonObject, node: JsonObject, options: Sequence[JsonObject], value: Any) -> Any:
    """By the first member that fits as it is, else by the first that fits without its nulls."""
    beside = {key: each for key, each in node.items() if key not in {"anyOf", "oneOf"}}
    tried = [(_restored(root, option, value), option) for option in options]
    for restored, option in tried:
        if restored is value and _fits(root, option, value):
            return _restored(root, beside, value)
    for restored, option in tried:
        if _fits(root, option, restored):
            return _restored(root, beside, restored)
    return _restored(root, beside, value)


def takes_null(root: JsonObject, node: JsonObject, depth: int = 16) -> bool:
    """Whether null fits a schema, by what can be seen from its types, constants and unions."""
    node = followed(root, node)
    if not depth:
        return True
    values = constants(node)
    if values is not None and None not in values:
        return False
    types = types_of(node)
    if types and "null" not in types:
        return False
    options = members(node)
    if options and not any(takes_null(root, each, depth - 1) for each in options):
        return False
    return all(takes_null(root, each, depth - 1) for each in _all_of(node))


def _fits(root: JsonObject, node: JsonObject, value: Any, depth: int = 16) -> bool:
    """Whether a value has the shape of a schema: what it takes to tell a union's members apart."""
    node = followed(root, node)
    if not depth:
        return True
    values = constants(node)
    if values is not None and not any(
        type(each) is type(value) and each == value for each in values
    ):
        return False
    types = types_of(node)
    kind = type_of(value)
    if types and kind not in types and not (kind == "integer" and "number" in types):
        return False
    options = members(node)
    if options and not any(_fits(root, each, value, depth - 1) for each in options):
        return False
    if not all(_fits(root, each, value, depth - 1) for each in _all_of(node)):
        return False
    if isinstance(value, list):
        items = cast("list[Any]", value)
        return all(
            _fits(root, _item_schema(node, index), item, depth - 1)
            for index, item in enumerate(items)
        )
    if isinstance(value, dict):
        fields = cast("Mapping[str, Any]", value)
        properties = properties_of(node)
        closed = node.get("additionalProperties") is False
        return (
            all(name in fields for name in node.get("required", ()))
            and not (closed and fields.keys() - properties.keys())
            and all(
                _fits(root, properties[name], item, depth - 1)
                for name, item in fields.items()
                if isinstance(properties.get(name), dict)
            )
        )
    return True
