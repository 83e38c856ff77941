"""From what a server lists to tools that can be offered. An odd one is left out, alone."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Sequence
from typing import cast

import msgspec

from workflow_agent_react.tools._names import free_name, prefixed
from workflow_agent_react.tools.mcp._client import Listing
from workflow_agent_react.tools.mcp._lines import as_json
from workflow_agent_react.tools.mcp._server import McpServer
from workflow_protocol import Effect, JsonObject
from workflow_reactor import (
    RESOLVE,
    ToolDefinition,
    ToolNameError,
    ToolSchemaError,
    find_schema,
    map_schemas,
)

_log = logging.getLogger("workflow_agent_react")

READ_RESULT = "read_result"
RESERVED = frozenset({RESOLVE, READ_RESULT})
"""Names of the adapter's own tools."""
MAX_DESCRIPTION_CHARS = 1024
"""Of a tool; OpenAI's endpoints refuse a request with a longer one."""
MAX_INSTRUCTION_CHARS = 8_000
"""Of a server; what is beyond is cut, as it goes out with each request."""
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
_PARAMETER = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class RemoteTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that can be offered, and what it is on its server."""

    definition: ToolDefinition
    name: str
    """Its name there."""
    description: str
    """All of it."""
    output_schema: JsonObject | None = None


class Unusable(ValueError):
    """Why a tool can't be offered."""


def remote_tools(server: McpServer, listing: Listing) -> list[RemoteTool]:
    """The tools of a server that can be offered; a warning names each of the others."""
    found: list[RemoteTool] = []
    taken = set(RESERVED)
    listed = cast("list[object]", listing.tools)
    for number, each in enumerate(listed, start=1):
        tool: JsonObject = cast("JsonObject", each) if isinstance(each, dict) else {}
        wanted = tool.get("name")
        try:
            if not isinstance(wanted, str) or not wanted:
                raise Unusable(f"it has no name: {as_json(listed[number - 1])[:200]}")
            name = _free_name(server, wanted, taken)
            found.append(_remote_tool(server, name, tool))
            taken.add(name)
        except (Unusable, ToolNameError, ToolSchemaError) as error:
            which = repr(wanted) if isinstance(wanted, str) and wanted else f"number {number}"
            _log.warning(
                "a tool of the MCP server %r is left out: %s: %s", server.place, which, error
            )
    return found


def instructions_of(server: McpServer, listing: Listing, tools: Sequence[RemoteTool]) -> str:
    """What the model reads about a server: its own words, and descriptions that were cut."""
    parts = [listing.instructions.strip()[:MAX_INSTRUCTION_CHARS]]
    for tool in tools:
        if len(tool.description) > MAX_DESCRIPTION_CHARS:
            parts.append(f"{tool.definition.name}: {tool.description[:MAX_INSTRUCTION_CHARS]}")
    words = "\n\n".join(filter(None, parts))
    return f"## About the tools of {server.place}\n\n{words}" if words else ""


def _remote_tool(server: McpServer, name: str, tool: JsonObject) -> RemoteTool:
    execution = tool.get("execution")
    if (
        isinstance(execution, dict)
        and cast("JsonObject", execution).get("taskSupport") == "required"
    ):
        raise Unusable("it runs only as a task of MCP, which isn't supported")
    whole = text = _description(tool)
    if len(text) > MAX_DESCRIPTION_CHARS:
        text = f"{text[: MAX_DESCRIPTION_CHARS - 40]}… (whole in the instructions)"
    output_schema = tool.get("outputSchema")
    return RemoteTool(
        definition=ToolDefinition(
            name=name,
            description=text,
            parameters=_parameters(tool.get("inputSchema")),
            effect=_effect(tool.get("annotations")) if server.trust_hints else Effect.UNSAFE,
            timeout_s=None,  # the client has limits for each of its steps
        ),
        name=tool["name"],
        description=whole,
        output_schema=cast("JsonObject", output_schema)
        if isinstance(output_schema, dict)
        else None,
    )


def _description(tool: JsonObject) -> str:
    given = (tool.get("description"), tool.get("title"))
    return next((each.strip() for each in given if isinstance(each, str) and each.strip()), "")


def _parameters(schema: object) -> JsonObject:
    """The schema of a tool's parameters, whose root is an object's.

    Raises:
        Unusable: it says nothing, or something else.
    """
    if not isinstance(schema, dict) or not schema:
        shown = "missing" if schema is None else as_json(cast("object", schema))[:200]
        raise Unusable(f"its inputSchema is {shown}, where the schema of an object is due")
    root = cast("JsonObject", schema)
    ref = root.get("$ref")
    if isinstance(ref, str):
        target = find_schema(root, ref)
        if target is None:
            raise Unusable(f"its inputSchema refers to {ref!r}, which isn't there")
        root = {**target, **{key: value for key, value in root.items() if key != "$ref"}}
    if root.get("type", "object") not in ("object", ["object"]):
        raise Unusable(f"its inputSchema is of type {root['type']!r}, where an object is due")
    odd = [name for name in _names(root) if not _PARAMETER.fullmatch(name)]
    if odd:
        raise Unusable(f"endpoints refuse its parameter {odd[0]!r}: letters, digits, '_', '.', '-'")
    return {"properties": {}, **_complete(root), "type": "object"}


def _complete(node: JsonObject) -> JsonObject:
    """The same schema with the keys that some endpoints want: what it allows stays the same."""
    return map_schemas(node, _complete_below)


def _complete_below(node: JsonObject) -> JsonObject:
    node = _complete(node)
    kinds = node.get("type")
    types = cast("list[object]", kinds) if isinstance(kinds, list) else [kinds]
    if "object" in types and "properties" not in node:
        node = {"additionalProperties": True, **node, "properties": {}}
    if "array" in types and node.get("items", True) is True:
        node = {**node, "items": {}}
    return node


def _names(root: JsonObject) -> Iterator[str]:
    """The parameters, those in the alternatives of a root included."""
    properties = root.get("properties")
    if isinstance(properties, dict):
        yield from cast("JsonObject", properties)
    for key in ("anyOf", "oneOf", "allOf"):
        members = root.get(key)
        for member in cast("list[object]", members) if isinstance(members, list) else []:
            if isinstance(member, dict):
                yield from _names(cast("JsonObject", member))


def _free_name(server: McpServer, wanted: str, taken: Collection[str]) -> str:
    """A name that a tool may have: with a number if another one has it, `a.b` beside `a_b`."""
    name = _NOT_IN_A_NAME.sub("_", wanted)[:64]
    if name in RESERVED:
        name = prefixed(prefix_of(server), name, taken)
        _log.warning(
            "the tool %r of the MCP server %r is offered as %r: the name is the adapter's own",
            wanted,
            server.place,
            name,
        )
    return free_name(name, taken)


def prefix_of(server: McpServer) -> str:
    """What stands before the names of its tools where they are taken."""
    return _NOT_IN_A_NAME.sub("_", server.name)[:30].strip("_") or "mcp"


def _effect(annotations: object) -> Effect:
    hints = cast("JsonObject", annotations) if isinstance(annotations, dict) else {}
    if hints.get("readOnlyHint") is True:
        return Effect.READ
    if hints.get("idempotentHint") is True:
        return Effect.REPEATABLE
    return Effect.UNSAFE
