"""A limit leads on to a role: once, with an allowance, and everything reads it alike."""

from typing import Any

import anyio
import pytest

from workflow_cas import MemoryStore
from workflow_execute import (
    ALLOWANCE,
    Engine,
    Limits,
    Price,
    ThreadResult,
    Workflow,
    check_summaries,
    create_workflow,
    read_thread,
)
from workflow_execute.testing import adapter_of
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    DefinitionError,
    Event,
    Failure,
    RoleDefinition,
    RoleStopped,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
    describe,
    when,
)

from .limit_flows import BOSS, CHECKER, WORKER, above, ask, endless, roles, work


async def run_twice_over(
    flow: Workflow[str, object], limits: Limits | None = None
) -> ThreadResult[object]:
    """Run it, replay it, and fork it at its last step, which has to come to the same."""
    store = MemoryStore()
    engine = Engine(store, limits=limits)
    done = await engine.start(flow, "p")
    assert (await engine.replay(flow, done.thread_id)).steps == len(done.steps)
    fork = await engine.fork(done.thread_id, at_step=len(done.steps) - 1)
    again = await engine.resume(flow, fork)
    assert [each.role for each in again.steps] == [each.role for each in done.steps]
    assert (again.state, again.summary) == (done.state, done.summary)
    assert await check_summaries(store) == []
    return done


async def test_too_many_steps_lead_to_the_role_at_a_limit() -> None:
    done = await run_twice_over(endless(), Limits(max_steps=3))

    assert (done.state, done.value) == ("completed", "llm/0 after max_steps")
    assert roles(done) == ["worker", "checker", "worker", "checker", "boss"]
    assert done.steps[3].failure == Failure(
        type="LimitReached", message="the limit of 3 steps is reached", limit="max_steps"
    )


async def test_a_turn_that_a_limit_ends_keeps_what_it_took() -> None:
    events: list[Event] = []
    engine = Engine(MemoryStore(), limits=Limits(max_tokens=110), observer=events.append)
    done = await engine.start(endless(), "p")

    assert roles(done)[-2:] == ["checker", "boss"]
    limited = next(step for step in done.steps if step.failure)
    assert limited.failure is not None
    assert limited.failure.limit == "max_tokens"
    assert limited.usage.calls == 1
    stopped = [each for each in events if isinstance(each, RoleStopped)]
    assert [(each.error, each.leads_to) for each in stopped] == [("LimitReached", "boss")]


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (Limits(max_rounds=1), "max_rounds"),
        (Limits(max_tokens=100), "max_tokens"),
        (Limits(max_cost=0.0001, prices={"m": Price(input=1, output=1)}), "max_cost"),
    ],
)
async def test_each_limit_leads_there(limits: Limits, limit: str) -> None:
    done = await run_twice_over(endless(), limits)

    assert done.value == f"llm/0 after {limit}"


async def test_when_the_time_is_over_the_role_at_work_is_cut_off() -> None:
    async def wait(ctx: ThreadContext) -> str:
        await ask(ctx, "llm/0")
        await anyio.sleep_forever()
        return "never"

    done = await run_twice_over(endless(wait), Limits(max_seconds=0.05))

    assert (roles(done), done.value) == (["worker", "boss"], "llm/0 after max_seconds")


async def test_a_workflow_has_limits_of_its_own_and_the_tighter_one_holds() -> None:
    own = endless(limits={"max_steps": 2})
    loose = endless(limits={"max_steps": 50})

    assert len((await run_twice_over(own)).steps) == 4
    assert len((await run_twice_over(loose, Limits(max_steps=2))).steps) == 4
    assert len((await run_twice_over(own, Limits(max_steps=50))).steps) == 4


async def test_without_a_role_for_it_a_limit_suspends_and_can_be_raised() -> None:
    store, flow = MemoryStore(), endless(route=False)
    done = await Engine(store, limits=Limits(max_steps=2)).start(flow, "p")
    assert (done.state, done.cause, done.limit) == ("suspended", "limit", "max_steps")

    more = await Engine(store, limits=Limits(max_steps=4)).resume(flow, done.thread_id)
    assert (more.state, len(more.steps)) == ("suspended", 4)


async def test_a_thread_that_has_come_to_its_end_is_completed_at_its_limit() -> None:
    definition = WorkflowDefinition(table={START: WORKER, WORKER: END})
    flow = create_workflow(definition, AdapterBinding(adapter_of(work)))
    done = await Engine(MemoryStore(), limits=Limits(max_steps=1)).start(flow, "p")

    assert done.state == "completed"


async def test_the_allowance_is_used_once() -> None:
    async def go_on(ctx: ThreadContext) -> str:
        for number in range((ALLOWANCE.max_rounds or 0) + 1):
            await ask(ctx, f"llm/{number}")
        return "never"

    store, flow = MemoryStore(), endless(boss=go_on)
    done = await Engine(store, limits=Limits(max_rounds=1)).start(flow, "p")

    assert (done.state, done.limit) == ("suspended", "max_rounds")
    assert roles(done) == ["worker"]
    again = await Engine(store, limits=Limits(max_rounds=1)).resume(flow, done.thread_id)
    assert (again.state, again.limit) == ("suspended", "max_rounds")
    more = await Engine(store, limits=Limits(max_rounds=20)).resume(flow, done.thread_id)
    assert more.value == "never"


async def test_what_limits_leave_is_allowed_if_it_is_more() -> None:
    async def many_steps(ctx: ThreadContext) -> str:
        return await ask(ctx, "llm/0")

    round_about = WorkflowDefinition(
        table={
            START: WORKER,
            WORKER: CHECKER,
            CHECKER: WORKER,
            BOSS: [when(lambda ctx: ctx.visits(BOSS) < 12, BOSS, name="go on"), END],
        },
        at_limit=BOSS,
    )
    flow = create_workflow(
        round_about, AdapterBinding(adapter_of(work), overrides={BOSS: adapter_of(many_steps)})
    )
    done = await Engine(MemoryStore(), limits=Limits(max_rounds=1)).start(flow, "p")

    assert (done.state, len(done.steps)) == ("completed", 13)


async def test_a_limit_of_a_child_is_the_childs_affair() -> None:
    store = MemoryStore()
    done = await Engine(store).start(above(endless(limits={"max_tokens": 100})), "p")

    above_it = await read_thread(store, done.thread_id)
    child = await read_thread(store, ThreadId(above_it.steps[0].record.child_threads[0]))
    assert child.status.state == "completed"
    assert child.steps[-1].record.role == "boss"
    assert done.steps[0].failure is None, "the thread above did not reach a limit there"


async def test_a_limit_of_a_thread_above_is_not_the_childs_affair() -> None:
    store = MemoryStore()
    flow = above(endless(), limits={"max_tokens": 100})
    done = await Engine(store).start(flow, "p")

    assert (done.state, roles(done)) == ("completed", ["worker", "boss"])
    assert done.steps[0].failure is not None
    child = await read_thread(store, ThreadId(done.steps[0].child_threads[0]))
    assert child.status.state == "cancelled"
    assert "boss" not in [step.record.role for step in child.steps]


async def test_a_limit_that_a_child_suspends_at_leads_on_above() -> None:
    done = await run_twice_over(above(endless(route=False, limits={"max_steps": 1})))

    assert (roles(done), done.value) == (["worker", "boss"], "llm/0 after max_steps")


async def test_another_workflow_without_the_role_says_what_is_missing() -> None:
    store = MemoryStore()
    engine = Engine(store, limits=Limits(max_steps=1))
    done = await engine.start(endless(), "p")
    fork = await engine.fork(done.thread_id, at_step=2)
    failed = await engine.resume(endless(route=False), fork)

    assert failed.state == "failed"
    assert "reached max_steps, and the workflow has no at_limit" in failed.summary


@pytest.mark.parametrize(
    ("at_limit", "limits", "words"),
    [
        (END, {}, "a limit can't lead to END"),
        ("nobody", {}, "'nobody' is not among the roles"),
        (3, {}, "at_limit: it is of type int"),
        (RoleDefinition(name="boss", system_prompt="", schema=int), {}, "another role is called"),
        (BOSS, {"max_stepps": 3}, "there is no limit 'max_stepps'"),
        (BOSS, {"max_steps": 0}, "use a whole number > 0"),
        (BOSS, {"max_tokens": 1.5}, "use a whole number > 0"),
        (BOSS, {"max_seconds": True}, "use a number > 0"),
        (BOSS, {"max_cost": float("nan")}, "use a number > 0"),
        (BOSS, [3], "limits: it is of type list"),
        (WORKER, {}, "no path of the table leads from 'worker' to END"),
    ],
)
def test_what_can_not_be_is_refused_at_build(at_limit: Any, limits: Any, words: str) -> None:
    with pytest.raises(DefinitionError, match=words):
        WorkflowDefinition(
            table={START: CHECKER, CHECKER: [when(lambda ctx: True, END, name="x"), WORKER],
                   WORKER: WORKER, BOSS: END},
            at_limit=at_limit,
            limits=limits,
        )  # fmt: skip


def test_a_description_has_the_limits_and_where_they_lead() -> None:
    described = describe(endless(limits={"max_steps": 4}).definition)

    assert described.limits == {"max_steps": 4}
    assert (described.edges[-1].kind, described.edges[-1].target) == ("limit", "boss")
