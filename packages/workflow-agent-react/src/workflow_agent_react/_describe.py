"""Tools in words, for dialects whose tools stand in the prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec

from workflow_protocol import JsonObject
from workflow_reactor import ToolDefinition


def tool_line(tool: ToolDefinition) -> str:
    """`- name(path: string, limit?: integer): what it does`, then what needs more words."""
    return f"- {tool.name}({parameter_words(tool)}): {tool.description}{parameter_notes(tool)}"


def parameter_notes(tool: ToolDefinition) -> str:
    """The descriptions of the parameters that have one, a line each."""
    properties = cast("Mapping[str, JsonObject]", tool.parameters.get("properties", {}))
    return "".join(
        f"\n    {name}: {schema['description']}"
        for name, schema in properties.items()
        if "description" in schema
    )


def type_words(schema: JsonObject) -> str:
    if "const" in schema:
        return msgspec.json.encode(schema["const"]).decode()
    if "enum" in schema:
        return " | ".join(msgspec.json.encode(each).decode() for each in schema["enum"])
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        return " | ".join(dict.fromkeys(type_words(option) for option in options))
    if schema.get("type") == "array":
        return f"[{type_words(schema.get('items', {}))}, …]"
    if schema.get("type") == "object" and "properties" in schema:
        inner = (f"{key}: {type_words(each)}" for key, each in schema["properties"].items())
        return "{" + ", ".join(inner) + "}"
    ref = schema.get("$ref")
    if isinstance(ref, str):
        return ref.rpartition("/")[2]
    return str(schema.get("type", "any"))


def parameter_words(tool: ToolDefinition) -> str:
    """`path: string, limit?: integer`."""
    properties = cast("Mapping[str, JsonObject]", tool.parameters.get("properties", {}))
    required = cast("Sequence[str]", tool.parameters.get("required", ()))
    return ", ".join(
        f"{name}{'' if name in required else '?'}: {type_words(schema)}"
        for name, schema in properties.items()
    )
