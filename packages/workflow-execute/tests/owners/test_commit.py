"""Commits beside asyncio's own cancellation, which gets through every shield of anyio."""

import asyncio  # noqa: TID251 - its own cancellation is what is tested
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from workflow_cas import SqliteStore, content, open_store
from workflow_execute import Engine, find_thread, read_thread, read_turn
from workflow_execute.testing import in_turn
from workflow_protocol import Effect, ThreadContext


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a read count as quick on a machine that is busy with something else too."""
    monkeypatch.setattr("workflow_execute.journal._journal.QUICK_READ_S", 60.0)


def stall(store: SqliteStore) -> None:
    """Make the next commit take 0.2 s."""
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    asyncio.get_running_loop().call_later(0.2, other.close)


async def one() -> int:
    return 1


async def two() -> int:
    return 2


@pytest.mark.parametrize("slow", [False, True])
async def test_an_interrupt_at_the_commit_of_a_step_leaves_its_reads_to_that_step(
    store: SqliteStore, slow: bool
) -> None:
    times: list[str] = []

    async def first(ctx: ThreadContext) -> int:
        times.append("first")
        if slow:
            await ctx.journal.run("tool/0", one, type=int, effect=Effect.REPEATABLE)
        value = await ctx.journal.run("tool/1", one, type=int)
        if len(times) == 1:  # and not when it is replayed
            stall(store)
            asyncio.get_running_loop().call_later(0.1, running.cancel)
        return value

    async def second(ctx: ThreadContext) -> int:
        return await ctx.journal.run("tool/1", two, type=int)

    engine, workflow = Engine(store), in_turn(first, second)
    running = asyncio.ensure_future(engine.start(workflow, "p"))
    with pytest.raises(asyncio.CancelledError):
        await running
    stored = await read_thread(store, await find_thread(store, "latest"))
    assert (stored.status.state, len(stored.steps), stored.turn) == ("cancelled", 1, None)
    done = await engine.resume(workflow, stored.thread_id)
    assert ([step.meta for step in done.steps], times) == ([1, 2], ["first"])
    assert (await engine.replay(workflow, done.thread_id)).effects == 2 + slow


@pytest.mark.parametrize("behind_another", [False, True])
async def test_an_effect_is_recorded_though_its_time_is_up_while_it_is_written(
    store: SqliteStore, behind_another: bool
) -> None:
    async with anyio.create_task_group() as tasks:

        async def perform() -> int:
            stall(store)
            if behind_another:
                tasks.start_soon(store.commit, [content("another")])
                for _ in range(3):
                    await anyio.lowlevel.checkpoint()
            return 1

        async def turn(ctx: ThreadContext) -> int:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(
                    ctx.journal.run("tool/0", perform, type=int, effect=Effect.UNSAFE), 0.1
                )
            return await ctx.journal.run("tool/1", two, type=int)

        engine = Engine(store)
        done = await engine.start(in_turn(turn), "p")
        assert (done.state, done.value) == ("completed", 2)
    stored = await read_thread(store, await find_thread(store, "latest"))
    records = [entry.record for entry in await read_turn(store, stored.steps[0].turn)]
    assert [(each.kind, each.key) for each in records] == [
        ("result", "tool/0"),
        ("result", "tool/1"),
    ]
