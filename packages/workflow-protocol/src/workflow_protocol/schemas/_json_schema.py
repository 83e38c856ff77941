"""JSON Schemas of types, as both libraries give them."""

from __future__ import annotations

from typing import Any, cast, get_origin

import msgspec

JsonObject = dict[str, Any]


def title_of(type_: Any) -> str:
    """A short name for people and models."""
    name = getattr(type_, "__name__", None) if get_origin(type_) is None else None
    return name if isinstance(name, str) else str(type_).replace("typing.", "")


def copied(schema: JsonObject) -> JsonObject:
    """A copy that may be changed."""
    return msgspec.json.decode(msgspec.json.encode(schema))


def with_sets_in_order(schema: Any) -> Any:
    """The same schema with the defaults of sets in one order, whatever order the process has.

    The schema is a part of requests, which a resume in another process makes again.
    """
    if isinstance(schema, list):
        return [with_sets_in_order(each) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = {key: with_sets_in_order(each) for key, each in cast("JsonObject", schema).items()}
    default = node.get("default")
    if node.get("uniqueItems") is True and isinstance(default, list):
        node["default"] = sorted(cast("list[Any]", default), key=msgspec.json.encode)
    return node


def inline_root(schema: JsonObject) -> JsonObject:
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
