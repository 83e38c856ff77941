"""Stopping trees of threads, and who may run a part of one."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import anyio
import pytest

from workflow_cas import MemoryStore, SqliteStore, open_store
from workflow_execute import (
    ChildFailed,
    ChildTask,
    Engine,
    Limits,
    ThreadBusy,
    ThreadResult,
    Workflow,
    list_threads,
    read_thread,
    read_tree,
    run_child,
    run_children,
    workflow_adapter,
)
from workflow_execute.testing import Turn, in_turn
from workflow_protocol import (
    Answer,
    Event,
    Question,
    ThreadContext,
    ThreadEnded,
    ThreadId,
)


async def one(ctx: ThreadContext) -> int:
    return 1


def below(name: str, child: Workflow) -> Turn:
    """A role that is a child thread."""
    return workflow_adapter(name, child)("", int)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


class Stuck:
    """A child in the middle of an effect that takes for ever, the first time."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.times = 0
        self.result: ThreadResult | None = None

        async def turn(ctx: ThreadContext) -> int:
            async def perform() -> int:
                self.times += 1
                self.started.set()
                if self.times == 1:
                    await anyio.sleep_forever()
                return self.times

            return await ctx.journal.run("llm/0", perform, type=int)

        self.child = in_turn(turn)
        self.workflow = in_turn(one, below("middle", in_turn(below("stuck", self.child))))

    async def run(self, engine: Engine) -> None:
        self.result = await engine.start(self.workflow, "p")


@pytest.mark.parametrize("where", ["same engine", "another store"])
@pytest.mark.parametrize("whom", ["the top", "the middle", "the bottom"])
@pytest.mark.parametrize(("what", "state"), [("pause", "suspended"), ("cancel", "cancelled")])
async def test_stopping_any_thread_of_a_tree_stops_it_all_within_a_second(
    store: SqliteStore, tmp_path: Path, where: str, whom: str, what: str, state: str
) -> None:
    engine, stuck = Engine(store, locks=tmp_path / "locks"), Stuck()
    threads: list[ThreadId] = []
    async with open_store(tmp_path / "store.sqlite3") as other:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stuck.run, engine)
                await stuck.started.wait()
                threads = await list_threads(store)
                target = threads[["the top", "the middle", "the bottom"].index(whom)]
                elsewhere = Engine(other, locks=tmp_path / "locks")
                by = elsewhere if where == "another store" else engine
                began = anyio.current_time()
                await (by.pause if what == "pause" else by.cancel)(target)
                assert anyio.current_time() - began < 1.0
        assert stuck.result is not None
        assert stuck.result.state == state
        stored = [await read_thread(other, each) for each in threads]
        assert [each.status.state for each in stored] == [state] * 3
        if what == "pause":
            assert [each.status.cause for each in stored] == ["paused"] * 3
        assert await other.refs("signal/") == {}
        for each in threads:
            assert not await engine.is_running(each)

    done = await engine.resume(stuck.workflow, threads[0])
    assert (done.state, done.value) == ("completed", 2)
    assert await list_threads(store) == threads


async def test_a_cancelled_child_cancels_the_thread_above_with_its_name(
    store: SqliteStore, tmp_path: Path
) -> None:
    engine, stuck = Engine(store, locks=tmp_path / "locks"), Stuck()
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stuck.run, engine)
            await stuck.started.wait()
            await engine.cancel((await list_threads(store))[-1])
    assert stuck.result is not None
    top, middle, _ = await list_threads(store)
    assert stuck.result.summary == f"child thread {middle} (middle) was cancelled"
    assert (stuck.result.return_code, stuck.result.thread_id) == (130, top)


async def test_cancelling_a_thread_that_nobody_runs_cancels_its_children(
    store: SqliteStore, tmp_path: Path
) -> None:
    async def ask(ctx: ThreadContext) -> int:
        return int((await ctx.journal.ask("go", Question(text="May I?"))).approved)

    parent = in_turn(below("child", in_turn(below("deep", in_turn(ask)))))
    engine = Engine(store, locks=tmp_path / "locks")
    waiting = await engine.start(parent, "p")
    await engine.cancel(waiting.thread_id)

    tree = await read_tree(store, waiting.thread_id)
    assert [each.thread.status.state for each in tree.walk()] == ["cancelled"] * 3
    await engine.answer(waiting.waits_for[0], None, Answer(approved=True))
    assert (await engine.resume(parent, waiting.thread_id)).value == 1


class Asking:
    """Two children of one turn: one waits for an answer, then the other is stuck."""

    def __init__(self) -> None:
        self.stuck, self.waits = Stuck(), anyio.Event()

        async def ask(ctx: ThreadContext) -> int:
            return int((await ctx.journal.ask("go", Question(text="May I?"))).approved)

        async def turn(ctx: ThreadContext) -> int:
            tasks = [
                ChildTask(workflow=self.asks, input="p", name="ask"),
                ChildTask(workflow=self.stuck.child, input="p", name="stuck"),
            ]
            return len(await run_children(ctx, tasks))

        self.asks, self.workflow = in_turn(ask), in_turn(turn)

    def observe(self, event: Event) -> None:
        if isinstance(event, ThreadEnded) and event.state == "suspended":
            self.waits.set()

    async def both(self) -> None:
        await self.stuck.started.wait()
        await self.waits.wait()


async def test_a_running_thread_that_is_cancelled_takes_its_waiting_children_along(
    store: SqliteStore, tmp_path: Path
) -> None:
    asking = Asking()
    engine = Engine(store, locks=tmp_path / "locks", observer=asking.observe)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(engine.start, asking.workflow, "p")
            await asking.both()
            await engine.cancel((await list_threads(store))[0])
    states = [(await read_thread(store, each)).status.state for each in await list_threads(store)]
    assert states == ["cancelled"] * 3


async def test_a_limit_of_time_stops_the_child_with_the_thread_above(store: SqliteStore) -> None:
    stuck = Stuck()
    parent = in_turn(below("stuck", stuck.child))
    stopped = await Engine(store, limits=Limits(max_seconds=0.4)).start(parent, "p")

    assert (stopped.state, stopped.cause) == ("suspended", "limit")
    tree = await read_tree(store, stopped.thread_id)
    assert [(each.thread.status.state, each.thread.status.cause) for each in tree.walk()] == [
        ("suspended", "limit")
    ] * 2
    assert "0.4 seconds" in stopped.summary
    assert (await Engine(store).resume(parent, stopped.thread_id)).value == 2


async def test_ctrl_c_is_recorded_in_the_whole_tree_and_raised_on(store: SqliteStore) -> None:
    stuck = Stuck()
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Engine(store).start, stuck.workflow, "p")
            await stuck.started.wait()
            tasks.cancel_scope.cancel()
    states = [(await read_thread(store, t)).status.state for t in await list_threads(store)]
    assert states == ["cancelled"] * 3


async def test_while_a_thread_runs_nobody_else_runs_its_children(
    store: SqliteStore, tmp_path: Path
) -> None:
    """Whether the child is at work at the moment, or one of its siblings is."""
    asking, children = Asking(), list[ThreadId]()
    engine = Engine(store, locks=tmp_path / "locks", observer=asking.observe)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(engine.start, asking.workflow, "p")
            await asking.both()
            top, *children = await list_threads(store)
            async with open_store(tmp_path / "store.sqlite3") as other:
                elsewhere = Engine(other, locks=tmp_path / "locks")
                for child_id in children:
                    with pytest.raises(ThreadBusy, match=top):
                        await elsewhere.resume(asking.asks, child_id)
            await engine.pause(top)
    states = {each: (await read_thread(store, each)).status for each in children}
    (paused,) = (each for each, status in states.items() if status.cause == "paused")
    assert (await engine.resume(asking.stuck.child, paused)).state == "completed"


@pytest.mark.parametrize("what", ["pause", "cancel"])
async def test_stopping_the_top_stops_a_child_that_is_finished_alone(
    store: SqliteStore, tmp_path: Path, what: str
) -> None:
    stuck, engine = Stuck(), Engine(store, locks=tmp_path / "locks")

    async def boom(ctx: ThreadContext) -> int:
        raise RuntimeError

    parent = in_turn(below("stuck", in_turn(boom)))
    failed = await engine.start(parent, "p")
    (tree,) = (await read_tree(store, failed.thread_id)).children
    child_id = tree.thread.thread_id
    results: list[ThreadResult] = []

    async def alone() -> None:
        results.append(await engine.resume(stuck.child, child_id))

    async with open_store(tmp_path / "store.sqlite3") as other:
        elsewhere = Engine(other, locks=tmp_path / "locks")
        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(alone)
                await stuck.started.wait()
                with pytest.raises(ThreadBusy):
                    await elsewhere.resume(parent, failed.thread_id)
                stop = elsewhere.pause if what == "pause" else elsewhere.cancel
                await stop(failed.thread_id)
    assert [each.state for each in results] == ["suspended" if what == "pause" else "cancelled"]
    top = await read_thread(store, failed.thread_id)
    assert top.status.state == results[0].state
    assert await store.refs("signal/") == {}


async def test_cancelling_a_fork_leaves_the_children_of_the_shared_steps_alone(
    store: SqliteStore,
) -> None:
    async def fails(ctx: ThreadContext) -> int:
        raise ValueError

    async def copes(ctx: ThreadContext) -> int:
        try:
            return cast("int", (await run_child(ctx, task)).value)
        except ChildFailed:
            return 0

    task = ChildTask(workflow=in_turn(fails), input="p", name="fails")
    engine = Engine(store)
    done = await engine.start(in_turn(copes), "p")
    fork = await engine.fork(done.thread_id)
    await engine.cancel(fork)
    [child] = done.steps[0].child_threads
    assert (await read_thread(store, fork)).status.state == "cancelled"
    assert (await read_thread(store, child)).status.state == "failed"


@pytest.mark.parametrize("cancelled", [False, True])
async def test_two_children_of_one_thread_can_go_on_alone_at_the_same_time(cancelled: bool) -> None:
    working = anyio.Semaphore(0)
    go_on = anyio.Event()

    async def asks(ctx: ThreadContext) -> int:
        await ctx.journal.ask("q", Question(text="?"))
        working.release()
        await go_on.wait()
        return 1

    async def asks_two(ctx: ThreadContext) -> int:
        tasks = [ChildTask(workflow=child, input=str(n), name="asks") for n in range(2)]
        return len(await run_children(ctx, tasks))

    child = in_turn(asks)
    engine = Engine(MemoryStore())  # in one process, so that no lock keeps them apart
    waiting = await engine.start(in_turn(asks_two), "p")
    for each in waiting.waits_for:
        await engine.answer(each, "q", Answer(approved=True))
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for each in waiting.waits_for:
                tasks.start_soon(engine.resume, child, each)
            await working.acquire()
            await working.acquire()
            if cancelled:
                await engine.cancel(waiting.thread_id)
            go_on.set()
    states = [(await read_thread(engine.store, each)).status.state for each in waiting.waits_for]
    assert states == ["cancelled" if cancelled else "completed"] * 2
    assert (await engine.resume(in_turn(asks_two), waiting.thread_id)).value == 2
