"""ThreadReactor: a model with tools that gives one value of a schema, for part of a role's turn.

What is fixed (model, prompt, tools) is given once and makes a prefix that provider caches keep.
What varies (thread, input, schema) is given per call. Unlike a ReAct role it also takes a plain
reply of JSON that fits the schema, and it knows no guards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic, Protocol, TypeVar

import anyio
import msgspec
from typing_extensions import TypeForm

from workflow_protocol import (
    OutcomeUnknown,
    Resolved,
    SchemaMismatch,
    Suspended,
    ThreadContext,
    WorkflowError,
    error_type,
    expect_type,
)
from workflow_reactor._errors import MaxRoundsExceeded
from workflow_reactor._llm import LlmFn, LlmSource, ask_model, open_llm
from workflow_reactor._messages import AssistantMessage, ToolCall, system, tool_result, user
from workflow_reactor._result_tool import RESOLVE, ResultSchema
from workflow_reactor._told_call import CallOutcome, tell_call
from workflow_reactor.request._bodies import RequestOptions
from workflow_reactor.request._conversation import Conversation
from workflow_reactor.request._tools import ToolDefinition, ToolHandler

T = TypeVar("T")


async def no_tools(call: ToolCall, ctx: ThreadContext) -> str:
    """The handler where there are no tools: never called."""
    del ctx
    raise WorkflowError(f"{call.name!r} has no handler")


class ThreadReactorConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What stays the same over all calls of a reactor."""

    llm: LlmFn | LlmSource
    """The model, or where it is found when it is first asked."""
    system_prompt: str
    """What the model is told first."""
    tools: Sequence[ToolDefinition] = ()
    """What it may call, beside `resolve`."""
    tool_handler: ToolHandler = no_tools
    """Makes the calls, and gives their results as text."""
    max_rounds: int = 10
    """How many model calls one question may take."""


class ThreadReactorFn(Protocol):
    """A reactor: ask it about a thread."""

    async def __call__(self, thread: ThreadContext, input: str, schema: TypeForm[T]) -> T:
        """Work with the tools until there is a value of the schema.

        Every model reply and tool call goes through the thread's journal. A turn that asks
        several times gives each its own keys: `thread.scoped("extract")`.

        Raises:
            MaxRoundsExceeded: no valid value in all rounds; it carries the conversation.
            ProviderError: the model could not be asked.
        """
        ...


def create_thread_reactor(config: ThreadReactorConfig) -> ThreadReactorFn:
    """Make a reactor. Nothing is opened until it is asked."""
    use = 'write ThreadReactorConfig(llm=create_llm_fn(provider), system_prompt="…")'
    expect_type(config, ThreadReactorConfig, "the config", use=use)

    async def reactor(thread: ThreadContext, input: str, schema: TypeForm[T]) -> T:
        result = ResultSchema(schema)
        turn = _Turn(
            thread, {tool.name: tool for tool in config.tools}, config.tool_handler, result
        )
        offered = (*config.tools, result.tool())
        messages = Conversation([system(config.system_prompt), user(input)])
        broke_off = ""
        async with open_llm(config.llm, thread.journal.note) as llm:
            for round in range(config.max_rounds):
                reply = await ask_model(
                    llm,
                    thread.journal,
                    messages,
                    offered,
                    RequestOptions(tool_choice="auto"),
                    round=round,
                    max_rounds=config.max_rounds,
                )
                broke_off = reply.broke_off and f"; its last reply {reply.broke_off}"
                messages.append(reply.message)
                strict = offered[-1].is_strict(llm.profile)
                if found := await turn.handle_reply(reply, messages, round, strict=strict):
                    await thread.journal.note(found)
                    return found.value
        raise MaxRoundsExceeded(
            f"the model gave no valid value in {config.max_rounds} rounds{broke_off}",
            messages=messages,
            rounds=config.max_rounds,
        )

    return reactor


class _Turn(msgspec.Struct, Generic[T], frozen=True):
    """One call of a reactor: how replies are taken in."""

    thread: ThreadContext
    tools: Mapping[str, ToolDefinition]
    handler: ToolHandler
    result: ResultSchema[T]

    async def handle_reply(
        self, reply: AssistantMessage, messages: Conversation, round: int, *, strict: bool
    ) -> Resolved[T] | None:
        """Run a reply's calls in their order, or read its text; add what the model is told."""
        if not reply.tool_calls:
            try:
                if not reply.broke_off:
                    return self.result.read_text(reply.text, strict=strict)
                problem = f"Your reply {reply.broke_off}; call `resolve` with the result."
            except SchemaMismatch as misfit:
                problem = f"Your reply is not valid; call `resolve` with the result:\n{misfit}"
            messages.append(user(problem))
            return None
        for index, call in enumerate(reply.tool_calls):
            if call.name == RESOLVE:
                try:
                    return self.result.read_call(call)
                except SchemaMismatch as misfit:
                    text = f"Error: the result is not valid; mend it and resolve again:\n{misfit}"
            else:
                key = f"tool/{round}/{index}"
                text = (await self._tell_run(call, key, round)).text
            messages.append(tool_result(call, text))
        return None

    async def _tell_run(self, call: ToolCall, key: str, round: int) -> CallOutcome:
        journal = self.thread.journal
        return await tell_call(
            journal, call, lambda: self._run(call, key), lambda ran: ran, key=key, round=round
        )

    async def _run(self, call: ToolCall, key: str) -> CallOutcome:
        """Run one call by the journal. Whatever goes wrong with it is a result for the model."""
        tool = self.tools.get(call.name)
        if tool is None:
            names = ", ".join([*self.tools, RESOLVE])
            text = f"Error: there is no tool {call.name!r}; the tools are {names}"
            return await self._refuse(key, CallOutcome(text, "unknown_tool"))
        received = tool.receive(call)
        if received.fault:
            refused = CallOutcome(f"Error: {received.fault}", "invalid_arguments")
            return await self._refuse(key, refused)
        error_now = ""

        async def perform() -> str:
            nonlocal error_now
            try:
                with anyio.move_on_after(tool.timeout_s):
                    return await self.handler(received, self.thread)
            except Suspended:
                raise
            except Exception as error:  # noqa: BLE001 - a tool may raise anything
                error_now = error_type(error)
                return f"Error: {error or type(error).__name__}"
            error_now = "timeout"
            return f"Error: {tool.name} took longer than {tool.timeout_s or 0:g} s"

        try:
            text = await self.thread.journal.run(key, perform, type=str, effect=tool.effect)
        except OutcomeUnknown as unknown:
            return CallOutcome(f"Error: {unknown}", "unknown_outcome")
        before = "tool_error" if text.startswith("Error: ") else ""  # of a recorded one
        return CallOutcome(text, error_now or before)

    async def _refuse(self, key: str, refused: CallOutcome) -> CallOutcome:
        """Record a call that is not run, so that a resume tells it as one that it knows."""

        async def text() -> str:
            return refused.text

        await self.thread.journal.run(key, text, type=str)
        return refused
