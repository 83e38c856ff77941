"""Whatever dies where: a limit leads to its role once, nothing is done twice, nothing overspent."""

import json
import math
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_cas import (
    Entry,
    MemoryStore,
    RefMove,
    Store,
    Stored,
    StoreError,
    StoreFull,
    open_store,
)
from workflow_execute import (
    ChildTask,
    Engine,
    Limits,
    Price,
    StoredThread,
    Workflow,
    check_summaries,
    create_workflow,
    list_threads,
    read_thread,
    read_tree,
    run_child,
)
from workflow_execute.testing import adapter_of
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Effect,
    OutcomeUnknown,
    OwnLimits,
    RoleDefinition,
    RoleFailed,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
    when,
)

from .limit_flows import BOSS, CHECKER, WORKER, ask, never

ENGINE = Limits(prices={"m": Price(input=1, output=1)})
MICRO = 0.000_001
Note = Callable[[str], None]


async def call(ctx: ThreadContext, key: str, note: Note) -> str:
    """Call the model, which may be done again where nobody saw the reply."""
    return await ask(ctx, key, lambda: note(json.dumps([ctx.thread_id, len(ctx.steps), key])))


async def act(ctx: ThreadContext, key: str, note: Note) -> None:
    """Do something that may not be done twice."""

    async def perform() -> str:
        note(json.dumps([ctx.thread_id, len(ctx.steps), key]))
        return key

    with suppress(OutcomeUnknown):  # it died just then, and does not do it again
        await ctx.journal.run(key, perform, type=str, effect=Effect.UNSAFE)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a workflow does and where it ends: each turn of the worker and the checker."""

    calls: int
    """Model calls of a turn, with an effect before each."""
    limits: OwnLimits
    fails: int = -1
    """The step in which the worker fails."""
    waits: int = -1
    """The step in which the role waits for ever."""
    child: "Plan | None" = None
    """What the checker starts."""

    @property
    def limit(self) -> str:
        """The name of its one limit."""
        (limit,) = self.limits
        return limit

    @property
    def most_tokens(self) -> float:
        """What its calls may take before the limit; a token costs a millionth."""
        cost = self.limits.get("max_cost", math.inf)
        return self.limits.get("max_tokens", cost / MICRO + 0.001)


def planned(plan: Plan, note: Note) -> Workflow[str, object]:
    """A failure leads to the checker, and a limit to the boss; without a limit it has no end."""

    async def turn(ctx: ThreadContext) -> str:
        for number in range(plan.calls):
            await act(ctx, f"act/{number}", note)
            await call(ctx, f"llm/{number}", note)
        if len(ctx.steps) == plan.waits:
            await anyio.sleep_forever()
        if len(ctx.steps) == plan.fails:
            raise RoleFailed("no")
        return "done"

    async def check(ctx: ThreadContext) -> str:
        if plan.child is not None:
            task = ChildTask(workflow=planned(plan.child, note), input="c", name="child")
            await run_child(ctx, task)
        return await turn(ctx)

    async def decide(ctx: ThreadContext) -> str:
        await act(ctx, "decide", note)
        return await call(ctx, "llm/0", note)

    definition = WorkflowDefinition(
        table={START: WORKER, WORKER: CHECKER, CHECKER: [when(never, END), WORKER], BOSS: END},
        on_failure={WORKER: CHECKER},
        at_limit=BOSS,
        limits=plan.limits,
    )
    overrides: dict[RoleDefinition[str], Any] = {
        WORKER: adapter_of(turn),
        CHECKER: adapter_of(check),
        BOSS: adapter_of(decide),
    }
    return create_workflow(definition, AdapterBinding(adapter_of(turn), overrides=overrides))


async def go_on(store: Store, flow: Workflow[str, object]) -> ThreadId:
    """Start the thread, or take it up where it is."""
    engine, known = Engine(store, limits=ENGINE), await top_of(store)
    if known is None:
        return (await engine.start(flow, "p")).thread_id
    if (await read_thread(store, known)).status.state != "completed":
        await engine.resume(flow, known)
    return known


async def top_of(store: Store) -> ThreadId | None:
    """The thread that is nobody's child."""
    threads = [await read_thread(store, each) for each in await list_threads(store)]
    return next((each.thread_id for each in threads if each.parent is None), None)


def way(stored: StoredThread) -> list[str]:
    return [step.record.role for step in stored.steps]


async def check_end(
    store: Store, plan: Plan, thread_id: ThreadId, notes: Sequence[str]
) -> list[str]:
    """Make sure that the thread is as it should be, and give the roles that it went through."""
    acts = Counter(line for line in notes if "llm/" not in line)
    assert max(acts.values(), default=1) == 1, acts
    assert await check_summaries(store) == []
    await _check_thread(store, plan, thread_id, [json.loads(line) for line in notes])
    if plan.waits < 0:  # it would wait in a replay, too
        replay = await Engine(store).replay(planned(plan, lambda _: None), thread_id)
        assert replay.completion is not None
    return way(await read_thread(store, thread_id))


async def _check_thread(
    store: Store, plan: Plan, thread_id: ThreadId, notes: Sequence[tuple[str, int, str]]
) -> None:
    """Make sure that a thread came to its limit once and no call was made beyond it."""
    tree = await read_tree(store, thread_id)
    stored = tree.thread
    assert stored.status.state == "completed"
    assert way(stored)[-1] == "boss"
    limited = [step.record.limit for step in stored.steps]
    assert limited == [*("" for _ in limited[2:]), plan.limit, ""], "one limit was reached"
    below = {each.thread.thread_id for each in tree.walk()}
    last = (thread_id, len(limited) - 1)
    calls = [1 for of, step, key in notes if of in below and (of, step) != last and "llm/" in key]
    assert 10 * len(calls) <= plan.most_tokens
    for each in tree.children:
        if each.thread.status.state == "completed":
            assert plan.child is not None
            await _check_thread(store, plan.child, each.thread.thread_id, notes)


class Dying(MemoryStore):
    """Takes only so many commits, as if the process had died then."""

    left: int | None = None

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise StoreFull("the process is dead")
        await super().commit(objects, moves, entries)


async def run_with_deaths(plan: Plan, deaths: Sequence[int]) -> list[str]:
    """Run it to its end, and give the roles that it went through."""
    store, notes = Dying(), list[str]()
    flow = planned(plan, notes.append)
    for each in deaths:
        store.left = each
        with suppress(StoreError):
            await go_on(store, flow)
    store.left = None
    return await check_end(store, plan, await go_on(store, flow), notes)


def limits_of() -> st.SearchStrategy[OwnLimits]:
    one = st.one_of(
        st.tuples(st.just("max_steps"), st.integers(1, 4)),
        st.tuples(st.just("max_rounds"), st.integers(1, 2)),
        st.tuples(st.just("max_tokens"), st.integers(1, 150)),
        st.tuples(st.just("max_cost"), st.integers(1, 150).map(lambda tokens: tokens * MICRO)),
    )
    return one.map(lambda pair: cast("OwnLimits", dict([pair])))


def plans(child: st.SearchStrategy[Plan | None]) -> st.SearchStrategy[Plan]:
    made = st.builds(
        Plan,
        calls=st.integers(1, 3),
        limits=limits_of(),
        fails=st.sampled_from([-1, 0, 2]),
        child=child,
    )
    return made.filter(
        lambda plan: plan.limit != "max_rounds" or plan.calls > plan.limits.get("max_rounds", 0)
    )


@settings(max_examples=35, deadline=None)
@given(
    plan=plans(st.none() | plans(st.none())),
    deaths=st.lists(st.integers(0, 25), min_size=1, max_size=4),
)
async def test_deaths_in_a_small_workflow_change_neither_its_end_nor_what_was_done(
    plan: Plan, deaths: list[int]
) -> None:
    roles = await run_with_deaths(plan, deaths)
    if plan.limit in {"max_steps", "max_rounds"}:
        assert roles == await run_with_deaths(plan, [])


async def test_a_limit_that_can_not_be_recorded_ends_the_run_with_the_error_of_the_store() -> None:
    plan = Plan(calls=1, limits={"max_steps": 1})
    for left in range(8):
        store = Dying()
        store.left = left
        with pytest.raises(StoreFull, match="the process is dead"):
            await go_on(store, planned(plan, lambda _: None))


class Deadly:
    """Kills this process at one of its commits, before or after it."""

    def __init__(self, inner: Store, at: int, *, after: bool) -> None:
        self._inner, self._left, self._after = inner, at, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        self._left -= 1
        if self._left == 0 and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        await self._inner.commit(objects, moves, entries)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


CHILD = Plan(calls=1, limits={"max_tokens": 65})
KILLED = {
    "steps": Plan(calls=2, limits={"max_steps": 6}, fails=2),
    "rounds": Plan(calls=2, limits={"max_rounds": 1}),
    "tokens": Plan(calls=1, limits={"max_tokens": 75}, fails=0),
    "cost": Plan(calls=1, limits={"max_cost": 75 * MICRO}),
    "seconds": Plan(calls=1, limits={"max_seconds": 0.2}, waits=1),
    "a child's tokens": Plan(calls=1, limits={"max_steps": 2}, child=CHILD),
    "tokens with a child": Plan(calls=1, limits={"max_tokens": 95}, child=CHILD),
}


async def go(folder: Path, plan: Plan, at: int = 0, *, after: bool = False) -> list[str]:
    done = folder / "done"

    def note(line: str) -> None:
        with done.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    async with open_store(folder / "store", durability="normal") as store:
        deadly = cast("Store", Deadly(store, at, after=after)) if at else store
        thread_id = await go_on(deadly, planned(plan, note))
        return await check_end(store, plan, thread_id, done.read_text("utf-8").splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("name", KILLED)
@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGKILL")
def test_a_kill_at_any_commit_changes_neither_the_way_nor_what_was_done(
    tmp_path: Path, name: str
) -> None:
    plan = KILLED[name]
    (tmp_path / "whole").mkdir()
    whole = anyio.run(go, tmp_path / "whole", plan)
    for at in range(1, 200):
        folder = tmp_path / f"{at}"
        folder.mkdir()
        pid = os.fork()
        if pid == 0:
            # Before one commit and after the next one: each state of the store comes up.
            anyio.run(lambda: go(folder, plan, at, after=at % 2 == 0))  # noqa: B023 - run at once
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        roles = anyio.run(go, folder, plan)
        # A call that nobody saw the end of counts as its worst case.
        assert roles[:-1] == whole[: len(roles) - 1], at
        if plan.limit not in {"max_tokens", "max_cost"}:
            assert roles == whole, at
        if os.WIFEXITED(status):
            assert os.waitstatus_to_exitcode(status) == 0
            assert at > 8
            return
    raise AssertionError("the run has no end")
