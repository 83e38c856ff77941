"""Tools for the long-term memory: facts by exact key, which outlive the thread."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from workflow_agent_react._errors import ToolError
from workflow_agent_react.tools._decorator import tool
from workflow_agent_react.tools._toolset import Toolset
from workflow_protocol import Effect, Fact, Memory, MemoryFault, ThreadContext

_CHARS = 16_000
_Key = Annotated[str, Meta(description="The exact key of the fact, such as language")]


def memory_tools(memory: Memory, *, write: bool = True) -> Toolset:
    """Give a role `recall` and `list_memory`, and with `write` also `remember` and `forget`.

    What another thread remembered comes as a tool's result, which is data, with the thread that
    wrote it. A write counts in one commit with the record of its call.

    Args:
        memory: the namespace that they work in; the model can't name another.
        write: whether the model may change it.
    """

    @tool(effect=Effect.READ, max_result_chars=_CHARS)
    async def recall(ctx: ThreadContext, key: _Key) -> dict[str, str]:
        """Look up what was remembered under a key in earlier threads."""
        try:
            found = await memory.recall(ctx, key)
        except MemoryFault as fault:
            raise ToolError(str(fault)) from fault
        if found is None:
            raise ToolError(f"nothing is remembered under {key!r}; list_memory gives the keys")
        return _told(found)

    @tool(effect=Effect.READ, max_result_chars=_CHARS)
    async def list_memory(
        ctx: ThreadContext,
        prefix: Annotated[str, Meta(description="How the keys begin; empty for all")] = "",
    ) -> list[str]:
        """List the keys of what was remembered in earlier threads."""
        try:
            return [fact.key for fact in await memory.facts(ctx, prefix)]
        except MemoryFault as fault:
            raise ToolError(str(fault)) from fault

    @tool(effect=Effect.REPEATABLE)
    async def remember(
        ctx: ThreadContext,
        key: _Key,
        value: Annotated[str, Meta(description="The fact in one sentence")],
    ) -> bool:
        """Keep a fact for later threads, instead of what was under its key."""
        try:
            await memory.remember(ctx, key, value)
        except MemoryFault as fault:
            raise ToolError(str(fault)) from fault
        return True

    @tool(effect=Effect.REPEATABLE)
    async def forget(ctx: ThreadContext, key: _Key) -> bool:
        """Forget the fact under a key. False if there was none."""
        try:
            return await memory.forget(ctx, key)
        except MemoryFault as fault:
            raise ToolError(str(fault)) from fault

    reading = Toolset.combine(recall, list_memory)
    return Toolset.combine(reading, remember, forget) if write else reading


def _told(fact: Fact) -> dict[str, str]:
    return {"value": fact.value, "remembered_by": fact.thread or "a person"}
