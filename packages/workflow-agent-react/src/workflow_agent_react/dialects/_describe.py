"""Tools in words, for dialects whose tools stand in the prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from workflow_protocol import JsonObject
from workflow_reactor import ToolDefinition


def tool_line(tool: ToolDefinition) -> str:
    """`- name(path: string, limit?: integer): what it does`, then what needs more words."""
    types = "".join(
        f"\n    {name} = {type_words(each)}"
        for key in ("$defs", "definitions")
        for name, each in cast("Mapping[str, JsonObject]", tool.parameters.get(key, {})).items()
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
    properties = cast("Mapping[str, object]", schema.get("properties", {}))
    return {
        name: cast("JsonObject", each) if isinstance(each, dict) else {}
        for name, each in properties.items()
    }


def type_words(schema: JsonObject) -> str:
    if "const" in schema:
        return msgspec.json.encode(schema["const"]).decode()
    if "enum" in schema:
        return " | ".join(msgspec.json.encode(each).decode() for each in schema["enum"])
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return " | ".join(dict.fromkeys(type_words(option) for option in options))
    if schema.get("type") == "array":
        items = schema.get("items")
        return f"[{type_words(cast('JsonObject', items) if isinstance(items, dict) else {})}, …]"
    if schema.get("type") == "object" and "properties" in schema:
        return "{" + _fields(schema) + "}"
    ref = schema.get("$ref")
    if isinstance(ref, str):
        return ref.rpartition("/")[2]
    type_ = schema.get("type", "any")
    return type_ if isinstance(type_, str) else " | ".join(type_)


def parameter_words(tool: ToolDefinition) -> str:
    """`path: string, limit?: integer`."""
    return _fields(tool.parameters)


def _fields(schema: JsonObject) -> str:
    required = cast("Sequence[str]", schema.get("required", ()))
    return ", ".join(
        f"{name}{'' if name in required else '?'}: {type_words(each)}"
        for name, each in properties_of(schema).items()
    )
