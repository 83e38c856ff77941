"""What is left of a limit in a fork, under another workflow and where threads share a budget."""

import pytest

from workflow_cas import MemoryStore, Store
from workflow_execute import (
    ALLOWANCE,
    Budget,
    Engine,
    Limits,
    Price,
    StoredThread,
    Workflow,
    check_summaries,
    read_thread,
    read_tree,
)
from workflow_protocol import Metered, ThreadContext, ThreadId, Usage

from .limit_flows import above, charged, endless, roles

PRICES = {"m": Price(input=1, output=1)}
DEAR = Metered[str](
    model="m",
    at_most=lambda: Usage(output_tokens=10_000),
    used=lambda _: Usage(output_tokens=10_000, calls=1),
)
FITS = (ALLOWANCE.max_tokens or 0) // 10_000
"""How many dear calls an allowance is enough for."""
EACH = {
    "max_steps": Limits(max_steps=1),
    "max_rounds": Limits(max_rounds=1),
    "max_tokens": Limits(max_tokens=75),
    "max_cost": Limits(max_cost=0.000_075, prices=PRICES),
    "max_seconds": Limits(max_seconds=0.000_001),
}


async def spend(ctx: ThreadContext) -> str:
    """Far more model calls than an allowance is enough for."""

    async def perform() -> str:
        return "done"

    for number in range(100):
        await ctx.journal.run(f"llm/{number}", perform, type=str, metered=DEAR)
    return "never"


def limit_step(stored: StoredThread) -> int:
    """The number of the one step that a limit ended."""
    (number,) = (at for at, step in enumerate(stored.steps) if step.record.allowed is not None)
    return number


async def suspended_twice(store: Store, flow: Workflow[str, object]) -> StoredThread:
    """A thread that has come to a limit, gone on, and used up what it was allowed."""
    done = await Engine(store, limits=Limits(max_tokens=75)).start(flow, "p")
    assert (done.state, done.limit) == ("suspended", "max_tokens")
    return await read_thread(store, done.thread_id)


async def tokens(store: Store, thread_id: ThreadId) -> int:
    return (await read_tree(store, thread_id)).spent.tokens


async def test_a_fork_from_before_the_limit_reaches_it_afresh_and_has_its_own_allowance() -> None:
    store, flow = MemoryStore(), endless(boss=spend)
    first = await suspended_twice(store, flow)
    at = limit_step(first)
    for kept in range(at + 1):
        engine = Engine(store, limits=Limits(max_tokens=175))
        fork = await engine.fork(first.thread_id, at_step=kept)
        again = await engine.resume(flow, fork)

        assert (again.state, again.limit) == ("suspended", "max_tokens")
        stored = await read_thread(store, fork)
        later = limit_step(stored)
        assert later > at, "its limit was higher"
        before, now = first.steps[at].record.allowed, stored.steps[later].record.allowed
        assert before is not None
        assert now is not None
        assert (now.max_tokens or 0) > (before.max_tokens or 0)
        own = sum(map(charged, stored.steps))
        assert await tokens(store, fork) == own + FITS * 10_000
        replay = await engine.replay(flow, fork)
        assert (replay.steps, replay.completion) == (len(stored.steps) - kept, None)
    assert await check_summaries(store) == []


async def test_a_fork_from_behind_the_limit_keeps_what_was_allowed_there() -> None:
    store, flow = MemoryStore(), endless(boss=spend)
    first = await suspended_twice(store, flow)
    engine = Engine(store, limits=Limits(max_tokens=1))
    fork = await engine.fork(first.thread_id)
    again = await engine.resume(flow, fork)

    assert (again.state, again.limit) == ("suspended", "max_tokens")
    stored = await read_thread(store, fork)
    assert [step.record for step in stored.steps] == [step.record for step in first.steps]
    assert await tokens(store, fork) == await tokens(store, first.thread_id)
    replay = await engine.replay(flow, fork)
    assert (replay.steps, replay.effects) == (0, FITS)


@pytest.mark.parametrize("limit", EACH)
async def test_a_thread_that_was_suspended_goes_on_where_the_workflow_has_a_role_since(
    limit: str,
) -> None:
    store, flow = MemoryStore(), endless()
    engine = Engine(store, limits=EACH[limit])
    waits = await engine.start(endless(route=False), "p")
    assert (waits.state, waits.limit) == ("suspended", limit)
    done = await engine.resume(flow, waits.thread_id)

    assert (done.state, done.value) == ("completed", f"llm/0 after {limit}")
    assert roles(done) == [*roles(waits), ["worker", "checker"][len(waits.steps) % 2], "boss"]
    assert (await engine.replay(flow, done.thread_id)).steps == len(done.steps)
    assert await check_summaries(store) == []


@pytest.mark.parametrize("limit", ["max_tokens", "max_cost"])
async def test_each_thread_of_a_shared_budget_goes_beyond_it_by_one_allowance(limit: str) -> None:
    store, flow = MemoryStore(), endless(spend, boss=spend)
    engine = Engine(store)
    shared = Budget(
        Limits(max_tokens=200_000) if limit == "max_tokens" else Limits(max_cost=0.2, prices=PRICES)
    )
    done = [await engine.start(flow, "p", budget=shared) for _ in range(3)]

    assert [(each.state, each.limit) for each in done] == [("suspended", limit)] * 3
    allowed = ALLOWANCE.max_tokens or 0
    spent = [await tokens(store, each.thread_id) for each in done]
    assert spent == [200_000 + allowed, allowed, allowed]
    assert shared.spent.tokens == sum(spent)


async def test_what_a_shared_budget_has_left_is_left_to_a_thread_at_another_limit() -> None:
    store, flow = MemoryStore(), endless(boss=spend, limits={"max_rounds": 1})
    shared = Budget(Limits(max_tokens=200_000))
    done = [await Engine(store).start(flow, "p", budget=shared) for _ in range(2)]

    assert [step.failure.limit for each in done for step in each.steps if step.failure] == [
        "max_rounds"
    ] * 2
    assert shared.spent.tokens <= 200_000 + 2 * (ALLOWANCE.max_tokens or 0)


async def test_a_child_that_is_resumed_alone_keeps_to_the_limits_above_it() -> None:
    store = MemoryStore()
    flow = above(endless(), route=False)
    engine = Engine(store, limits=Limits(max_tokens=75))
    waits = await engine.start(flow, "p")
    (child,) = waits.waits_for
    alone = await engine.resume(endless(), child)
    assert (alone.state, alone.limit) == ("suspended", "max_tokens")

    done = await engine.resume(above(endless()), waits.thread_id)
    assert (done.state, roles(done)) == ("completed", ["worker", "boss"])
    assert (await read_thread(store, child)).status.state == "cancelled"
