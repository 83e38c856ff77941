"""A model, tools and a loop: an `AdapterFn` that gives values, an `AgentFn` that gives text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from typing_extensions import TypeForm

from workflow_agent_react._calls import CallRunner
from workflow_agent_react._invoke import Invoker
from workflow_agent_react._loop import react
from workflow_agent_react._results import READ_RESULT, KeptResults, read_result_tool
from workflow_agent_react.dialects._choice import choose_dialect
from workflow_agent_react.dialects._dialect import DialectName
from workflow_agent_react.guards._guards import Guard, all_of
from workflow_agent_react.tools._toolset import Toolset
from workflow_protocol import AdapterFn, AgentFn, RoleFn, ThreadContext, WorkflowError
from workflow_reactor import (
    RESOLVE,
    Conversation,
    LlmFn,
    LlmProvider,
    LlmSource,
    ResultSchema,
    ToolCall,
    ToolDefinition,
    ToolHandler,
    create_llm_fn,
    open_llm,
    system,
    user,
)
from workflow_util_agent import build_thread_input

T = TypeVar("T")

MIN_RESULT_CHARS = 500


class ReactConfigError(WorkflowError):
    """A `ReactAdapterConfig` that can't work."""


class ReactAdapterConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a ReAct adapter or agent is made of.

    Raises:
        ReactConfigError: not exactly one of `provider` and `llm`, tools without a handler or
            given twice, a tool called `resolve` or `read_result`, or no rounds.
        ToolClash: two tools have one name.
    """

    provider: LlmProvider | None = None
    llm: LlmFn | LlmSource | None = None
    tools: Sequence[ToolDefinition] = ()
    tool_handler: ToolHandler | None = None
    toolset: Toolset | None = None
    """Tools and handler in one, instead of `tools` and `tool_handler`."""
    max_rounds: int = 30
    """Model calls in one turn of a role."""
    dialect: DialectName = "auto"
    max_result_chars: int = 16_000
    """A longer result is cut in the middle. Where a tool may have one, `read_result` reads on."""
    guards: Sequence[Guard] = ()
    """Judge each call before it runs, `resolve` included; combined as by `all_of`."""

    def __post_init__(self) -> None:
        if (self.provider is None) == (self.llm is None):
            raise ReactConfigError("give either `provider` or `llm`")
        if self.toolset is not None and (self.tools or self.tool_handler):
            raise ReactConfigError("give either `toolset`, or `tools` and `tool_handler`")
        if self.tools and self.tool_handler is None:
            raise ReactConfigError("tools are given, but no `tool_handler` to run them")
        names = [tool.name for tool in self.all_tools.tools]
        for own in {RESOLVE, READ_RESULT}.intersection(names):
            raise ReactConfigError(f"{own!r} is the adapter's own tool; rename yours")
        if self.max_result_chars < MIN_RESULT_CHARS:
            raise ReactConfigError(f"max_result_chars must be at least {MIN_RESULT_CHARS}")
        if self.max_rounds < 1:
            raise ReactConfigError(f"max_rounds is {self.max_rounds}; a turn needs at least one")

    @property
    def all_tools(self) -> Toolset:
        """The tools with their handler, whichever way they were given."""
        return self.toolset or Toolset(tuple(self.tools), self.tool_handler or _missing_handler)


async def _missing_handler(call: ToolCall, ctx: ThreadContext) -> str:
    del ctx
    raise WorkflowError(f"{call.name!r} has no handler")


def create_react_adapter(config: ReactAdapterConfig) -> AdapterFn:
    """Give an adapter whose roles work with tools until they `resolve` a valid value.

    Each round is one model call and there is none beside them. Nothing is opened before a role
    runs, so a module that calls this can be imported anywhere.
    """
    prepared = _PreparedLoop(config)

    def adapter(prompt: str, schema: TypeForm[T]) -> RoleFn[T]:
        result = ResultSchema(schema)

        async def role(ctx: ThreadContext) -> T:
            return await prepared.turn(ctx, prompt, result, plain=False)

        return role

    return adapter


def create_react_agent(config: ReactAdapterConfig) -> AgentFn:
    """Give an agent that works with tools until it replies in plain text, which is its result.

    The same loop as the adapter's. Dialects whose replies are all calls give the text by
    `resolve`, and guards see the text as a call of `resolve` in every dialect.
    """
    prepared = _PreparedLoop(config)
    result = ResultSchema(str)

    async def agent(ctx: ThreadContext, prompt: str) -> str:
        return await prepared.turn(ctx, prompt, result, plain=True)

    return agent


class _PreparedLoop:
    """What a config comes to, made once."""

    def __init__(self, config: ReactAdapterConfig) -> None:
        self._config = config
        self._source = config.llm if config.llm is not None else _provider_source(config.provider)
        toolset = config.all_tools
        self._handler = toolset.handler
        self._tools = toolset.tools
        # From the first request on or never: a tool that appears later would change the prefix.
        self._can_read_on = any(
            _may_exceed(tool, config.max_result_chars) for tool in toolset.tools
        )
        if self._can_read_on:
            self._tools = (*toolset.tools, read_result_tool(config.max_result_chars))
        self._guard = all_of(*config.guards) if config.guards else None

    async def turn(
        self, ctx: ThreadContext, prompt: str, result: ResultSchema[T], *, plain: bool
    ) -> T:
        """One turn of a role."""
        offered = (*self._tools, result.tool())
        async with open_llm(self._source, ctx.journal.note) as llm:
            dialect = choose_dialect(
                self._config.dialect, llm.profile, offered, task=ctx.start.prompt, plain=plain
            )
            invoker = Invoker(
                ctx=ctx,
                tools={tool.name: tool for tool in offered},
                told=dialect.told,
                handler=self._handler,
                result=result,
                kept=KeptResults(
                    self._config.max_result_chars,
                    can_read_on=self._can_read_on,
                ),
                guard=self._guard,
            )
            runner = CallRunner(invoker=invoker, result=result)
            messages = Conversation(
                [system(dialect.system_text(prompt)), user(build_thread_input(ctx))]
            )
            return await react(
                ctx, llm, dialect, runner, messages, max_rounds=self._config.max_rounds
            )


def _may_exceed(tool: ToolDefinition, chars: int) -> bool:
    return tool.max_result_chars is None or tool.max_result_chars > chars


def _provider_source(provider: LlmProvider | None) -> LlmSource:
    assert provider is not None  # ReactAdapterConfig made sure
    return create_llm_fn(provider)
