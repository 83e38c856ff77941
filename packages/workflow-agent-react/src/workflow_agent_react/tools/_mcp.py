"""Tools of MCP servers (Model Context Protocol) as a `Toolset`. Needs the extra `mcp`.

The SDK is imported when a server is opened, not before: it takes most of a second.
"""

from __future__ import annotations

import importlib
import json
import logging
import re
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain, count
from pathlib import Path
from typing import Any, cast

import msgspec

from workflow_agent_react._errors import McpError, ToolError
from workflow_agent_react.tools._toolset import Toolset
from workflow_protocol import Effect, ThreadContext, WorkflowError
from workflow_reactor import (
    ToolCall,
    ToolDefinition,
    ToolNameError,
    ToolSchemaError,
    shown_url,
    without_keys,
)

_log = logging.getLogger("workflow_agent_react")
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """Where an MCP server is: a command to start, or the URL of a running one.

    Raises:
        McpError: not exactly one of `command` and `url` is given.
    """

    command: Sequence[str] = ()
    """Started for as long as the server is open; it speaks on its standard input and output."""
    env: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])
    """Variables for the command, beside the few (PATH, HOME, …) that the SDK passes on."""
    folder: Path | None = None
    """Where the command is started."""
    url: str = ""
    """A streamable HTTP endpoint, such as `http://localhost:8000/mcp`."""
    trust_hints: bool = False
    """Believe the server which of its tools only read or may be repeated. By default none may."""
    timeout_s: float = 120.0
    """Seconds that one call may take."""

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise McpError(self.place, "give either `command` or `url`")

    def __repr__(self) -> str:
        return f"McpServer({self.place!r})"

    @property
    def place(self) -> str:
        """The URL, or the command in one line, without what may be a key."""
        return shown_url(self.url) if self.url else without_keys(" ".join(self.command))


@asynccontextmanager
async def open_mcp(server: McpServer) -> AsyncGenerator[Toolset]:
    """Connect to a server, and give its tools for as long as the block runs.

    A tool whose parameters are no usable JSON Schema is left out; the log says so.

    Raises:
        McpError: the SDK isn't installed, or the server can't be started, reached or understood.
    """
    mcp = _sdk(server)
    connected = False
    try:
        async with mcp.Client(_target(mcp, server)) as client:
            tools = await _tools(client)
            connected = True
            yield _toolset(server, client, tools)
    except WorkflowError:
        raise
    except Exception as error:
        single = _single(error)
        if connected or isinstance(single, WorkflowError):
            raise single from single.__cause__
        raise McpError(server.place, without_keys(f"{type(single).__name__}: {single}")) from error


def _sdk(server: McpServer) -> Any:
    try:
        return importlib.import_module("mcp")
    except ImportError as error:
        reason = "the MCP SDK is missing; install workflow-agent-react[mcp]"
        raise McpError(server.place, reason) from error


def _target(mcp: Any, server: McpServer) -> Any:
    if server.url:
        return server.url
    command, *arguments = server.command
    parameters = mcp.StdioServerParameters(
        command=command, args=arguments, env=dict(server.env) or None, cwd=server.folder
    )
    return mcp.stdio_client(parameters)


async def _tools(client: Any) -> list[Any]:
    """All pages of the list of tools."""
    tools: list[Any] = []
    cursor: str | None = None
    while True:
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            return tools


def _toolset(server: McpServer, client: Any, tools: Sequence[Any]) -> Toolset:
    names: dict[str, Any] = {}
    for tool in tools:
        names[_free_name(tool.name, names)] = tool
    definitions = [_definition(server, name, tool) for name, tool in names.items()]
    return Toolset(
        tuple(filter(None, definitions)),
        _Remote(client, {name: tool.name for name, tool in names.items()}),
    )


def _definition(server: McpServer, name: str, tool: Any) -> ToolDefinition | None:
    """The tool, or `None` when it can't be offered: the others of its server can."""
    try:
        return ToolDefinition(
            name=name,
            description=tool.description or tool.title or "",
            parameters={"type": "object", **tool.input_schema},
            effect=_effect(tool.annotations) if server.trust_hints else Effect.UNSAFE,
            timeout_s=server.timeout_s,
        )
    except (ToolNameError, ToolSchemaError) as error:
        _log.warning("a tool of the MCP server %r is left out: %s", server.place, error)
        return None


def _free_name(wanted: str, taken: Collection[str]) -> str:
    """A name that a tool may have, with a number if another one has it: `a.b` beside `a_b`."""
    name = _NOT_IN_A_NAME.sub("_", wanted)[:64]
    numbered = (f"{name[:60]}_{number}" for number in count(2))
    return next(free for free in chain([name], numbered) if free not in taken)


def _effect(hints: Any) -> Effect:
    if hints is not None and hints.read_only_hint:
        return Effect.READ
    if hints is not None and hints.idempotent_hint:
        return Effect.REPEATABLE
    return Effect.UNSAFE


class _Remote(msgspec.Struct, frozen=True):
    client: Any
    names: Mapping[str, str]

    async def __call__(self, call: ToolCall, ctx: ThreadContext) -> str:
        del ctx
        result = await self.client.call_tool(self.names[call.name], json.loads(call.arguments))
        text = "\n".join(map(_block, result.content))
        if not text and result.structured_content is not None:
            text = json.dumps(result.structured_content, ensure_ascii=False)
        if result.is_error:
            raise ToolError(text or "the tool failed and gave no reason")
        return text or "done"


def _block(block: Any) -> str:
    """Text as it is; of what a text model can't see, that it was there."""
    match block.type:
        case "text":
            return str(block.text)
        case "resource" if hasattr(block.resource, "text"):
            return str(block.resource.text)
        case "resource_link":
            return f"({block.name}: {block.uri})"
        case kind:
            return f"({kind}, not shown)"


def _single(error: Exception) -> Exception:
    """The one exception in groups of one: the SDK's task groups wrap what passes through them."""
    if isinstance(error, ExceptionGroup):
        members = cast("ExceptionGroup[Exception]", error).exceptions
        return _single(members[0]) if len(members) == 1 else cast("Exception", error)
    return error
