"""Tools of MCP servers (Model Context Protocol) as a `Toolset`. Needs the extra `mcp`.

The SDK is imported when a server is connected, not before: it takes most of a second.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from workflow_agent_react.tools._toolset import Toolset
from workflow_agent_react.tools.mcp._server import McpServer
from workflow_protocol import Effect, ThreadContext
from workflow_reactor import ToolCall, kept

if TYPE_CHECKING:
    from workflow_agent_react.tools.mcp._client import Client, Listing
    from workflow_agent_react.tools.mcp._listing import RemoteTool

_log = logging.getLogger("workflow_agent_react")

Choose = Callable[[Toolset], Toolset]


@asynccontextmanager
async def open_mcp(server: McpServer) -> AsyncGenerator[Toolset]:
    """Connect to a server, and give its tools for as long as the block runs.

    The connection lives in a task of its own. A call that it fails raises `ToolError`, and the next
    call connects again. A tool that can't be offered is left out; the log says so.

    Raises:
        McpError: the SDK isn't installed, or the server can't be started, reached or understood.
    """
    from workflow_agent_react.tools.mcp._client import open_client

    async with open_client(server) as client:
        yield _toolset(client, await client.listing())


def mcp_toolset(server: str | McpServer, *, home: Path | None = None) -> McpToolset:
    """Tools of a server that is started when a role first needs it. Nothing is read or opened here.

    So an entry script may call it at its top level. The server stays open for the whole run.

    Args:
        server: a name from `mcp:` in `workflow.yaml`, or the server itself.
        home: where the configuration is; `find_home()` at the time of use if not given.
    """
    return McpToolset(server, home)


class McpToolset:
    """Tools of a server that a role opens. `only`, `without` and `renamed` as in `Toolset`."""

    def __init__(
        self, server: str | McpServer, home: Path | None = None, chosen: tuple[Choose, ...] = ()
    ) -> None:
        self.server = server
        self._home = home
        self._chosen = chosen

    def __repr__(self) -> str:
        return f"mcp_toolset({self.server!r})"

    def only(self, *names: str) -> McpToolset:
        """Just the named tools."""
        return self._and(lambda toolset: toolset.only(*names))

    def without(self, *names: str) -> McpToolset:
        """All but the named tools."""
        return self._and(lambda toolset: toolset.without(*names))

    def renamed(self, names: Mapping[str, str]) -> McpToolset:
        """The same tools, offered under other names (old to new)."""
        return self._and(lambda toolset: toolset.renamed(names))

    def _and(self, choose: Choose) -> McpToolset:
        return McpToolset(self.server, self._home, (*self._chosen, choose))

    @asynccontextmanager
    async def open(self, ctx: ThreadContext, key: str) -> AsyncGenerator[Toolset]:
        """Give the tools for a role's turn, as the turn's journal has them.

        Raises:
            McpError: the server isn't configured, or can't be started, reached or understood.
            ToolClash: a tool that was named isn't there.
        """
        from workflow_agent_react.tools.mcp._client import Listing, open_client

        server = self.server
        if isinstance(server, str):
            from workflow_agent_react.tools.mcp._configured import configured_server

            server = await configured_server(server, self._home)
        same = self.server if isinstance(self.server, str) else id(self.server)
        async with kept(("mcp", self._home, same), lambda: open_client(server)) as client:
            listing = await ctx.journal.run(key, client.listing, type=Listing, effect=Effect.READ)
            toolset = _toolset(client, listing)
            for choose in self._chosen:
                toolset = choose(toolset)
            yield toolset


def _toolset(client: Client, listing: Listing) -> Toolset:
    from workflow_agent_react.tools.mcp._listing import (
        instructions_of,
        prefix_of,
        remote_tools,
    )

    server = client.server
    tools = remote_tools(server, listing)
    if not tools:
        _log.warning("the MCP server %r offers no tools that can be used", server.place)
    return Toolset(
        tuple(tool.definition for tool in tools),
        _Remote(client, {tool.definition.name: tool for tool in tools}),
        instructions_of(server, listing, tools),
        prefix_of(server),
    )


class _Remote(msgspec.Struct, frozen=True):
    client: Client
    tools: Mapping[str, RemoteTool]

    async def __call__(self, call: ToolCall, ctx: ThreadContext) -> str:
        from workflow_agent_react.tools.mcp._result import result_text

        del ctx
        tool = self.tools[call.name]
        arguments = json.loads(call.arguments)
        result = await self.client.call(tool.name, arguments, tool.definition.effect)
        return result_text(result, tool.output_schema)
