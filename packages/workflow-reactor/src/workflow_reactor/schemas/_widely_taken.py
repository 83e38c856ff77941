"""Parameters of tools in the form that every endpoint takes.

OpenAI's and Anthropic's refuse the whole request for one tool whose root is a union (`anyOf`,
`oneOf`, `allOf`, `enum` or `not` at the top level). Folded into one object, a key takes the forms
that any alternative names for it; the local check keeps the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from workflow_protocol import JsonObject
from workflow_reactor.schemas._walk import followed, map_schemas, properties_of, types_of

MAX_DEPTH = 8
"""So deep may unions stand inside a union at the root; what is deeper allows anything."""
_NOT_AT_THE_ROOT = frozenset(
    {"$ref", "allOf", "anyOf", "const", "else", "enum", "if", "not", "oneOf", "then"}
)


def widely_taken(schema: JsonObject) -> JsonObject:
    """Parameters whose root is a plain object, without lists of `items`."""
    whole = schema if _NOT_AT_THE_ROOT.isdisjoint(schema) else _folded(schema, schema, 0)
    return _without_tuples(whole)


def _folded(root: JsonObject, node: JsonObject, depth: int) -> JsonObject:
    """An object in place of unions: what must hold together is merged, alternatives are joined."""
    if depth > MAX_DEPTH:
        return {}
    if "$ref" in node:
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _folded(root, {**followed(root, node), **beside}, depth + 1)
    properties = properties_of(node).copy()
    required = dict.fromkeys(_names(node.get("required")))
    for part in _members(root, node, "allOf", depth):
        properties = {**properties_of(part), **properties}
        required |= dict.fromkeys(part["required"])
    for key in ("anyOf", "oneOf"):
        options = _members(root, node, key, depth)
        names = dict.fromkeys(name for each in options for name in properties_of(each))
        for name in names.keys() - properties.keys():
            properties[name] = _any_of(
                [each for each in options if name in properties_of(each)], name
            )
        common = [_names(each["required"]) for each in options]
        if common:
            required |= dict.fromkeys(name for name in common[0] if all(name in c for c in common))
    kept = {key: value for key, value in node.items() if key not in _NOT_AT_THE_ROOT}
    ordered = {name: properties[name] for name in _ordered(root, node, properties, depth)}
    return {**kept, "type": "object", "properties": ordered, "required": list(required)}


def _members(root: JsonObject, node: JsonObject, key: str, depth: int) -> list[JsonObject]:
    """The members of a union that can be an object, folded themselves."""
    found: Any = node.get(key)
    listed = cast("list[Any]", found) if isinstance(found, list) else []
    schemas = [cast("JsonObject", each) if isinstance(each, dict) else {} for each in listed]
    followed_ = [followed(root, each) for each in schemas]
    objects = [each for each in followed_ if "object" in (types_of(each) or ["object"])]
    return [_folded(root, each, depth + 1) for each in objects]


def _ordered(
    root: JsonObject, node: JsonObject, properties: JsonObject, depth: int
) -> Sequence[str]:
    """The names in the order in which the schema has them: sets have none."""
    own = list(properties_of(node))
    below = [
        name
        for key in ("allOf", "anyOf", "oneOf")
        for each in _members(root, node, key, depth)
        for name in properties_of(each)
    ]
    return list(dict.fromkeys(name for name in [*own, *below] if name in properties))


def _any_of(options: Sequence[JsonObject], name: str) -> Any:
    schemas = [properties_of(each)[name] for each in options]
    distinct = [each for index, each in enumerate(schemas) if each not in schemas[:index]]
    return distinct[0] if len(distinct) == 1 else {"anyOf": distinct}


def _names(value: object) -> list[str]:
    listed = cast("list[object]", value) if isinstance(value, list) else []
    return [each for each in listed if isinstance(each, str)]


def _without_tuples(node: JsonObject) -> JsonObject:
    """A schema whose `items` are one schema: drafts before 2020-12 have a list of them there."""
    node = map_schemas(node, _without_tuples)
    items: Any = node.get("items")
    if isinstance(items, list):
        node["items"] = {"anyOf": cast("list[Any]", items)} if items else {}
    return node
