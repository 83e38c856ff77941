"""A model, tools and a loop: an `AdapterFn` that gives values, an `AgentFn` that gives text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from typing import TypeVar, cast

import msgspec
from typing_extensions import TypeForm

from workflow_agent_react._calls import CallRunner, SerialCallsWarning
from workflow_agent_react._invoke import Invoker
from workflow_agent_react._loop import react
from workflow_agent_react._results import READ_RESULT, KeptResults, read_result_tool
from workflow_agent_react.dialects._choice import choose_dialect
from workflow_agent_react.dialects._dialect import DialectName
from workflow_agent_react.guards._guards import Guard, all_of
from workflow_agent_react.tools._many import warn_of_many
from workflow_agent_react.tools._toolset import ToolPart, Toolset, ToolSource, toolset_of
from workflow_protocol import (
    AdapterFn,
    AgentFn,
    Memory,
    RoleFn,
    ThreadContext,
    WorkflowError,
    expect_type,
    facts_as_data,
)
from workflow_reactor import (
    RESOLVE,
    Conversation,
    LlmFn,
    LlmProvider,
    LlmSource,
    ModelSettings,
    ResultSchema,
    ToolCall,
    ToolDefinition,
    ToolHandler,
    model_of,
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
            given twice, a tool called `resolve` or `read_result`, guards that are no functions, or
            no rounds.
        ToolClash: two tools have one name.
    """

    provider: LlmProvider | None = None
    """The model, where it isn't given by `llm`."""
    llm: str | LlmFn | LlmSource | None = None
    """A scene of `workflow.yaml` or `"provider/model"`, looked up when a role runs; or the model
    itself."""
    tools: Sequence[ToolDefinition] = ()
    """The tools, with `tool_handler`, where there is no `toolset`."""
    tool_handler: ToolHandler | None = None
    """Runs the calls of `tools`."""
    toolset: ToolPart | Sequence[ToolPart] | None = None
    """Functions, toolsets and sources of them, one or several, instead of `tools` and
    `tool_handler`. What is opened when a role needs it (`mcp_toolset("git")`) stays open for the
    whole run."""
    max_rounds: int = 30
    """Model calls in one turn of a role."""
    dialect: DialectName = "auto"
    """How tools are offered: `native`, `json`, `xml`, or `auto` for what the model's profile
    says."""
    max_result_chars: int = 16_000
    """A longer result is cut in the middle. Where a tool may have one, `read_result` reads on."""
    settings: ModelSettings | None = None
    """`temperature`, `top_p` and `seed` of these roles, before those of the model."""
    memory: Memory | None = None
    """Facts that earlier threads remembered, told at the end of the role's input, as data. Tools to
    look further and to remember more are `memory_tools`."""
    guards: Sequence[Guard] = ()
    """Judge each call before it runs, `resolve` included; combined as by `all_of`."""

    def __post_init__(self) -> None:
        if (self.provider is None) == (self.llm is None):
            raise ReactConfigError("give either `provider` or `llm`")
        if self.provider is not None and not isinstance(cast("object", self.provider), LlmProvider):
            kind = type(cast("object", self.provider)).__name__
            raise ReactConfigError(f"`provider` is of type {kind}; give an LlmProvider, or `llm`")
        guards = cast("object", self.guards)
        if not isinstance(guards, Sequence) or not all(
            map(callable, cast("Sequence[object]", guards))
        ):
            raise ReactConfigError("`guards` has to be a list of functions")
        if self.toolset is not None and (self.tools or self.tool_handler):
            raise ReactConfigError("give either `toolset`, or `tools` and `tool_handler`")
        if self.tools and self.tool_handler is None:
            raise ReactConfigError("tools are given, but no `tool_handler` to run them")
        _check_names(Toolset.combine(*self.fixed_tools))
        if self.max_result_chars < MIN_RESULT_CHARS:
            raise ReactConfigError(f"max_result_chars must be at least {MIN_RESULT_CHARS}")
        if self.max_rounds < 1:
            raise ReactConfigError(f"max_rounds is {self.max_rounds}; a turn needs at least one")

    @property
    def all_tools(self) -> Sequence[Toolset | ToolSource]:
        """The tools with their handlers, whichever way they were given."""
        if self.toolset is None:
            return (Toolset(tuple(self.tools), self.tool_handler or _missing_handler),)
        given = self.toolset
        parts = cast("Sequence[ToolPart]", given if isinstance(given, Sequence) else (given,))
        return [each if isinstance(each, ToolSource) else toolset_of(each) for each in parts]

    @property
    def fixed_tools(self) -> list[Toolset]:
        """Those that needn't be opened."""
        return [each for each in self.all_tools if isinstance(each, Toolset)]


def _check_names(toolset: Toolset) -> None:
    for own in {RESOLVE, READ_RESULT}.intersection(tool.name for tool in toolset.tools):
        raise ReactConfigError(f"{own!r} is the adapter's own tool; rename yours")


async def _missing_handler(call: ToolCall, ctx: ThreadContext) -> str:
    del ctx
    raise WorkflowError(f"{call.name!r} has no handler")


def create_react_adapter(config: ReactAdapterConfig) -> AdapterFn:
    """Give an adapter whose roles work with tools until they `resolve` a valid value.

    Each round is one model call and there is none beside them. Nothing is opened before a role
    runs, so a module that calls this can be imported anywhere.

    Example:
        ```python
        reader = RoleDefinition(name="reader", system_prompt="Answer from the files.", schema=str)
        files = workspace_tools(shell=False, write=False)
        adapter = create_react_adapter(ReactAdapterConfig(llm="default", toolset=files))
        run = create_workflow(
            WorkflowDefinition(table={START: reader, reader: END}, result=reader),
            AdapterBinding(adapter),
        )
        ```
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


class _OfferedTools:
    """What one or all turns of a role can use."""

    def __init__(self, toolset: Toolset, max_result_chars: int) -> None:
        _check_names(toolset)
        warn_of_many(toolset.tools)
        self.handler = toolset.handler
        self.instructions = toolset.instructions
        self.tools = toolset.tools
        # From the first request on or never: a tool that appears later would change the prefix.
        self.can_read_on = any(_may_exceed(tool, max_result_chars) for tool in toolset.tools)
        if self.can_read_on:
            self.tools = (*toolset.tools, read_result_tool(max_result_chars))


class _PreparedLoop:
    """What a config comes to, made once."""

    def __init__(self, config: ReactAdapterConfig) -> None:
        use = 'write ReactAdapterConfig(llm="default", …)'
        expect_type(config, ReactAdapterConfig, "the config", use=use)
        self._config = config
        self._source = _source_of(config)
        self._guard = all_of(*config.guards) if config.guards else None
        self._parts = config.all_tools
        self._serial_calls = SerialCallsWarning()

    @cached_property
    def _fixed_offer(self) -> _OfferedTools | None:
        """The tools, if none has to be opened."""
        fixed = [each for each in self._parts if isinstance(each, Toolset)]
        if len(fixed) < len(self._parts):
            return None
        return _OfferedTools(Toolset.combine(*fixed), self._config.max_result_chars)

    @asynccontextmanager
    async def _offer(self, ctx: ThreadContext) -> AsyncGenerator[_OfferedTools]:
        """The tools for one turn; what has to be opened is open while the block runs."""
        if self._fixed_offer is not None:
            yield self._fixed_offer
            return
        async with AsyncExitStack() as stack:
            opened = [
                each
                if isinstance(each, Toolset)
                else await stack.enter_async_context(each.open(ctx, f"tools/{index}"))
                for index, each in enumerate(self._parts)
            ]
            yield _OfferedTools(Toolset.combine(*opened), self._config.max_result_chars)

    async def turn(
        self, ctx: ThreadContext, prompt: str, result: ResultSchema[T], *, plain: bool
    ) -> T:
        """One turn of a role."""
        opened = open_llm(self._source, ctx.journal.note, self._config.settings)
        async with self._offer(ctx) as offer, opened as llm:
            offered = (*offer.tools, result.tool())
            if offer.instructions:
                prompt = f"{prompt}\n\n{offer.instructions}"
            dialect = choose_dialect(
                self._config.dialect, llm.profile, offered, task=ctx.start.prompt, plain=plain
            )
            invoker = Invoker(
                ctx=ctx,
                tools={tool.name: tool for tool in offered},
                told=dialect.told,
                handler=offer.handler,
                result=result,
                kept=KeptResults(
                    self._config.max_result_chars,
                    can_read_on=offer.can_read_on,
                ),
                guard=self._guard,
            )
            runner = CallRunner(invoker=invoker, result=result, serial_calls=self._serial_calls)
            messages = Conversation(
                [system(dialect.system_text(prompt)), user(await self._input(ctx))]
            )
            return await react(
                ctx, llm, dialect, runner, messages, max_rounds=self._config.max_rounds
            )

    async def _input(self, ctx: ThreadContext) -> str:
        """What the role is told of the thread."""
        told, memory = build_thread_input(ctx), self._config.memory
        facts = [] if memory is None else await memory.facts(ctx)
        return f"{told}\n\n{facts_as_data(facts)}" if facts else told


def _may_exceed(tool: ToolDefinition, chars: int) -> bool:
    return tool.max_result_chars is None or tool.max_result_chars > chars


def _source_of(config: ReactAdapterConfig) -> LlmFn | LlmSource:
    model = config.provider if config.llm is None else config.llm
    assert model is not None  # ReactAdapterConfig made sure
    return model_of(model)
