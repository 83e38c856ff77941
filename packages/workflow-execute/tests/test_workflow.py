"""What a transition tells a role, through everything that can happen to a thread."""

import hashlib
from typing import Any

import pytest

from workflow_cas import MemoryStore
from workflow_execute import Engine, JournalMismatch, Limits, Workflow, create_workflow
from workflow_execute.testing import adapter_of
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    RoleDefinition,
    ThreadContext,
    WorkflowDefinition,
    otherwise,
)

WRITER = RoleDefinition(name="writer", system_prompt="Write.", schema=str)
CRITIC = RoleDefinition(name="critic", system_prompt="Judge.", schema=str)


async def speak(ctx: ThreadContext) -> str:
    async def perform() -> str:
        return f"told {ctx.told!r}"

    asked = ctx.told.encode()
    return await ctx.journal.run(
        "say", perform, type=str, digest=hashlib.sha256(asked).hexdigest(), request=lambda: asked
    )


def remark(ctx: ThreadContext) -> str:
    return f"{ctx.visits(WRITER)} drafts so far"


def workflow(tell: Any = remark) -> Workflow:
    table = {START: WRITER, WRITER: otherwise(CRITIC, tell=tell), CRITIC: END}
    return create_workflow(WorkflowDefinition(table=table), AdapterBinding(adapter_of(speak)))


async def test_a_role_is_told_what_the_transition_to_it_says() -> None:
    done = await Engine(MemoryStore()).start(workflow(), "p")

    assert [step.meta for step in done.steps] == ["told ''", "told '1 drafts so far'"]


async def test_a_resume_a_fork_and_a_replay_tell_it_again() -> None:
    store = MemoryStore()
    stopped = await Engine(store, limits=Limits(max_steps=1)).start(workflow(), "p")
    engine = Engine(store)

    done = await engine.resume(workflow(), stopped.thread_id)
    forked = await engine.resume(workflow(), await engine.fork(done.thread_id, at_step=1))
    replay = await engine.replay(workflow(), done.thread_id)

    assert done.value == forked.value == "told '1 drafts so far'"
    assert (replay.steps, replay.requests) == (2, 2)
    with pytest.raises(JournalMismatch):
        await engine.replay(workflow("Something else."), done.thread_id)


async def test_what_tell_raises_fails_the_thread_with_the_role_that_it_leads_to() -> None:
    def number(ctx: ThreadContext) -> Any:
        return len(ctx.steps)

    done = await Engine(MemoryStore()).start(workflow(number), "p")

    assert (done.state, done.summary) == ("failed", "`tell` (number) returned 1; return a string")
