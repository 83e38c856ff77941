"""Limits and usage of a thread with all that it starts, at once and after a resume."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_cas import MemoryStore, SqliteStore, Store, open_store
from workflow_execute import (
    Budget,
    Charge,
    ChildTask,
    Engine,
    Limits,
    Price,
    Workflow,
    list_threads,
    read_thread,
    read_tree,
    run_child,
    run_children,
)
from workflow_execute.testing import in_turn
from workflow_protocol import Metered, ModelReplied, ThreadContext, Usage


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


class Spender:
    """Threads that ask a model, and remember what was sent and the most that was ever open."""

    def __init__(self, *, used: int = 10, worst: int = 50) -> None:
        self.usage = Usage(input_tokens=used - 2, output_tokens=2, calls=1)
        self.worst = worst
        self.sent: list[str] = []
        self.crash = False

    async def call(self, ctx: ThreadContext, number: int) -> None:
        async def perform() -> int:
            self.sent.append(ctx.thread_id)
            await anyio.lowlevel.checkpoint()
            return number

        metered = Metered[int](
            model="m",
            at_most=lambda: Usage(output_tokens=self.worst),
            used=lambda value: self.usage,
        )
        await ctx.journal.run(f"llm/{number}", perform, type=int, metered=metered)
        await ctx.journal.note(ModelReplied(round=number, usage=self.usage))

    def leaf(self, calls: int, *, after: int | None = None) -> Workflow:
        """A thread of one role; `after` so many calls it dies, as long as `crash` is set."""

        async def turn(ctx: ThreadContext) -> int:
            for number in range(calls):
                if number == after and self.crash:
                    raise RuntimeError("died")
                await self.call(ctx, number)
            return calls

        return in_turn(turn)

    def parallel(self, *children: Workflow, own: int = 0) -> Workflow:
        """A thread that makes calls of its own and then starts all of these at once."""

        async def turn(ctx: ThreadContext) -> int:
            for number in range(own):
                await self.call(ctx, number)
            tasks = [ChildTask(workflow=child, input="p", name="c") for child in children]
            results = await run_children(ctx, tasks, at_once=len(children) or 1)
            return sum(result.read(int) for result in results)

        return in_turn(turn)


async def test_the_limit_of_a_thread_holds_for_its_children_and_raising_it_goes_on(
    store: SqliteStore,
) -> None:
    spender = Spender()
    parent = spender.parallel(*[spender.leaf(20)] * 4, own=3)
    stopped = await Engine(store, limits=Limits(max_tokens=500)).start(parent, "p")

    assert (stopped.state, stopped.cause) == ("suspended", "limit")
    assert 450 < len(spender.sent) * 10 <= 500
    assert "the limit of 500 tokens is reached" in stopped.summary
    tree = await read_tree(store, stopped.thread_id)
    assert tree.spent == Charge(tokens=len(spender.sent) * 10)
    assert tree.charged == Charge(tokens=30)
    same = await Engine(store, limits=Limits(max_tokens=500)).resume(parent, stopped.thread_id)
    assert (same.state, same.cause) == ("suspended", "limit")
    assert len(spender.sent) * 10 <= 500

    # 830 are used in the end, and each child may have set 50 aside before.
    more = await Engine(store, limits=Limits(max_tokens=1050)).resume(parent, stopped.thread_id)
    assert (more.state, more.value, len(spender.sent)) == ("completed", 80, 83)
    assert len(await list_threads(store)) == 5
    tree = await read_tree(store, stopped.thread_id)
    assert tree.usage == Usage(input_tokens=83 * 8, output_tokens=83 * 2, calls=83)
    assert tree.spent == Charge(tokens=830)
    assert [step.usage.calls for step in more.steps] == [3]


async def test_a_limit_of_cost_holds_for_children_too_and_each_has_what_it_spent(
    store: SqliteStore,
) -> None:
    """A call costs 0.01 and may cost 0.05: five children at once stay below 0.5 together."""
    spender = Spender()
    parent = spender.parallel(*[spender.leaf(20)] * 5, own=3)
    prices = {"m": Price(input=1000, output=1000)}
    limits = Limits(max_cost=0.5, prices=prices)
    stopped = await Engine(store, limits=limits).start(parent, "p")

    assert (stopped.state, stopped.cause, stopped.limit) == ("suspended", "limit", "max_cost")
    assert (await read_thread(store, stopped.thread_id)).status.limit == "max_cost"
    tree = await read_tree(store, stopped.thread_id)
    assert 450_000 < tree.spent.micros <= 500_000
    assert tree.charged.micros == 30_000
    parts = {each.thread.thread_id: each.charged.micros for each in tree.walk()}
    assert parts == {each: spender.sent.count(each) * 10_000 for each in parts}
    assert sum(parts.values()) == tree.spent.micros

    more = Limits(max_cost=2, prices=prices)
    done = await Engine(store, limits=more).resume(parent, stopped.thread_id)
    assert (done.state, done.value) == ("completed", 100)
    assert (await read_tree(store, stopped.thread_id)).spent.micros == 1_030_000


async def test_what_unfinished_children_have_spent_counts_before_any_of_them_goes_on(
    store: SqliteStore,
) -> None:
    """The first child spends what is left, unless the store knows what the second one had."""
    spender = Spender()
    spender.crash = True
    parent = spender.parallel(spender.leaf(30, after=0), spender.leaf(30, after=25))
    died = await Engine(store).start(parent, "p")
    assert (died.state, len(spender.sent)) == ("failed", 25)

    spender.crash = False
    budget = Budget(Limits(max_tokens=400))
    stopped = await Engine(store).resume(parent, died.thread_id, budget=budget)
    assert (stopped.state, stopped.cause) == ("suspended", "limit")
    # Each may have set 50 aside when the other asks for more.
    assert 300 < len(spender.sent) * 10 <= 400
    assert budget.spent == Charge(tokens=len(spender.sent) * 10)


async def test_a_child_that_is_finished_alone_draws_from_what_the_tree_has_left(
    store: SqliteStore,
) -> None:
    spender = Spender()
    spender.crash = True
    child = spender.leaf(10, after=5)
    parent = spender.parallel(child, own=20)
    died = await Engine(store).start(parent, "p")
    child_id = (await list_threads(store))[1]
    spender.crash = False

    limits = Limits(max_tokens=290)
    stopped = await Engine(store, limits=limits).resume(child, child_id)
    assert (stopped.cause, len(spender.sent)) == ("limit", 25)
    done = await Engine(store, limits=Limits(max_tokens=350)).resume(child, child_id)
    assert (done.state, len(spender.sent)) == ("completed", 30)
    assert (await Engine(store, limits=limits).resume(parent, died.thread_id)).value == 10
    assert len(spender.sent) == 30


async def test_a_turn_that_is_begun_anew_keeps_what_it_has_spent(store: SqliteStore) -> None:
    spender = Spender()
    spender.crash = True
    prices = {"m": Price(input=1.0, output=10.0)}
    parent = spender.parallel(spender.leaf(10, after=5), own=2)
    engine = Engine(store, limits=Limits(max_tokens=1000, prices=prices))
    died = await engine.start(parent, "p")
    spender.crash = False
    done = await engine.resume(parent, died.thread_id, fresh=True)

    assert (done.state, len(spender.sent)) == ("completed", 2 + 5 + 2 + 10)
    tree = await read_tree(store, died.thread_id)
    assert tree.spent == Charge(tokens=190, micros=19 * 28)
    assert (tree.usage.calls, tree.charged) == (12, Charge(tokens=40, micros=4 * 28))
    assert [child.thread.status.state for child in tree.children] == ["cancelled", "completed"]
    assert (await read_thread(store, died.thread_id)).steps[0].record.charged_tokens == 40


async def test_usage_of_three_levels_adds_up(store: SqliteStore) -> None:
    spender = Spender()

    async def turn(ctx: ThreadContext) -> int:
        await spender.call(ctx, 0)
        if ctx.depth == 2:
            return 1
        task = ChildTask(workflow=in_turn(turn), input="p", name="c")
        return 1 + (await run_child(ctx, task)).read(int)

    done = await Engine(store).start(in_turn(turn, turn), "p")
    tree = await read_tree(store, done.thread_id)
    assert (tree.usage.calls, len([*tree.walk()])) == (6, 5)
    assert [child.usage.calls for child in tree.children] == [2, 2]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8)), min_size=1, max_size=5),
    st.lists(st.integers(0, 600), min_size=1, max_size=4),
    st.integers(0, 3),
    st.integers(2, 60),
)
async def test_however_children_die_and_limits_rise_a_tree_never_spends_more(
    children: list[tuple[int, int]], limits: list[int], own: int, used: int
) -> None:
    """Each run dies where its child says; the last one has no limit and no deaths."""
    store: Store = MemoryStore()
    spender = Spender(used=used, worst=60)
    middle = spender.parallel(*[spender.leaf(calls, after=at) for calls, at in children[1:]])
    first = spender.leaf(children[0][0], after=children[0][1])
    parent = spender.parallel(first, middle, own=own)
    spender.crash = True

    result = await Engine(store, limits=Limits(max_tokens=limits[0])).start(parent, "p")
    for limit in sorted(limits):
        result = (
            await Engine(store, limits=Limits(max_tokens=limit)).resume(parent, result.thread_id)
            if result.state != "completed"
            else result
        )
        assert len(spender.sent) * used <= max(limit, limits[0])
        tree = await read_tree(store, result.thread_id)
        assert tree.spent.tokens == len(spender.sent) * used
    spender.crash = False
    if result.state != "completed":
        result = await Engine(store).resume(parent, result.thread_id)

    calls = sum(count for count, _ in children)
    assert (result.state, result.value) == ("completed", calls)
    assert len(spender.sent) == own + calls
    assert len(await list_threads(store)) == 2 + len(children)
