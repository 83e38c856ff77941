"""`create_react_adapter`: a model, tools and a loop as an `AdapterFn`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from typing_extensions import TypeForm

from workflow_agent_react._calls import CallRunner
from workflow_agent_react._dialect import DialectName, choose_dialect
from workflow_agent_react._loop import react
from workflow_agent_react._toolset import Toolset
from workflow_protocol import AdapterFn, RoleFn, ThreadContext, WorkflowError
from workflow_reactor import (
    RESOLVE,
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


class ReactConfigError(WorkflowError):
    """A `ReactAdapterConfig` that can't work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactAdapterConfig:
    """What a ReAct adapter is made of.

    Raises:
        ReactConfigError: not exactly one of `provider` and `llm`, tools without a handler or
            given twice, a tool called `resolve`, or no rounds.
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
    """A longer tool result is cut in the middle."""

    def __post_init__(self) -> None:
        if (self.provider is None) == (self.llm is None):
            raise ReactConfigError("give either `provider` or `llm`")
        if self.toolset is not None and (self.tools or self.tool_handler):
            raise ReactConfigError("give either `toolset`, or `tools` and `tool_handler`")
        if self.tools and self.tool_handler is None:
            raise ReactConfigError("tools are given, but no `tool_handler` to run them")
        names = [tool.name for tool in self.all_tools.tools]
        if RESOLVE in names:
            raise ReactConfigError(f"{RESOLVE!r} is the adapter's own tool; rename yours")
        if self.max_rounds < 1:
            raise ReactConfigError(f"max_rounds is {self.max_rounds}; a turn needs at least one")

    @property
    def all_tools(self) -> Toolset:
        """The tools with their handler, whichever way they were given."""
        return self.toolset or Toolset(tuple(self.tools), self.tool_handler or _no_tools)


async def _no_tools(call: ToolCall, ctx: ThreadContext) -> str:
    del ctx
    raise WorkflowError(f"{call.name!r} has no handler")


def create_react_adapter(config: ReactAdapterConfig) -> AdapterFn:
    """Give an adapter whose roles work with tools until they `resolve` a valid value.

    Each round is one model call and there is none beside them. Nothing is opened before a role
    runs, so a module that calls this can be imported anywhere.
    """
    source = config.llm if config.llm is not None else _llm_of(config.provider)
    toolset = config.all_tools

    def adapter(prompt: str, schema: TypeForm[T]) -> RoleFn[T]:
        result = ResultSchema(schema)
        offered = (*toolset.tools, result.tool())

        async def role(ctx: ThreadContext) -> T:
            async with open_llm(source, ctx.journal.note) as llm:
                dialect = choose_dialect(config.dialect, llm.profile, offered)
                runner = CallRunner(
                    ctx=ctx,
                    tools={tool.name: tool for tool in offered},
                    handler=toolset.handler,
                    result=result,
                    max_result_chars=config.max_result_chars,
                )
                messages = [system(dialect.system_text(prompt)), user(build_thread_input(ctx))]
                return await react(
                    ctx, llm, dialect, runner, messages, max_rounds=config.max_rounds
                )

        return role

    return adapter


def _llm_of(provider: LlmProvider | None) -> LlmSource:
    assert provider is not None  # ReactAdapterConfig made sure
    return create_llm_fn(provider)
