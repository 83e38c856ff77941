"""A server as its users see it: a connection that is made when it is needed, and made again.

Each connection lives in a task of its own. Whatever happens there reaches a caller as the outcome
of a call, never as a cancellation.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.abc
import msgspec

from workflow_agent_react._errors import McpError, ToolError
from workflow_agent_react.tools.mcp._server import Access, McpServer, access_to
from workflow_agent_react.tools.mcp._streams import ServerFault
from workflow_protocol import Effect, JsonObject

if TYPE_CHECKING:
    from workflow_agent_react.tools.mcp._session import Session

_log = logging.getLogger("workflow_agent_react")

MAX_STARTS_IN_VAIN = 3
"""A command that ended so often without one answer in between is not started again."""
LEGACY_SSE = (
    "; if this is a server of the older HTTP+SSE transport: that isn't supported, start it with "
    "streamable HTTP"
)


class Listing(msgspec.Struct, frozen=True):
    """What a server says about its tools, as it says it."""

    tools: list[Any]
    instructions: str = ""


class Client:
    """A server that is used by any number of roles at the same time. Made by `open_client`."""

    def __init__(self, server: McpServer, group: anyio.abc.TaskGroup) -> None:
        self.server = server
        self._group = group
        self._access: Access | None = None
        self._session: Session | None = None
        self._connecting = anyio.Lock()
        self._starts_in_vain = 0
        self._last_words = ""
        self._closing = anyio.Event()

    def hide(self, text: str) -> str:
        """A text without the server's secrets."""
        return text if self._access is None else self._access.hide(text)

    async def listing(self) -> Listing:
        """Connect if need be, and ask for all tools.

        Raises:
            McpError: the server can't be started, reached or understood.
        """
        session = await self._connected()
        limit_s = self.server.list_timeout_s
        try:
            with anyio.fail_after(limit_s):
                tools = await session.tools()
        except TimeoutError as error:
            raise self._error(f"it didn't list its tools within {limit_s:g} s") from error
        except ServerFault as fault:
            raise self._error(f"it didn't list its tools: {fault.reason}") from fault
        self._starts_in_vain = 0
        return Listing(tools, self.hide(session.instructions))

    async def call(self, name: str, arguments: JsonObject, effect: Effect) -> JsonObject:
        """Call a tool. One that may be repeated is called again where the connection was lost.

        Raises:
            ToolError: no result came, with what is known of what the call did.
        """
        repeatable = effect is not Effect.UNSAFE
        for attempt in range(2):
            try:
                session = await self._connected()
            except McpError as error:
                raise ToolError(f"{error}; {name} was not called") from error
            limit_s = self.server.timeout_s
            try:
                with anyio.fail_after(limit_s):
                    result = await session.call(name, arguments)
            except TimeoutError as error:
                raise self._failed(
                    name, f"it didn't answer within {limit_s:g} s", unknown=not repeatable
                ) from error
            except ServerFault as fault:
                self._lose(session, fault)
                if attempt == 0 and fault.lost and (repeatable or not fault.sent):
                    continue
                unknown = fault.sent and not repeatable
                raise self._failed(name, fault.reason, unknown=unknown) from fault
            self._starts_in_vain = 0
            return result
        raise AssertionError("unreachable: the second attempt returns or raises")

    async def _connected(self) -> Session:
        async with self._connecting:
            if self._session is None or self._session.is_over:
                if self._starts_in_vain >= MAX_STARTS_IN_VAIN and self.server.command:
                    raise self._error(
                        f"it is gone: it was started {self._starts_in_vain} times in vain, and is "
                        f"not started again; at last {self._last_words}"
                    )
                if self._session is not None:
                    _log.warning(
                        "the MCP server %r is connected again: %s",
                        self.server.place,
                        self.hide(self._last_words or self._session.how_it_ended()),
                    )
                self._starts_in_vain += 1
                session: Session = await self._group.start(self._host)
                self._session = session
            return self._session

    async def _host(self, *, task_status: anyio.abc.TaskStatus[Session]) -> None:
        """Hold one connection. It raises only before it is open."""
        session: Session | None = None
        try:
            _require_sdk(self.server)
            from workflow_agent_react.tools.mcp._session import open_session

            self._access = access_to(self.server)
            async with open_session(self.server, self._access) as opened:
                await self._start(opened)
                session = opened
                task_status.started(session)
                async with anyio.create_task_group() as waiting:
                    waiting.start_soon(_cancel_after, session.until_over, waiting.cancel_scope)
                    waiting.start_soon(_cancel_after, self._closing.wait, waiting.cancel_scope)
        except Exception as error:  # noqa: BLE001 - of any kind: it must not end those who use it
            single = _single(error)
            if session is None:
                raise self._unopened(single) from single
            _log.warning(
                "the connection to the MCP server %r broke: %s",
                self.server.place,
                self.hide(f"{type(single).__name__}: {single}"),
            )

    async def _start(self, session: Session) -> None:
        limit_s = self.server.start_timeout_s
        try:
            with anyio.fail_after(limit_s):
                await session.start()
        except TimeoutError as error:
            said = session.said()
            more = f"; it said: {said}" if said else ""
            raise self._error(f"it wasn't ready within {limit_s:g} s{more}") from error

    def _unopened(self, error: Exception) -> McpError:
        if isinstance(error, McpError):
            self._last_words = error.reason
            return error
        if isinstance(error, ServerFault):
            older = LEGACY_SSE if error.status in {404, 405} else ""
            return self._error(f"{error.reason}{older}")
        return self._error(f"{type(error).__name__}: {error}")

    def _error(self, reason: str) -> McpError:
        self._last_words = self.hide(reason)
        return McpError(self.server.place, self._last_words)

    def _failed(self, name: str, reason: str, *, unknown: bool) -> ToolError:
        words = f"the MCP server {self.server.place!r} gave no result of {name}: {reason}"
        if unknown:
            words += (
                f". The outcome is unknown: {name} may have been carried out. "
                "Check what it did before doing it again"
            )
        return ToolError(self.hide(words))

    def _lose(self, session: Session, fault: ServerFault) -> None:
        if fault.lost:
            self._last_words = self.hide(fault.reason)
            session.end()

    def close(self) -> None:
        """Let every connection end."""
        self._closing.set()


async def _cancel_after(wait: Callable[[], Awaitable[None]], scope: anyio.CancelScope) -> None:
    await wait()
    scope.cancel()


@asynccontextmanager
async def open_client(server: McpServer) -> AsyncGenerator[Client]:
    """Give a client of a server, and end its connections with the block.

    Nothing is started before the first use. What the block raises comes out as it is.
    """
    failure: BaseException | None = None
    async with anyio.create_task_group() as group:
        client = Client(server, group)
        try:
            yield client
        except anyio.get_cancelled_exc_class():
            raise
        except BaseException as error:  # noqa: BLE001 - raised below, outside of the group's wrapping
            failure = error
        finally:
            client.close()
    if failure is not None:
        raise failure


def _require_sdk(server: McpServer) -> None:
    try:
        importlib.import_module("mcp")
    except ImportError as error:
        reason = "the MCP SDK is missing; install workflow-agent-react[mcp]"
        raise McpError(server.place, reason) from error


def _single(error: Exception) -> Exception:
    """The one exception in groups of one: task groups wrap what passes through them."""
    if isinstance(error, ExceptionGroup):
        members = cast("ExceptionGroup[Exception]", error).exceptions
        return _single(members[0]) if len(members) == 1 else cast("Exception", error)
    return error
