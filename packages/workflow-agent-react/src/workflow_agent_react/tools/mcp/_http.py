"""A server behind a URL: the SDK's streamable HTTP, with every fault made an answer to its request.

The SDK lets a network fault of one request end the whole session, and doesn't say which status
came. So it is given a client whose every answer is a message: a JSON-RPC error in either case, and
what the SDK would refuse is mended.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from workflow_agent_react._errors import McpError
from workflow_agent_react.tools.mcp._lines import NotAMessage, as_json, beginning, read_message
from workflow_agent_react.tools.mcp._server import Access, McpServer
from workflow_agent_react.tools.mcp._streams import Streams
from workflow_protocol import JsonObject

_log = logging.getLogger("workflow_agent_react")

MAX_BODY_BYTES = 64 * 1024 * 1024
FAULT = -32_099
"""The JSON-RPC code of what went wrong below JSON-RPC; see `_fault`."""
_NOTE_S = 10.0
"""What needs no answer, such as word of a cancelled call, holds up the calls behind it."""
_SESSION = "mcp-session-id"


@asynccontextmanager
async def http_streams(server: McpServer, access: Access) -> AsyncGenerator[Streams]:
    """Connect to a URL. Nothing is sent before the first message is.

    Raises:
        McpError: the URL or a header can't be right.
    """
    try:
        httpx2.URL(access.url)
        client = _AnsweringClient(server, access)
    except (httpx2.InvalidURL, ValueError, TypeError) as error:
        raise McpError(server.place, access.hide(str(error))) from None
    async with (
        client,
        streamable_http_client(
            access.url, http_client=client, max_sse_event_size=MAX_BODY_BYTES
        ) as (incoming, outgoing),
    ):
        yield Streams(incoming, outgoing, lambda: "", lambda: "")


class _AnsweringClient(httpx2.AsyncClient):
    """A client that never raises what the network does: that becomes a JSON-RPC error."""

    def __init__(self, server: McpServer, access: Access) -> None:
        self._server = server
        read_s = server.timeout_s + server.start_timeout_s  # the caller's own limit comes first
        timeout = httpx2.Timeout(server.start_timeout_s, read=read_s)
        # Compressed bodies would be decompressed as a whole: a few kB can stand for gigabytes.
        plain = {"accept-encoding": "identity"}
        super().__init__(headers={**access.headers, **plain}, timeout=timeout)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Send a request; only one that carries a JSON-RPC request is waited for."""
        asked = _request_in(request)
        if asked is not None:
            return await self._ask(request, asked, options | {"stream": True})
        if request.method == "GET":  # messages that belong to no request: nothing here needs them
            return httpx2.Response(405, request=request)
        limit_s = _NOTE_S if request.method == "POST" else self._server.close_timeout_s
        with anyio.move_on_after(limit_s):
            try:
                options["stream"] = True
                answer = await super().send(request, **options)
                await answer.aclose()
                return httpx2.Response(answer.status_code, request=request)
            except httpx2.HTTPError as error:
                _log.debug("word to the MCP server %r was lost: %r", self._server.place, error)
        return httpx2.Response(202 if request.method == "POST" else 200, request=request)

    async def _ask(
        self, request: httpx2.Request, asked: JsonObject, options: dict[str, Any]
    ) -> httpx2.Response:
        try:
            response = await super().send(request, **options)
        except httpx2.HTTPError as error:
            sent = not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            return _fault(request, asked, _words(error), sent=sent)
        if 300 <= response.status_code < 400:  # the SDK follows, or says where it leads
            await response.aclose()
            redirect = httpx2.Response(response.status_code, request=request)
            redirect.next_request = response.next_request
            return redirect
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in {"", "identity"}:
            await response.aclose()
            words = f"its answer is compressed ({coding[:40]}), which was not asked for"
            return _fault(request, asked, words, sent=True)
        is_stream = "text/event-stream" in response.headers.get("content-type", "").lower()
        if response.status_code == 200 and is_stream:
            body = _Events(response)
            return httpx2.Response(200, headers=_kept(response), stream=body, request=request)
        try:
            data = await _body(response)
        except httpx2.HTTPError as error:
            return _fault(request, asked, f"its answer broke off ({_words(error)})", sent=True)
        finally:
            await response.aclose()
        return _answer(request, response, data, asked)


def _request_in(request: httpx2.Request) -> JsonObject | None:
    """The JSON-RPC request that is sent; `None` for what needs no answer."""
    if request.method != "POST":
        return None
    message = cast("JsonObject", json.loads(request.content))
    return message if "method" in message and "id" in message else None


def _answer(
    request: httpx2.Request, response: httpx2.Response, data: bytes, asked: JsonObject
) -> httpx2.Response:
    status, said = response.status_code, beginning(data)
    try:
        message = read_message(data)
    except NotAMessage:
        message = {}
    if message and status < 400:
        return _json(request, {**message, "id": asked["id"]}, _kept(response))
    if not message and status == 200:
        return _fault(request, asked, f"its answer is no JSON-RPC message: {said!r}", sent=True)
    error = message.get("error", {})
    if error.get("code"):
        said = error["message"]
    knows_no_session = status == 404 or (status == 400 and b"session" in data.lower())
    return _fault(
        request,
        asked,
        f"HTTP {status}: {said}" if said else f"HTTP {status}",
        sent=status >= 500 or status < 300,
        status=status,
        gone=knows_no_session and _SESSION in request.headers,
    )


def _kept(response: httpx2.Response) -> dict[str, str]:
    names = ("content-type", _SESSION)
    return {name: response.headers[name] for name in names if name in response.headers}


def _json(request: httpx2.Request, message: JsonObject, headers: dict[str, str]) -> httpx2.Response:
    headers = headers | {"content-type": "application/json"}
    return httpx2.Response(200, headers=headers, content=as_json(message), request=request)


def _fault(
    request: httpx2.Request,
    asked: JsonObject,
    words: str,
    *,
    sent: bool,
    status: int = 0,
    gone: bool = False,
) -> httpx2.Response:
    """An answer that says what went wrong.

    Args:
        sent: the server may have carried the request out.
        gone: it knows the session no more, and did nothing.
    """
    data = {"sent": sent, "status": status, "gone": gone}
    error = {"code": FAULT, "message": words, "data": data}
    return _json(request, {"jsonrpc": "2.0", "id": asked["id"], "error": error}, {})


def _words(error: httpx2.HTTPError) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


async def _body(response: httpx2.Response) -> bytes:
    data = bytearray()
    async for chunk in response.aiter_raw():
        data += chunk
        if len(data) > MAX_BODY_BYTES:
            raise httpx2.ReadError(f"it is longer than {MAX_BODY_BYTES:,} bytes")
    return bytes(data)


class _Events(httpx2.AsyncByteStream):
    """A stream of events whose messages are mended."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        line: list[bytes] = []
        size = 0
        async for chunk in self._response.aiter_raw():
            first, *others = chunk.split(b"\n")
            line.append(first)
            size += len(first)
            if size > MAX_BODY_BYTES:
                raise httpx2.ReadError("an event is too long")
            for other in others:
                yield b"".join(_mended(b"".join(line).removesuffix(b"\r")))
                line, size = [other], len(other)
        yield b"".join(line)

    async def aclose(self) -> None:
        await self._response.aclose()


def _mended(line: bytes) -> Iterator[bytes]:
    field, colon, value = line.partition(b":")
    if field == b"data" and colon and value.strip():
        with suppress(NotAMessage):  # a part of a message, perhaps, which has several lines
            line = b"data: " + as_json(read_message(value)).encode()
    yield line + b"\n"
