"""An agent that answers in words, as an adapter that gives typed values."""

from __future__ import annotations

from typing import TypeVar

from typing_extensions import TypeForm

from workflow_protocol import AdapterFn, AgentFn, Replied, RoleFn, ThreadContext
from workflow_reactor import LlmFn, LlmProvider, LlmSource, create_extract, model_of

T = TypeVar("T")


def agent_to_adapter(
    agent: AgentFn, extract_llm: str | LlmProvider | LlmFn | LlmSource
) -> AdapterFn:
    """Give an adapter that lets the agent work and then extracts the role's value from its words.

    That costs at least one model call more than an adapter that gives the value itself. The
    extracting model sees all that the agent wrote; later roles read it as the step's content.
    What the agent names by 12 or more digits of its hash, the model reads with the tool `cas_get`
    from the engine's store.
    An agent's effects are its own to record: it gets a context whose journal keys begin with
    `agent/`.

    Example:
        ```python
        async def agent(ctx: ThreadContext, prompt: str) -> str:
            return f"I was told to {prompt} I did, and all is well."

        checker = RoleDefinition(name="checker", system_prompt="Check it.", schema=str)
        run = create_workflow(
            WorkflowDefinition(table={START: checker, checker: END}, result=checker),
            AdapterBinding(agent_to_adapter(agent, "default")),
        )
        ```
    """
    extract = create_extract(model_of(extract_llm))

    def adapter(prompt: str, schema: TypeForm[T]) -> RoleFn[T]:
        async def role(ctx: ThreadContext) -> T:
            words = await agent(ctx.scoped("agent"), prompt)
            await ctx.journal.note(Replied(content=words))
            return await extract(ctx.scoped("extract"), words, schema)

        return role

    return adapter
