"""The supervisor: when it is asked, what it sees, and what its answer does."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import TypeForm

from workflow_cas import SqliteStore, content, open_store
from workflow_execute import (
    Charge,
    Decision,
    Engine,
    Limits,
    Workflow,
    create_supervisor,
    create_workflow,
    read_thread,
    read_tree,
)
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Completion,
    Condition,
    RoleDefinition,
    RoleFn,
    ThreadContext,
    WorkflowDefinition,
    when,
)
from workflow_reactor import ask_model, user
from workflow_reactor.testing import ScriptedLlm, call, say

TALKER = RoleDefinition(name="talker", system_prompt="Talk.", schema=str)
LISTENER = RoleDefinition(name="listener", system_prompt="Listen.", schema=str)
GO_ON = call("resolve", decision="continue", reason="all is well")
STOP = call("resolve", decision="stop", reason="they go in circles")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


def endless(boom_at: int = -1, ends_after: int = -1) -> Workflow:
    """Two roles that talk for ever; `boom_at` raises once, at that many steps."""
    booms = [boom_at]
    ended = Condition(name="ended", description="", check=lambda ctx: len(ctx.steps) == ends_after)

    def adapter(prompt: str, schema: TypeForm[Any]) -> RoleFn[Any]:
        async def role(ctx: ThreadContext) -> Any:
            if len(ctx.steps) in booms:
                booms.clear()
                raise RuntimeError("boom")
            return f"{prompt} {len(ctx.steps)} " + "x" * 1000

        return role

    return create_workflow(
        WorkflowDefinition(
            table={
                START: TALKER,
                TALKER: LISTENER,
                LISTENER: [when(ended, END), TALKER],
            },
        ),
        AdapterBinding(adapter),
    )


async def test_it_is_asked_after_every_n_steps_and_its_stop_ends_the_thread(
    store: SqliteStore,
) -> None:
    llm = ScriptedLlm([GO_ON, say(None), call("read_step", number=4), STOP])
    engine = Engine(store, supervisor=create_supervisor(llm), supervise_every=2)
    result = await engine.start(endless(), "Find the answer.")

    assert (result.state, result.return_code) == ("completed", 1)
    assert result.summary == "stopped by the supervisor: they go in circles"
    assert len(result.steps) == 4
    overview = llm.requests[1]["messages"][1]["content"]
    assert overview.startswith("Task: Find the answer.")
    assert '4. [listener] "Listen. 3 ' in overview
    assert len(overview) < 2_000
    assert llm.requests[3]["messages"][-1]["content"] == result.steps[3].content

    replayed = await Engine(store).replay(endless(), result.thread_id)
    assert replayed.completion == Completion(return_code=1, summary=result.summary)


async def test_it_is_off_unless_it_is_given(store: SqliteStore) -> None:
    result = await Engine(store, limits=Limits(max_steps=7)).start(endless(), "p")

    assert result.state == "suspended"
    thread = await read_thread(store, result.thread_id)
    assert [step.turn for step in thread.steps] == [None] * 7


@pytest.mark.parametrize("replies", [[], [say("hm")] * 4, [call("resolve", decision="kill")] * 4])
async def test_a_supervisor_that_fails_is_logged_and_stops_nothing(
    store: SqliteStore, replies: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = create_supervisor(ScriptedLlm(replies))
    engine = Engine(store, limits=Limits(max_steps=3), supervisor=supervisor, supervise_every=2)
    result = await engine.start(endless(), "p")

    assert (result.state, len(result.steps)) == ("suspended", 3)
    assert "the supervisor of thread" in caplog.text


async def test_its_decision_is_recorded_and_not_asked_for_again(store: SqliteStore) -> None:
    llm = ScriptedLlm([GO_ON, STOP])
    engine = Engine(store, supervisor=create_supervisor(llm), supervise_every=2)
    workflow = endless(boom_at=2)
    failed = await engine.start(workflow, "p")
    assert (failed.state, len(llm.requests)) == ("failed", 1)

    result = await engine.resume(workflow, failed.thread_id)
    assert (result.return_code, len(result.steps), len(llm.requests)) == (1, 4, 2)


async def test_what_it_took_counts_also_where_its_decision_is_recorded(store: SqliteStore) -> None:
    engine = Engine(store, supervisor=create_supervisor(ScriptedLlm([GO_ON])), supervise_every=2)
    workflow = endless(boom_at=2, ends_after=4)
    failed = await engine.start(workflow, "p")
    before = (await read_tree(store, failed.thread_id)).spent
    done = await engine.resume(workflow, failed.thread_id)
    assert (failed.state, done.state) == ("failed", "completed")
    assert (await read_tree(store, failed.thread_id)).spent == before > Charge()


async def test_a_thread_that_is_about_to_end_is_not_looked_at(store: SqliteStore) -> None:
    llm = ScriptedLlm([GO_ON])
    engine = Engine(store, supervisor=create_supervisor(llm), supervise_every=1)
    result = await engine.start(endless(ends_after=2), "p")

    assert (result.return_code, len(result.steps), len(llm.requests)) == (0, 2, 1)


async def test_its_calls_are_no_rounds_of_the_role_that_comes_next(store: SqliteStore) -> None:
    llm = ScriptedLlm([say("hi")] * 2)

    def adapter(prompt: str, schema: TypeForm[Any]) -> RoleFn[Any]:
        async def role(ctx: ThreadContext) -> Any:
            reply = await ask_model(llm, ctx.journal, [user(prompt)], round=0, max_rounds=1)
            return reply.text

        return role

    workflow = create_workflow(endless(ends_after=2).definition, AdapterBinding(adapter))
    supervisor = create_supervisor(ScriptedLlm([call("read_step", number=1), GO_ON]))
    limits = Limits(max_rounds=1)
    engine = Engine(store, limits=limits, supervisor=supervisor, supervise_every=1)
    result = await engine.start(workflow, "p")

    assert (result.state, len(result.steps)) == ("completed", 2)


async def test_what_it_watches_for_can_be_told(store: SqliteStore) -> None:
    llm = ScriptedLlm([STOP])
    supervisor = create_supervisor(llm, prompt="Stop when they shout.")
    await Engine(store, supervisor=supervisor, supervise_every=1).start(endless(), "p")

    told = llm.requests[0]["messages"][0]["content"]
    assert told.startswith("You watch a workflow.")
    assert told.endswith("read any step in full. Stop when they shout.")


async def test_any_function_can_supervise(store: SqliteStore) -> None:
    async def stop(thread: ThreadContext) -> Decision:
        return Decision(decision="stop", reason=f"{len(thread.steps)} are enough")

    result = await Engine(store, supervisor=stop, supervise_every=1).start(endless(), "p")
    assert result.summary == "stopped by the supervisor: 1 are enough"
    assert await read_thread(store, result.thread_id)


async def test_steps_that_are_not_there_can_not_be_read(store: SqliteStore) -> None:
    llm = ScriptedLlm([call("read_step", number=9), call("read_step", number="x"), STOP])
    engine = Engine(store, supervisor=create_supervisor(llm), supervise_every=1)
    await engine.start(endless(), "p")

    told = [request["messages"][-1]["content"] for request in llm.requests[1:]]
    assert told == ["Error: there is no such step; give a number from 1 to 1"] * 2


async def test_it_reads_a_stored_object_by_the_digits_of_its_hash(store: SqliteStore) -> None:
    plan = content("the plan in full")
    await store.commit([plan])
    llm = ScriptedLlm([call("cas_get", hash=plan.hash[:12]), call("cas_get", hash="0" * 64), STOP])
    engine = Engine(store, supervisor=create_supervisor(llm), supervise_every=1)
    result = await engine.start(endless(), "p")

    assert result.return_code == 1
    told = [each["content"] for each in llm.requests[2]["messages"] if each["role"] == "tool"]
    assert told[0] == "the plan in full"
    assert told[1].startswith("Error: no object is stored under")
    replayed = await engine.replay(endless(), result.thread_id)
    assert replayed.completion is not None
    assert len(llm.requests) == 3
