"""Tools in words, for dialects whose tools stand in the prompt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import msgspec

from workflow_protocol import JsonObject
from workflow_reactor import ToolDefinition


def tool_line(tool: ToolDefinition) -> str:
    """`- name(path: string, limit?: integer): what it does`, then what needs more words."""
    types = "".join(
        f"\n    {name} = {type_words(each)}"
        for key in ("$defs", "definitions")
        for name, each in _mapping_at(tool.parameters, key).items()
    )
    head = f"- {tool.name}({parameter_words(tool)}): {tool.description}"
    return f"{head}{parameter_notes(tool)}{types}"


def parameter_notes(tool: ToolDefinition) -> str:
    """The descriptions of the parameters that have one, a line each."""
    return "".join(
        f"\n    {name}: {schema['description']}"
        for name, schema in properties_of(tool.parameters).items()
        if "description" in schema
    )


def properties_of(schema: JsonObject) -> Mapping[str, JsonObject]:
    """The properties of an object's schema; `true`, which is a schema too, as the empty one."""
    properties = _mapping_at(schema, "properties")
    return {
        name: cast("JsonObject", each) if isinstance(each, dict) else {}
        for name, each in properties.items()
    }


def required_of(schema: JsonObject) -> list[str]:
    """The keys that an object must have."""
    return [each for each in _list_at(schema, "required") if isinstance(each, str)]


def members_of(schema: JsonObject) -> list[object]:
    """The alternatives of a union, each a schema or `true` or `false`."""
    return _list_at(schema, "anyOf") or _list_at(schema, "oneOf")


def types_of(schema: JsonObject) -> list[str]:
    """The types that a schema names."""
    type_: object = schema.get("type")
    if isinstance(type_, str):
        return [type_]
    return [each for each in _list_at(schema, "type") if isinstance(each, str)]


def constants_of(schema: JsonObject) -> list[object]:
    """The only values that there may be; none where the schema doesn't say."""
    return [schema["const"]] if "const" in schema else _list_at(schema, "enum")


def type_words(schema: object) -> str:
    """A schema in a few words: `string | null`, `[integer, …]`, `{path: string, limit?: integer}`.

    Any JSON Schema has some: `any` where there is nothing to say, `nothing` for `false`.
    """
    if not isinstance(schema, dict):
        return "nothing" if schema is False else "any"
    node = cast("JsonObject", schema)
    if values := constants_of(node):
        return " | ".join(msgspec.json.encode(each).decode() for each in values)
    if options := members_of(node):
        return " | ".join(dict.fromkeys(map(type_words, options)))
    match types_of(node):
        case ["array"]:
            items: object = node.get("items")
            return f"[{type_words(cast('object', items) if isinstance(items, dict) else True)}, …]"
        case ["object"] if "properties" in node:
            return "{" + _fields(node) + "}"
        case types:
            ref: object = node.get("$ref")
            name = ref.rpartition("/")[2] if isinstance(ref, str) else ""
            return name or " | ".join(types) or "any"


def parameter_words(tool: ToolDefinition) -> str:
    """`path: string, limit?: integer`."""
    return _fields(tool.parameters)


def _fields(schema: JsonObject) -> str:
    required = frozenset(required_of(schema))
    return ", ".join(
        f"{name}{'' if name in required else '?'}: {type_words(each)}"
        for name, each in _mapping_at(schema, "properties").items()
    )


def _mapping_at(schema: JsonObject, key: str) -> Mapping[str, object]:
    found: object = schema.get(key)
    return cast("Mapping[str, object]", found) if isinstance(found, dict) else {}


def _list_at(schema: JsonObject, key: str) -> list[object]:
    found: object = schema.get(key)
    return cast("list[object]", found) if isinstance(found, list) else []
