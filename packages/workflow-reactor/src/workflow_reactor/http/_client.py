"""A model behind an OpenAI-compatible endpoint; what speaks HTTP is imported when one is asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from workflow_reactor._llm import LlmFn, Note
from workflow_reactor._messages import AssistantMessage, Message
from workflow_reactor._provider import LlmProvider, Profile
from workflow_reactor.request._bodies import NO_OPTIONS, Frame, Framer, RequestOptions
from workflow_reactor.request._tools import ToolDefinition

if TYPE_CHECKING:
    import httpx

Sleep = Callable[[float], Awaitable[None]]


def create_llm_fn(
    provider: LlmProvider,
    *,
    client: httpx.AsyncClient | None = None,
    sleep: Sleep = anyio.sleep,
) -> HttpLlm:
    """Make a model of a provider. Nothing is opened until it is used.

    Args:
        provider: the model, its endpoint and its limits.
        client: sends the requests, and stays the caller's to close. Without one, each session
            has its own transport: a pool shared by many threads costs O(connections²).
        sleep: waits that many seconds before a retry.
    """
    return HttpLlm(provider, client, sleep)


class HttpLlm:
    """A model behind an HTTP endpoint: an `LlmFn` (one call, one connection) and `LlmSource`."""

    def __init__(
        self,
        provider: LlmProvider,
        client: httpx.AsyncClient | None = None,
        sleep: Sleep = anyio.sleep,
    ) -> None:
        self.provider = provider
        self._client = client
        self._sleep = sleep

    @property
    def profile(self) -> Profile:
        """What the endpoint can do."""
        return self.provider.profile

    def frame(self, tools: Sequence[ToolDefinition], options: RequestOptions) -> Frame:
        """What a request has around its messages."""
        return _framer(self.provider).frame(tools, options)

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] = (),
        options: RequestOptions = NO_OPTIONS,
        *,
        round: int = 0,
    ) -> AssistantMessage:
        """Ask once, on a connection of its own.

        Raises:
            ProviderUnavailable: it kept failing; the same request may work later.
            ProviderRefused: it will be refused again.
            ProviderConfigError: nothing can be sent with these settings.
        """
        async with self.session() as llm:
            return await llm(messages, tools, options, round=round)

    @asynccontextmanager
    async def session(self, note: Note | None = None) -> AsyncGenerator[LlmFn]:
        """Give a model for one role's turn.

        Its transport is opened, and its key asked for, by the first request: a turn that is only
        replayed sends nothing and needs neither. What is wrong with the settings shows there.
        """
        from workflow_reactor.http._session import Session, open_exchange

        async with AsyncExitStack() as stack:
            yield Session(
                self.provider,
                _framer(self.provider),
                lambda: open_exchange(self.provider, self._client, stack),
                note,
                self._sleep,
            )


def _framer(provider: LlmProvider) -> Framer:
    plain = {name: value for name, value in provider.headers.items() if isinstance(value, str)}
    place = f"{provider.base_url} {sorted(provider.headers)} {sorted(plain.items())}"
    return Framer(
        provider.model,
        provider.profile,
        provider.extra_body,
        settings=provider.settings,
        place=place,
        provider=provider.name or urlsplit(provider.base_url).hostname or "",
    )
