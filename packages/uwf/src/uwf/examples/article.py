"""A writer, a critic who sends drafts back, and a person who approves or says what is missing.

uwf run article.py "Why octopuses are clever"
"""

from pydantic import BaseModel

from uwf import (END, START, AdapterBinding, Answer, Effect, Question, RoleDefinition,
                 ThreadContext, WorkflowDefinition, create_llm_adapter, create_workflow,
                 function_adapter, otherwise, when)


class Critique(BaseModel):
    """What the critic says of a draft."""

    good: bool
    advice: str


writer = RoleDefinition(name="writer", system_prompt="Write three sentences.", schema=str)
critic = RoleDefinition(name="critic", system_prompt="Judge the latest draft.", schema=Critique)
approval = RoleDefinition(name="approval", schema=Answer)


def good(ctx: ThreadContext) -> bool:
    """The critic is content, or saw three drafts."""
    critique = ctx.meta(critic)
    return ctx.visits(critic) >= 3 or (critique is not None and critique.good)


def approved(ctx: ThreadContext) -> bool:
    """A person approves."""
    answer = ctx.meta(approval)
    return answer is not None and answer.approved


async def ask(ctx: ThreadContext) -> Answer:
    """Show the draft to a person, and wait."""
    draft = ctx.meta(writer) or ""
    return await ctx.journal.ask("publish", Question(text="Publish this?", details=draft))


run = create_workflow(
    WorkflowDefinition(result=approval, table={
        START: writer, writer: critic, critic: [when(good, approval), writer],
        approval: [when(approved, END), otherwise(writer, tell="Do what the person says.")]}),
    AdapterBinding(create_llm_adapter("default"), overrides={
        approval: function_adapter(approval, ask, effect=Effect.READ)}),
)
