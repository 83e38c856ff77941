"""What a model is to the loops (`LlmFn`), and how they ask it: through the journal, once."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Protocol, runtime_checkable

import msgspec

from workflow_protocol import (
    Event,
    Journal,
    Metered,
    ModelFailed,
    ModelReplied,
    RoundStarted,
    error_message,
    error_type,
)
from workflow_reactor._errors import ContentRefused, ProviderError
from workflow_reactor._messages import AssistantMessage, Message
from workflow_reactor._provider import Profile
from workflow_reactor._refusals import raise_if_refused, record_refusal, was_refused
from workflow_reactor._settings import ModelSettings
from workflow_reactor.reply._reply import read_reply
from workflow_reactor.request._bodies import NO_OPTIONS, Frame, RequestOptions
from workflow_reactor.request._conversation import Conversation
from workflow_reactor.request._metering import worst_case
from workflow_reactor.request._tools import ToolDefinition

Note = Callable[[Event], Awaitable[None]]


class LlmFn(Protocol):
    """A model: messages and tools in, one reply out. Faults that pass are dealt with inside."""

    @property
    def profile(self) -> Profile:
        """What the endpoint can do."""
        ...

    def frame(self, tools: Sequence[ToolDefinition], options: RequestOptions) -> Frame:
        """What a request has around its messages. `Framer` makes it.

        `frame(tools, options).body(messages)` are the exact bytes that a call with these
        arguments sends. They hold no key.
        """
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
        """Give a model for one role's turn; `note` hears of retries.

        Best is to connect with the first request: a turn that is only replayed sends none, and then
        needs no network and no key.
        """
        ...


_in_place: ContextVar[LlmFn | LlmSource | None] = ContextVar("model in place", default=None)


@contextmanager
def llm_in_place(llm: LlmFn | LlmSource) -> Generator[None]:
    """Let `open_llm` give this model instead of the one that it is asked for, in this context.

    Tasks that begin in the block see it too. `Workflow.using` does this for the turns of its roles.
    """
    token = _in_place.set(llm)
    try:
        yield
    finally:
        _in_place.reset(token)


@asynccontextmanager
async def open_llm(
    llm: LlmFn | LlmSource, note: Note | None = None, settings: ModelSettings | None = None
) -> AsyncGenerator[LlmFn]:
    """Give an `LlmFn` for one role's turn: a session where the model has them, else itself.

    Inside `llm_in_place` it is that model, whatever is asked for; the settings stay.

    Args:
        settings: of each request of the turn, before those of the model.
    """
    llm = _in_place.get() or llm
    if isinstance(llm, LlmSource):
        async with llm.session(note) as opened:
            yield _WithSettings(opened, settings) if settings else opened
    else:
        yield _WithSettings(llm, settings) if settings else llm


class _WithSettings:
    """A model whose requests have settings of the caller's."""

    def __init__(self, llm: LlmFn, settings: ModelSettings) -> None:
        self.profile = llm.profile
        self._llm = llm
        self._settings = settings

    def frame(self, tools: Sequence[ToolDefinition], options: RequestOptions) -> Frame:
        return self._llm.frame(tools, self._with_settings(options))

    async def __call__(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolDefinition] = (),
        options: RequestOptions = NO_OPTIONS,
        *,
        round: int = 0,
    ) -> AssistantMessage:
        return await self._llm(messages, tools, self._with_settings(options), round=round)

    def _with_settings(self, options: RequestOptions) -> RequestOptions:
        return msgspec.structs.replace(options, settings=options.settings.over(self._settings))


async def ask_model(
    llm: LlmFn,
    journal: Journal,
    messages: Sequence[Message],
    tools: Sequence[ToolDefinition] = (),
    options: RequestOptions = NO_OPTIONS,
    *,
    round: int,
    max_rounds: int,
) -> AssistantMessage:
    """Ask a model through the journal, as `llm/<round>`, and tell observers.

    The raw body of the reply is recorded, and never paid for twice: a replay reads it again, and
    comes to the identical message. The record's digest is the SHA-256 of the request body: the
    model's name, `extra_body`, the tools, each message and the options. So a turn that is taken
    up with another model, other tools or another prompt is noticed, not answered from the record.
    The base URL, the key, time limits and retries are not in it: the same model may have moved.
    A request that was refused for its content is recorded too: the same one, to the same place,
    is not sent again.

    Args:
        messages: a `Conversation`, where there is more than one round; a plain sequence is
            hashed from its beginning each time.

    Raises:
        ProviderUnavailable: it kept failing; the same request may work later.
        ProviderRefused: it will be refused again.
        ContentRefused: it was refused for its content, now or in an earlier run of the turn.
    """
    key = f"llm/{round}"
    conversation = messages if isinstance(messages, Conversation) else Conversation(messages)
    frame = llm.frame(tools, options)
    refused = conversation.is_new and was_refused(journal, conversation, frame, round=round)
    await journal.note(
        RoundStarted(
            key=key,
            round=round,
            max_rounds=max_rounds,
            recorded=refused,
            model=frame.model,
            provider=frame.provider,
        )
    )
    began_s = time.monotonic()
    try:
        reply = await _ask(llm, journal, conversation, tools, options, frame, round=round)
    except BaseException as error:
        await journal.note(
            ModelFailed(
                key=key,
                round=round,
                recorded=refused,
                error=error_type(error),
                message=error_message(error),
                elapsed_ms=int((time.monotonic() - began_s) * 1000),
                model=frame.model,
                provider=frame.provider,
            )
        )
        raise
    await journal.note(
        ModelReplied(
            key=key,
            round=round,
            model=frame.model,
            response_model=reply.model,
            provider=frame.provider,
            finish=reply.finish,
            usage=reply.usage,
            text=reply.text[:200],
            elapsed_ms=int((time.monotonic() - began_s) * 1000),
        )
    )
    return reply


async def _ask(
    llm: LlmFn,
    journal: Journal,
    conversation: Conversation,
    tools: Sequence[ToolDefinition],
    options: RequestOptions,
    frame: Frame,
    *,
    round: int,
) -> AssistantMessage:
    found: AssistantMessage | None = None

    async def perform() -> bytes:
        nonlocal found
        try:
            if conversation.is_new:  # what was refused ended the turn, so it is the first one now
                raise_if_refused(journal, conversation, frame, round=round)
            found = await llm(conversation, tools, options, round=round)
        except ProviderError as error:
            if isinstance(error, ContentRefused) and error.attempts:
                await record_refusal(journal, conversation, frame, error, round=round)
            error.messages = tuple(conversation)
            raise
        conversation.is_new = False
        raw = found.raw
        if not conversation.call_ids.isdisjoint(found.message.call_ids):
            found = None  # a model that doesn't look at the history: read as a replay would
        return raw

    def read(raw: bytes) -> AssistantMessage:
        nonlocal found
        if found is None:
            taken = conversation.call_ids
            found = read_reply(raw, llm.profile, round=round, tools=tools, taken_ids=taken)
        return found

    raw = await journal.run(
        f"llm/{round}",
        perform,
        type=bytes,
        digest=conversation.digest(frame),
        request=lambda: conversation.body(frame),
        metered=Metered(
            model=frame.model,
            at_most=lambda: worst_case(frame, conversation, llm.profile),
            used=lambda raw: read(raw).usage,
        ),
    )
    return _with_strict_calls(read(raw), tools, llm.profile)


def _with_strict_calls(
    reply: AssistantMessage, tools: Sequence[ToolDefinition], profile: Profile
) -> AssistantMessage:
    """The reply, with what it takes to read its calls: whose parameters went out strictly."""
    strict = {tool.name for tool in tools if tool.is_strict(profile)}
    if not strict or not reply.tool_calls:
        return reply
    calls = [replace(call, strict=call.name in strict) for call in reply.tool_calls]
    return msgspec.structs.replace(reply, tool_calls=tuple(calls))
