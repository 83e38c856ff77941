"""One connection to a server, from start to end: the SDK's session on one of two transports.

This module imports the SDK, which takes most of a second, so it is imported when a server is
opened.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import anyio
from mcp import ClientSession, types
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from workflow_agent_react.tools.mcp._server import Access, McpServer
from workflow_agent_react.tools.mcp._streams import ServerFault, Streams
from workflow_protocol import JsonObject

MAX_PAGES = 1_000
_CLOSED = -32_000  # `CONNECTION_CLOSED` of the SDK
_NO_SUCH_METHOD = -32_601
_OTHER_VERSION = -32_022  # `UNSUPPORTED_PROTOCOL_VERSION`: the server speaks newer ones only
_FAULT = -32_099
_CLOSED_WORDS = "Connection closed"  # the SDK's own; servers use the code for other things, too


class _RawResult(Exception):
    """Carries a result past the SDK's session, which refuses a whole page for one odd tool."""

    def __init__(self, result: JsonObject) -> None:
        self.result = result
        super().__init__("a result")


class _Dispatcher(JSONRPCDispatcher[Any]):
    """Gives results as they came, and says when the connection is over."""

    def __init__(self, streams: Streams) -> None:
        super().__init__(streams.incoming, streams.outgoing)
        self.over = anyio.Event()
        self.instructions = ""

    async def send_raw_request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        opts: CallOptions | None = None,
        **private: Any,
    ) -> dict[str, Any]:
        result = await super().send_raw_request(method, params, opts, **private)
        if method.startswith("tools/"):
            raise _RawResult(result)
        if method in {"initialize", "server/discover"}:
            words = result.get("instructions")
            self.instructions = words if isinstance(words, str) else ""
        return _fit_for_the_session(result) if method == "initialize" else result

    async def run(self, *arguments: Any, **named: Any) -> None:
        try:
            await super().run(*arguments, **named)
        finally:
            self.over.set()


def _fit_for_the_session(result: JsonObject) -> JsonObject:
    """What of the answer to `initialize` is used at all, so that the rest may be as it likes."""
    return {
        "protocolVersion": result.get("protocolVersion"),
        "capabilities": {},
        "serverInfo": {"name": "server", "version": "0"},
    }


class Session:
    """A connection that is open. Its requests may be cancelled one by one."""

    def __init__(
        self,
        server: McpServer,
        session: ClientSession,
        dispatcher: _Dispatcher,
        streams: Streams,
    ) -> None:
        self._server = server
        self._session = session
        self._dispatcher = dispatcher
        self._streams = streams

    @property
    def instructions(self) -> str:
        """What the server says about its use."""
        return self._dispatcher.instructions

    @property
    def is_over(self) -> bool:
        """Whether nothing can be asked any more."""
        return self._dispatcher.over.is_set()

    async def until_over(self) -> None:
        """Wait until the connection ends."""
        await self._dispatcher.over.wait()

    def end(self) -> None:
        """Let the connection end."""
        self._dispatcher.over.set()

    def how_it_ended(self) -> str:
        """Why it is over, in words."""
        how = self._streams.how_it_ended() or "the connection was closed"
        said = self.said()
        return f"{how}; it said: {said}" if said else how

    def said(self) -> str:
        """What it wrote to standard error, or its beginning and end."""
        return self._streams.said()

    async def start(self) -> None:
        """Agree on a protocol. Over HTTP the newest is tried first: there a request that a server
        doesn't know gets an answer; on a pipe it may get none.

        Raises:
            ServerFault: it doesn't answer as it should.
        """
        try:
            if not (self._server.url and await self._discovered()):
                await self._shake_hands()
        except MCPError as error:
            raise self._fault(error) from error
        except (ValueError, RuntimeError) as error:  # pydantic's, or a version that nobody knows
            words = "its answer to `initialize` can't be understood"
            reason = words if isinstance(error, ValueError) else str(error)
            raise ServerFault(reason, sent=True, lost=True) from error

    async def _shake_hands(self) -> None:
        try:
            await self._session.initialize()
        except MCPError as error:
            if error.code not in {_OTHER_VERSION, _NO_SUCH_METHOD} or not await self._discovered():
                raise

    async def _discovered(self) -> bool:
        """Whether it speaks a protocol without a handshake."""
        try:
            with anyio.fail_after(self._server.start_timeout_s / 3):
                await self._session.discover()
        except MCPError as error:
            if error.code == _FAULT and not self._fault(error).status:
                raise  # it isn't reached at all
            return False
        except (ValueError, RuntimeError, TimeoutError):
            return False
        return True

    async def tools(self) -> list[Any]:
        """All pages of the list of tools, as the server writes them.

        Raises:
            ServerFault: it doesn't give a list.
        """
        tools: list[Any] = []
        seen: set[str] = set()
        cursor: str | None = None
        while True:
            request = types.ListToolsRequest(params=types.PaginatedRequestParams(cursor=cursor))
            try:
                page = await self._raw(request)
            except ServerFault as fault:
                if fault.answered and not tools and f"({_NO_SUCH_METHOD})" in fault.reason:
                    return []  # it may have resources and prompts alone
                raise
            listed = page.get("tools")
            if not isinstance(listed, list):
                raise ServerFault("its list of tools is no list", sent=True, lost=False)
            tools += cast("list[Any]", listed)
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                return tools
            if cursor in seen or len(seen) >= MAX_PAGES:
                reason = f"its list of tools never ends: the cursor {cursor[:40]!r} comes again"
                raise ServerFault(reason, sent=True, lost=False)
            seen.add(cursor)

    async def call(self, name: str, arguments: JsonObject) -> JsonObject:
        """Call a tool, and give the result as it came.

        Raises:
            ServerFault: there is none.
        """
        params = types.CallToolRequestParams(name=name, arguments=arguments)
        return await self._raw(types.CallToolRequest(params=params))

    async def _raw(self, request: types.ClientRequest) -> JsonObject:
        try:
            await self._session.send_request(request, types.EmptyResult)
        except _RawResult as raw:
            return raw.result
        except MCPError as error:
            raise self._fault(error) from error
        raise AssertionError("unreachable: results of tools/* come as _RawResult")

    def _fault(self, error: MCPError) -> ServerFault:
        given: object = error.error.data
        if error.code == _FAULT and isinstance(given, dict):
            data = cast("JsonObject", given)
            gone, status = bool(data["gone"]), int(data["status"])
            return ServerFault(error.message, sent=bool(data["sent"]), lost=gone, status=status)
        over = self.is_over or error.message == _CLOSED_WORDS
        if error.code == _CLOSED and (over or error.message.startswith("SSE stream")):
            reason = self.how_it_ended() if over else f"its answer broke off ({error.message})"
            return ServerFault(reason, sent=True, lost=over)
        reason = f"{error.message} ({error.code})"
        return ServerFault(reason, sent=False, lost=False, answered=True)


@asynccontextmanager
async def open_session(server: McpServer, access: Access) -> AsyncGenerator[Session]:
    """Open a connection that has not shaken hands.

    Raises:
        McpError: its settings can't be right.
    """
    async with _streams(server, access) as streams:
        dispatcher = _Dispatcher(streams)
        info = types.Implementation(name="united-workforce", version="0.1.0")
        async with ClientSession(dispatcher=dispatcher, client_info=info) as session:
            yield Session(server, session, dispatcher, streams)


@asynccontextmanager
async def _streams(server: McpServer, access: Access) -> AsyncGenerator[Streams]:
    if server.url:
        from workflow_agent_react.tools.mcp._http import http_streams

        async with http_streams(server, access) as streams:
            yield streams
    else:
        from workflow_agent_react.tools.mcp._stdio import stdio_streams

        async with stdio_streams(server, access) as streams:
            yield streams
