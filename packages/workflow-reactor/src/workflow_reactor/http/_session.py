"""One role's turn with a model behind an HTTP endpoint, and the one place that retries."""

from __future__ import annotations

import functools
import logging
import ssl
import urllib.request
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import httpx

from workflow_protocol import Retrying
from workflow_reactor._errors import (
    ContentRefused,
    ProviderConfigError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from workflow_reactor._llm import Note
from workflow_reactor._messages import AssistantMessage, Message
from workflow_reactor._provider import LlmProvider
from workflow_reactor._shown_url import shown_url, without_keys
from workflow_reactor.http._bare_history import BareHistory, may_refuse_reasoning
from workflow_reactor.http._exchange import Exchange, HttpReply
from workflow_reactor.http._faults import (
    ProviderFault,
    fault_of_error,
    fault_of_status,
    without_secrets,
)
from workflow_reactor.http._retry import wait_before_retry
from workflow_reactor.reply._reply import NotAReply, read_reply
from workflow_reactor.request._bodies import NO_OPTIONS, Frame, Framer, RequestOptions
from workflow_reactor.request._conversation import Conversation, call_ids
from workflow_reactor.request._tools import ToolDefinition

_log = logging.getLogger("workflow_reactor")


class Session:
    """A model for one turn: an `LlmFn` that opens its transport at the first request."""

    def __init__(
        self,
        provider: LlmProvider,
        framer: Framer,
        open_exchange: Callable[[], Exchange],
        note: Note | None,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self.profile = provider.profile
        self.frame = framer.frame
        self._provider = provider
        self._open_exchange = open_exchange
        self._exchange: Exchange | None = None
        self._note = note
        self._sleep = sleep
        self._bare = BareHistory()
        self._reasoning_refused = False

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] = (),
        options: RequestOptions = NO_OPTIONS,
        *,
        round: int = 0,
    ) -> AssistantMessage:
        exchange = self._exchange = self._exchange or self._open_exchange()
        frame = self.frame(tools, options)
        body = messages.body(frame) if isinstance(messages, Conversation) else frame.body(messages)
        if self._reasoning_refused:
            body = self._bare.body(frame, messages)
        attempt, waited_s = 1, 0.0
        while True:
            answer = await exchange.post(body)
            reply = (
                self._read(answer, round, tools, messages)
                if isinstance(answer, HttpReply)
                else answer
            )
            if not isinstance(reply, AssistantMessage) and may_refuse_reasoning(reply):
                reply = await self._ask_without_reasoning(
                    reply, exchange, frame, messages, round, tools
                )
            if isinstance(reply, AssistantMessage):
                return reply
            fault = reply.without(self._provider.secrets())
            wait_s = wait_before_retry(fault, self._provider, attempt=attempt, waited_s=waited_s)
            if wait_s is None:
                raise self._error(fault, attempt)
            if self._note is not None:
                await self._note(_retrying(fault, attempt, wait_s, round))
            await self._sleep(wait_s)
            attempt, waited_s = attempt + 1, waited_s + wait_s

    async def _ask_without_reasoning(
        self,
        fault: ProviderFault,
        exchange: Exchange,
        frame: Frame,
        messages: Sequence[Message],
        round: int,
        tools: Sequence[ToolDefinition],
    ) -> AssistantMessage | ProviderFault:
        """Send a refused request once more without the reasoning in it, if there is any.

        Where that is taken, so are the later ones of the session; else the first fault stands.
        """
        body = self._bare.body(frame, messages)
        if self._reasoning_refused or not self._bare.changed:
            return fault
        answer = await exchange.post(body)
        reply = (
            self._read(answer, round, tools, messages) if isinstance(answer, HttpReply) else None
        )
        if not isinstance(reply, AssistantMessage):
            return fault
        self._reasoning_refused = True
        _log.warning(
            "%r at %s refuses reasoning that is sent back, and took the request without it; "
            "set `profile: {echo_reasoning: false}` for this provider",
            self._provider.model,
            shown_url(self._provider.base_url),
        )
        return reply

    def _read(
        self,
        answer: HttpReply,
        round: int,
        tools: Sequence[ToolDefinition],
        messages: Sequence[Message],
    ) -> AssistantMessage | ProviderFault:
        if not 200 <= answer.status < 300:
            return fault_of_status(answer.status, answer.headers, answer.body)
        try:
            taken = call_ids(messages)
            return read_reply(answer.body, self.profile, round=round, tools=tools, taken_ids=taken)
        except NotAReply as error:
            if error.error is not None:
                return fault_of_error(error.error, answer.headers, began=error.began)
            return ProviderFault(kind="transient", message=str(error), status=answer.status)

    def _error(self, fault: ProviderFault, attempts: int) -> ProviderError:
        where = f"{self._provider.model!r} at {shown_url(self._provider.base_url)}"
        tries = f" after {attempts} tries" if attempts > 1 else ""
        words = f"{where} failed{tries}: {fault.message}{_advice(fault, self._provider)}"
        return _ERRORS[fault.kind](
            without_secrets(words, self._provider.secrets()),
            status=fault.status,
            provider_message=fault.provider_message,
            attempts=attempts,
            retry_after_s=fault.retry_after_s,
        )


_ERRORS: dict[str, type[ProviderError]] = {
    "transient": ProviderUnavailable,
    "permanent": ProviderRefused,
    "too_long": ContentRefused,
    "not_allowed": ContentRefused,
}


def _retrying(fault: ProviderFault, attempt: int, wait_s: float, of_round: int) -> Retrying:
    return Retrying(
        key=f"llm/{of_round}",
        round=of_round,
        reason=fault.message[:200],
        attempt=attempt,
        wait_s=round(wait_s, 3),
    )


def open_exchange(
    provider: LlmProvider, client: httpx.AsyncClient | None, stack: AsyncExitStack
) -> Exchange:
    """Open what sends requests: the client that was given, or a transport that the stack closes.

    Raises:
        ProviderConfigError: nothing can be sent with these settings.
    """
    if client is None:
        transport = open_transport(provider.base_url)
        stack.push_async_callback(transport.aclose)
        return Exchange(provider, transport.handle_async_request)
    if client.is_closed:
        raise ProviderConfigError("the HTTP client that was given is closed")
    send = functools.partial(client.send, stream=True, follow_redirects=False)
    return Exchange(provider, send)


@functools.cache
def _tls() -> ssl.SSLContext:
    """One context for all connections: making one costs more than a request."""
    return httpx.create_ssl_context()


@functools.cache
def _no_tls() -> ssl.SSLContext:
    return httpx.create_ssl_context(verify=False)


def open_transport(base_url: str) -> httpx.AsyncHTTPTransport:
    """A transport of its own, through the environment's proxy where that applies."""
    parts = urlsplit(base_url)
    proxy = urllib.request.getproxies().get(parts.scheme)
    if proxy and not urllib.request.proxy_bypass(parts.netloc):
        try:
            return httpx.AsyncHTTPTransport(verify=_tls(), proxy=httpx.Proxy(proxy))
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            reason = f"{type(error).__name__}: {without_keys(str(error))}"
            if isinstance(error, httpx.InvalidURL):  # whose words quote parts of it
                reason = "it is no URL"
            raise ProviderConfigError(
                f"the proxy for {parts.scheme}:// in the environment can't be used: {reason}"
            ) from None
    return httpx.AsyncHTTPTransport(verify=_tls() if parts.scheme == "https" else _no_tls())


def _advice(fault: ProviderFault, provider: LlmProvider) -> str:
    if fault.kind in _CONTENT_ADVICE:
        return _CONTENT_ADVICE[fault.kind]
    match fault.status:
        case 401 | 403:
            return "; check the API key of this provider"
        case 404:
            return "; check base_url and the model's name"
        case None if fault.message.startswith("the connection failed"):
            return "; is the server running, and is base_url right?"
        case _ if (fault.retry_after_s or 0) > provider.max_wait_s:
            return f"; it asks to wait {fault.retry_after_s:g} s"
        case _:
            return ""


_CONTENT_ADVICE: dict[str, str] = {
    "too_long": (
        "; the conversation is too long for this model: choose one that takes more, lower "
        "max_result_chars or max_tokens, or begin the turn anew (fresh) with a smaller task"
    ),
    "not_allowed": (
        "; the provider's policy forbids this conversation: change the prompt or what the tools "
        "give, choose another model, and begin the turn anew (fresh)"
    ),
}
