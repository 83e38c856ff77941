"""Limits: of one thread, of several together, at once and after a resume."""

import contextlib
import functools
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_cas import MemoryStore, SqliteStore, open_store
from workflow_execute import (
    Budget,
    Charge,
    Engine,
    LimitReached,
    Limits,
    Price,
    Workflow,
    read_thread,
)
from workflow_execute.testing import in_turn
from workflow_protocol import Metered, ModelReplied, ThreadContext, Usage


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


def spending(
    calls: int, sent: list[str], *, usage: Usage | None = None, worst: int = 100, roles: int = 1
) -> Workflow:
    """Roles that ask a model some times, at 10 tokens each, or an unknown number."""
    used = usage or Usage(input_tokens=8, output_tokens=2, calls=1)

    async def turn(ctx: ThreadContext) -> int:
        for number in range(calls):

            async def perform(number: int = number) -> int:
                sent.append(ctx.thread_id)
                await anyio.lowlevel.checkpoint()
                return number

            metered = Metered[int](
                model="m", at_most=lambda: Usage(output_tokens=worst), used=lambda value: used
            )
            await ctx.journal.run(f"llm/{number}", perform, type=int, metered=metered)
            await ctx.journal.note(ModelReplied(round=number, usage=used))
        return calls

    return in_turn(*[turn] * roles)


async def test_a_limit_of_tokens_stops_before_the_request_and_raising_it_goes_on(
    store: SqliteStore,
) -> None:
    sent: list[str] = []
    workflow = spending(5, sent, roles=2)
    stopped = await Engine(store, limits=Limits(max_tokens=165)).start(workflow, "p")

    assert (stopped.state, stopped.cause, len(sent)) == ("suspended", "limit", 7)
    assert stopped.summary == (
        "the limit of 165 tokens is reached: 70 are spent or reserved, "
        "and the next request to 'm' may take 100"
    )
    same = await Engine(store, limits=Limits(max_tokens=165)).resume(workflow, stopped.thread_id)
    assert (same.state, len(sent)) == ("suspended", 7)
    raised = await Engine(store, limits=Limits(max_tokens=190)).resume(workflow, stopped.thread_id)
    assert (raised.state, len(sent)) == ("completed", 10)


async def test_unknown_usage_counts_as_the_worst_case_also_after_a_resume(
    store: SqliteStore,
) -> None:
    sent: list[str] = []
    workflow = spending(2, sent, usage=Usage(calls=1, unknown_calls=1), roles=3)
    limits = Limits(max_tokens=350)
    stopped = await Engine(store, limits=limits).start(workflow, "p")
    assert (stopped.state, len(sent)) == ("suspended", 3)

    steps = (await read_thread(store, stopped.thread_id)).steps
    assert [step.record.charged_tokens for step in steps] == [200]
    again = await Engine(store, limits=Limits(max_tokens=450)).resume(workflow, stopped.thread_id)
    assert (again.state, len(sent)) == ("suspended", 4)


async def test_a_limit_of_rounds_counts_those_of_earlier_runs_of_the_turn(
    store: SqliteStore,
) -> None:
    sent: list[str] = []
    workflow = spending(5, sent, roles=2)
    stopped = await Engine(store, limits=Limits(max_rounds=4)).start(workflow, "p")
    assert (stopped.summary, len(sent)) == (
        "the limit of 4 model calls in one turn is reached", 4,
    )  # fmt: skip
    raised = await Engine(store, limits=Limits(max_rounds=5)).resume(workflow, stopped.thread_id)
    assert (raised.state, len(sent)) == ("completed", 10)


async def test_a_limit_of_cost_needs_a_price(store: SqliteStore) -> None:
    sent: list[str] = []
    workflow = spending(10, sent, worst=1000)
    unpriced = await Engine(store, limits=Limits(max_cost=1)).start(workflow, "p")
    assert (unpriced.state, sent) == ("suspended", [])
    assert "'m' has no price" in unpriced.summary

    prices = {"m": Price(input=1.0, output=10.0)}  # 28 millionths a call, at most 10,000
    limits = Limits(max_cost=0.0101, prices=prices)
    stopped = await Engine(store, limits=limits).start(workflow, "p")
    assert (stopped.state, sent.count(stopped.thread_id)) == ("suspended", 4)
    assert "0.0001 are spent" in stopped.summary
    more = Limits(max_cost=0.02, prices=prices)
    done = await Engine(store, limits=more).resume(workflow, stopped.thread_id)
    assert done.state == "completed"
    step = (await read_thread(store, stopped.thread_id)).steps[0]
    assert step.record.charged_micros == 280


async def test_threads_that_share_a_budget_never_spend_more_together(store: SqliteStore) -> None:
    sent: list[str] = []
    budget = Budget(Limits(max_tokens=500))
    most = 0

    async def run() -> None:
        nonlocal most
        result = await Engine(store).start(spending(20, sent, worst=50), "p", budget=budget)
        assert result.cause == "limit"

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, budget.spent.tokens + budget.reserved.tokens)
            await anyio.lowlevel.checkpoint()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as outer:
            outer.start_soon(watch)
            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(run)
            outer.cancel_scope.cancel()

    assert budget.reserved == Charge()
    assert budget.spent.tokens == len(sent) * 10
    assert 450 < most <= 500
    assert len(set(sent)) == 5


async def test_a_limit_of_time_suspends_in_the_middle_and_counts_over_runs(
    store: SqliteStore,
) -> None:
    in_time = False

    async def quick(ctx: ThreadContext) -> int:
        return 1

    async def slow(ctx: ThreadContext) -> int:
        await anyio.sleep(0.1 if in_time else 60)
        return 1

    workflow = in_turn(quick, slow)
    stopped = await Engine(store, limits=Limits(max_seconds=0.5)).start(workflow, "p")
    assert (stopped.state, stopped.cause, len(stopped.steps)) == ("suspended", "limit", 1)
    assert stopped.summary == "the limit of 0.5 seconds is reached"
    in_time = True
    again = await Engine(store, limits=Limits(max_seconds=0.3)).resume(workflow, stopped.thread_id)
    assert (again.state, again.cause, len(again.steps)) == ("suspended", "limit", 1)
    done = await Engine(store, limits=Limits(max_seconds=60)).resume(workflow, stopped.thread_id)
    assert done.state == "completed"


def test_a_price_of_ones_own_goes_before_what_the_provider_says() -> None:
    said = Usage(input_tokens=1_000_000, calls=1, cost_micros=42)
    assert Budget(Limits()).price("m", said) == Charge(1_000_000, 42)
    priced = Budget(Limits(prices={"m": Price(input=2, output=8)}))
    assert priced.price("m", said) == Charge(1_000_000, 2_000_000)


async def test_a_call_that_fails_gives_its_reservation_back(store: SqliteStore) -> None:
    budget = Budget(Limits(max_tokens=100))

    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            raise RuntimeError

        metered = Metered[int](
            model="m", at_most=lambda: Usage(output_tokens=90), used=lambda v: Usage()
        )
        return await ctx.journal.run("llm/0", perform, type=int, metered=metered)

    for _ in range(2):
        assert (await Engine(store).start(in_turn(turn), "p", budget=budget)).state == "failed"
    assert (budget.spent, budget.reserved) == (Charge(), Charge())


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300), st.booleans()), max_size=50),
    st.integers(0, 1000),
)
def test_whatever_is_reserved_settled_and_released_the_limit_holds(
    calls: list[tuple[int, int, bool]], limit: int
) -> None:
    budget = Budget(Limits(max_tokens=limit))
    open_ones: list[tuple[Charge, int]] = []
    for worst, used, settle_one in calls:
        if settle_one and open_ones:
            reserved, tokens = open_ones.pop(0)
            budget.release(reserved)
            budget.count(Charge(min(tokens, reserved.tokens)))
        with contextlib.suppress(LimitReached):
            reserved = budget.reserve("m", functools.partial(Usage, input_tokens=worst))
            open_ones.append((reserved, used))
        assert budget.spent.tokens + budget.reserved.tokens <= limit
    for reserved, _ in open_ones:
        budget.release(reserved)
    assert budget.reserved == Charge()


async def test_a_thread_that_is_taken_up_with_its_budget_is_not_counted_twice(
    store: SqliteStore,
) -> None:
    sent: list[str] = []
    budget = Budget(Limits(max_tokens=150))
    workflow = spending(3, sent, roles=3)
    result = await Engine(store).start(workflow, "p", budget=budget)
    for _ in range(3):
        assert (result.cause, budget.spent) == ("limit", Charge(tokens=60))
        result = await Engine(store).resume(workflow, result.thread_id, budget=budget)
    assert len(sent) == 6


async def test_a_limit_of_steps_does_not_count_the_time_of_the_last_step_again() -> None:
    async def turn(ctx: ThreadContext) -> int:
        await anyio.sleep(0.1)
        return 1

    store = MemoryStore()
    stopped = await Engine(store, limits=Limits(max_steps=1)).start(in_turn(turn, turn), "p")
    thread = await read_thread(store, stopped.thread_id)

    assert stopped.cause == "limit"
    assert thread.status.turn_ms < thread.steps[0].record.elapsed_ms  # of a turn that has not begun
