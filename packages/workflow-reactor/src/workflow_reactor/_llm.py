"""Asks a model: one request body of joined bytes, one place that retries."""

from __future__ import annotations

import functools
import random
import ssl
import time
import urllib.request
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable
from urllib.parse import urlsplit

import anyio
import httpx
import msgspec

from workflow_protocol import (
    Event,
    Journal,
    JsonObject,
    ModelReplied,
    Retrying,
    RoundStarted,
)
from workflow_reactor._errors import ProviderError, ProviderRefused, ProviderUnavailable
from workflow_reactor._faults import ProviderFault, fault_of_error_body, fault_of_status
from workflow_reactor._messages import AssistantMessage, Message
from workflow_reactor._provider import LlmProvider, Profile
from workflow_reactor._reply import NotAReply, read_reply
from workflow_reactor._tools import ToolDefinition

CONNECT_TIMEOUT_S = 15.0
FIRST_WAIT_S, MAX_WAIT_S = 0.5, 60.0

Note = Callable[[Event], Awaitable[None]]
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOptions:
    """What one request asks for beside messages and tools."""

    tool_choice: str | None = None
    """`auto`, `required`, `none`, or the name of the one tool to call."""
    response_format: JsonObject | None = None
    stop: tuple[str, ...] = ()


class LlmFn(Protocol):
    """A model: messages and tools in, one reply out. Faults that pass are dealt with inside."""

    @property
    def profile(self) -> Profile:
        """What the endpoint can do."""
        ...

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] = (),
        options: RequestOptions = ...,
        *,
        round: int = 0,
    ) -> AssistantMessage:
        """Ask once. `round` counts the calls of one conversation from 0.

        Raises:
            ProviderUnavailable: it kept failing; the same request may work later.
            ProviderRefused: it will be refused again.
        """
        ...


@runtime_checkable
class LlmSource(Protocol):
    """Something that opens a model for a while, such as one role's turn."""

    def session(self, note: Note | None = None) -> AbstractAsyncContextManager[LlmFn]:
        """Open connections for one thread's use; `note` hears of retries."""
        ...


@asynccontextmanager
async def open_llm(llm: LlmFn | LlmSource, note: Note | None = None) -> AsyncGenerator[LlmFn]:
    """Give an `LlmFn` for one role's turn: a session where the model has them, else itself."""
    if isinstance(llm, LlmSource):
        async with llm.session(note) as opened:
            yield opened
    else:
        yield llm


def create_llm_fn(provider: LlmProvider, *, client: httpx.AsyncClient | None = None) -> HttpLlm:
    """Make a model of a provider. Nothing is opened until it is used.

    Args:
        client: sends the requests, and stays the caller's to close. Without one, each session
            has its own transport: a pool shared by many threads costs O(connections²).
    """
    return HttpLlm(provider, client)


class HttpLlm:
    """A model behind an HTTP endpoint: an `LlmFn` (one call, one connection) and `LlmSource`."""

    def __init__(self, provider: LlmProvider, client: httpx.AsyncClient | None = None) -> None:
        self.provider = provider
        self._client = client

    @property
    def profile(self) -> Profile:
        """What the endpoint can do."""
        return self.provider.profile

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] = (),
        options: RequestOptions = RequestOptions(),
        *,
        round: int = 0,
    ) -> AssistantMessage:
        """Ask once, on a connection of its own."""
        async with self.session() as llm:
            return await llm(messages, tools, options, round=round)

    @asynccontextmanager
    async def session(self, note: Note | None = None) -> AsyncGenerator[LlmFn]:
        """Open a transport for one role's turn and close it at the end."""
        if self._client is not None:
            yield _Session(self.provider, self._client.send, note)
            return
        transport = _transport(self.provider.base_url)
        async with transport:
            yield _Session(self.provider, transport.handle_async_request, note)


class _Session:
    def __init__(
        self,
        provider: LlmProvider,
        send: Callable[[httpx.Request], Awaitable[httpx.Response]],
        note: Note | None,
    ) -> None:
        self.profile = provider.profile
        self._provider = provider
        self._send = send
        self._note = note
        self._url = httpx.URL(provider.base_url.rstrip("/") + "/chat/completions")
        self._headers = _headers(provider)
        self._head = _encode({"model": provider.model, **provider.extra_body})[:-1]

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] = (),
        options: RequestOptions = RequestOptions(),
        *,
        round: int = 0,
    ) -> AssistantMessage:
        body = self._body(messages, tools, options)
        waited_s = 0.0
        for attempt in range(1, self._provider.max_attempts + 1):
            reply = await self._exchange(body, round)
            if isinstance(reply, AssistantMessage):
                return reply
            if not reply.transient:
                raise self._error(ProviderRefused, reply, attempt)
            wait_s = max(reply.retry_after_s or 0.0, _backoff(attempt))
            if attempt == self._provider.max_attempts or waited_s + wait_s > MAX_WAIT_S:
                raise self._error(ProviderUnavailable, reply, attempt)
            if self._note is not None:
                await self._note(
                    Retrying(reason=reply.message[:200], attempt=attempt, wait_s=round_ms(wait_s))
                )
            await anyio.sleep(wait_s)
            waited_s += wait_s
        raise AssertionError("unreachable")

    def _body(
        self, messages: Sequence[Message], tools: Sequence[ToolDefinition], options: RequestOptions
    ) -> bytes:
        """Join the request: what never changes first, so that prompt caches hit."""
        parts = [self._head]
        if tools:
            parts += [b',"tools":[', b",".join(tool.json for tool in tools), b"]"]
        parts += [b',"messages":[', b",".join(message.json for message in messages), b"]"]
        tail = self._options(options, bool(tools))
        if tail:
            parts += [b",", _encode(tail)[1:-1]]
        return b"".join([*parts, b"}"])

    def _options(self, options: RequestOptions, has_tools: bool) -> JsonObject:
        tail: JsonObject = {}
        choice = options.tool_choice
        if has_tools and choice in {"auto", "required", "none"}:
            tail["tool_choice"] = choice
        elif has_tools and choice is not None and self.profile.forced_tool_choice:
            tail["tool_choice"] = {"type": "function", "function": {"name": choice}}
        if options.response_format is not None:
            tail["response_format"] = options.response_format
        if options.stop:
            tail["stop"] = options.stop
        if self.profile.max_tokens is not None:
            tail[self.profile.max_tokens_field] = self.profile.max_tokens
        return tail

    async def _exchange(self, body: bytes, round: int) -> AssistantMessage | ProviderFault:
        """Send once and sort what came back. Only cancellation and bugs are raised."""
        request = httpx.Request(
            "POST",
            self._url,
            headers=self._headers,
            content=body,
            extensions={"timeout": _timeouts(self._provider.timeout_s)},
        )
        try:
            with anyio.fail_after(self._provider.timeout_s):
                response = await self._send(request)
                try:
                    content = await response.aread()
                finally:
                    with anyio.CancelScope(shield=True), anyio.move_on_after(1):
                        await response.aclose()
        except TimeoutError:
            seconds = self._provider.timeout_s
            return ProviderFault(transient=True, message=f"no reply within {seconds:g} s")
        except (httpx.LocalProtocolError, httpx.UnsupportedProtocol) as error:
            return ProviderFault(transient=False, message=f"the request can't be sent: {error}")
        except (httpx.TransportError, httpx.DecodingError) as error:
            words = str(error) or type(error).__name__
            return ProviderFault(transient=True, message=f"the connection failed: {words}")
        if response.status_code != 200:
            return fault_of_status(response.status_code, response.headers, content)
        try:
            return read_reply(content, self.profile, round=round)
        except NotAReply as error:
            if error.error is not None:
                return fault_of_error_body(error.error)
            return ProviderFault(transient=True, message=str(error), status=200)

    def _error(
        self, kind: type[ProviderUnavailable | ProviderRefused], fault: ProviderFault, attempts: int
    ) -> ProviderError:
        where = f"{self._provider.model!r} at {self._provider.base_url}"
        tries = f" after {attempts} tries" if attempts > 1 else ""
        message = f"{where} failed{tries}: {fault.message}{_advice(fault)}"
        key = self._provider.api_key.reveal()
        return kind(
            _without(message, key),
            status=fault.status,
            provider_message=_without(fault.provider_message, key),
            attempts=attempts,
            retry_after_s=fault.retry_after_s,
        )


async def ask_model(
    llm: LlmFn,
    journal: Journal,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition] = (),
    options: RequestOptions = RequestOptions(),
    *,
    round: int,
    max_rounds: int,
) -> AssistantMessage:
    """Ask a model through the journal, as `llm/<round>`, and tell observers.

    The raw reply is recorded, and never paid for twice.

    Raises:
        ProviderUnavailable: it kept failing; the same request may work later.
        ProviderRefused: it will be refused again.
    """
    await journal.note(RoundStarted(round=round, max_rounds=max_rounds))
    started = time.monotonic()
    fresh: AssistantMessage | None = None

    async def perform() -> bytes:
        nonlocal fresh
        fresh = await llm(messages, tools, options, round=round)
        return fresh.raw

    raw = await journal.run(f"llm/{round}", perform, type=bytes)
    reply = fresh if fresh is not None else read_reply(raw, llm.profile, round=round)
    await journal.note(
        ModelReplied(
            round=round,
            usage=reply.usage,
            text=reply.text[:200],
            elapsed_ms=int((time.monotonic() - started) * 1000),
        )
    )
    return reply


def response_format(schema: JsonObject, profile: Profile) -> JsonObject | None:
    """Ask for JSON of a schema, as far as the endpoint takes that."""
    match profile.response_format:
        case "json_schema":
            return {"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}
        case "json_object":
            return {"type": "json_object"}
        case "none":
            return None


def _headers(provider: LlmProvider) -> dict[str, str]:
    headers = {
        "content-type": "application/json",
        "accept": "application/json",
        "accept-encoding": "gzip",
        "user-agent": "united-workforce",
    }
    if provider.api_key:
        headers["authorization"] = f"Bearer {provider.api_key.reveal()}"
    return headers


def _timeouts(total_s: float) -> dict[str, float]:
    return {
        "connect": min(CONNECT_TIMEOUT_S, total_s),
        "read": total_s,
        "write": total_s,
        "pool": total_s,
    }


def _backoff(attempt: int) -> float:
    """Full jitter over a doubling span: half a second, one, two, four …"""
    span = min(FIRST_WAIT_S * 2 ** (attempt - 1), 8.0)
    return random.uniform(span / 2, span)


def round_ms(seconds: float) -> float:
    """Seconds to the millisecond, for people."""
    return round(seconds, 3)


@functools.cache
def _tls() -> ssl.SSLContext:
    """One context for all connections: making one costs more than a request."""
    return httpx.create_ssl_context()


def _transport(base_url: str) -> httpx.AsyncHTTPTransport:
    parts = urlsplit(base_url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.netloc):
        return httpx.AsyncHTTPTransport(verify=_tls(), proxy=httpx.Proxy(proxy))
    verify = _tls() if parts.scheme == "https" else False
    return httpx.AsyncHTTPTransport(verify=verify)


def _advice(fault: ProviderFault) -> str:
    match fault.status:
        case 401 | 403:
            return "; check the API key of this provider"
        case 404:
            return "; check base_url and the model's name"
        case None if fault.message.startswith("the connection failed"):
            return "; is the server running, and is base_url right?"
        case _:
            return ""


def _without(text: str, key: str) -> str:
    return text.replace(key, "…") if key else text
