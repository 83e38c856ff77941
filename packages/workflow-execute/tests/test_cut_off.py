"""What was at work when a run was cut off: calls count as their worst case, and time counts."""

import asyncio  # noqa: TID251 - its own cancellation gets through every shield of anyio
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from workflow_cas import Entry, MemoryStore, RefMove, SqliteStore, Stored, StoreFull, open_store
from workflow_execute import (
    ChildTask,
    Engine,
    Limits,
    Workflow,
    find_thread,
    read_thread,
    read_tree,
    run_child,
)
from workflow_execute.testing import in_turn
from workflow_protocol import Effect, Metered, ThreadContext, Usage

METERED = Metered[int](
    model="m",
    at_most=lambda: Usage(output_tokens=100),
    used=lambda value: Usage(input_tokens=8, output_tokens=2, calls=1),
)
UNLIMITED = Limits(max_tokens=100_000)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


class Asking:
    """Three model calls and a read before each; something happens in the second call, once."""

    def __init__(self, event: str = "") -> None:
        self.event = event
        self.begun = anyio.Event()

    @property
    def workflow(self) -> Workflow:
        async def turn(ctx: ThreadContext) -> int:
            async def read() -> int:
                return 0

            async def write() -> int:
                if self.event == "die in a tool":
                    os.kill(os.getpid(), signal.SIGKILL)
                return 0

            for number in range(3):

                async def perform(number: int = number) -> int:
                    await anyio.lowlevel.checkpoint()
                    if number == 1:
                        await self._happens()
                    return number

                await ctx.journal.run(f"read/{number}", read, type=int)
                await ctx.journal.run(f"llm/{number}", perform, type=int, metered=METERED)
                if number == 1:
                    await ctx.journal.run("write", write, type=int, effect=Effect.REPEATABLE)
            return 3

        return in_turn(turn)

    async def _happens(self) -> None:
        self.begun.set()
        match self.event:
            case "wait":
                self.event = ""
                await anyio.sleep_forever()
            case "fail":
                self.event = ""
                raise ConnectionError
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case _:
                await anyio.sleep(0.1)


async def stopped(engine: Engine, asking: Asking, how: str) -> None:
    """Start a thread and stop it in its second call."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.start, asking.workflow, "p")
        await asking.begun.wait()
        thread_id = await find_thread(engine.store, "latest")
        await (engine.pause(thread_id) if how == "pause" else engine.cancel(thread_id))


def died(path: Path, event: str) -> None:
    """Run the same in a process that kills itself."""
    script = f"""
import anyio
from pathlib import Path
from test_cut_off import Asking, UNLIMITED
from workflow_cas import open_store
from workflow_execute import Engine

async def main():
    async with open_store(Path({str(path)!r})) as store:
        await Engine(store, limits=UNLIMITED).start(Asking({event!r}).workflow, "p")

anyio.run(main)
"""
    here = str(Path(__file__).parent)
    ended = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": here}, check=False)
    assert ended.returncode == -signal.SIGKILL


async def charged(store: SqliteStore) -> int:
    """What the thread counts against its limits."""
    return (await read_tree(store, await find_thread(store, "latest"))).spent.tokens


@pytest.mark.parametrize("how", ["pause", "cancel"])
async def test_a_call_that_is_cut_off_counts_as_its_worst_case_once(
    store: SqliteStore, how: str
) -> None:
    engine, asking = Engine(store, limits=UNLIMITED), Asking("wait")
    await stopped(engine, asking, how)
    assert await charged(store) == 10 + 100

    done = await engine.resume(asking.workflow, await find_thread(store, "latest"))
    assert done.state == "completed"
    assert await charged(store) == 10 + 100 + 10 + 10
    step = (await read_thread(store, done.thread_id)).steps[0]
    assert step.record.charged_tokens == 130
    assert (await engine.replay(asking.workflow, done.thread_id)).steps == 1


class FullForTurns(MemoryStore):
    """Takes no more records of turns."""

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        if any(move.name.endswith("/turn") for move in moves):
            raise StoreFull("the disk is full")
        await super().commit(objects, moves, entries)


async def test_a_pause_stays_a_pause_where_the_call_that_it_cuts_off_can_not_be_recorded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, begun = FullForTurns(), anyio.Event()

    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            begun.set()
            await anyio.sleep_forever()
            return 1

        return await ctx.journal.run("llm/0", perform, type=int, metered=METERED)

    engine = Engine(store, limits=UNLIMITED)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.start, in_turn(turn), "p")
        await begun.wait()
        await engine.pause(await find_thread(store, "latest"))
    thread = await read_thread(store, await find_thread(store, "latest"))
    assert (thread.status.state, thread.status.cause) == ("suspended", "paused")
    assert "the charge of the lost call 'llm/0' was not recorded" in caplog.text


async def test_what_was_lost_holds_for_the_limit(store: SqliteStore) -> None:
    limits = Limits(max_tokens=205)
    asking = Asking("wait")
    await stopped(Engine(store, limits=limits), asking, "pause")
    again = await Engine(store, limits=limits).resume(
        asking.workflow, await find_thread(store, "latest")
    )
    assert (again.state, again.cause) == ("suspended", "limit")
    assert "110 are spent" in again.summary


async def test_a_call_that_failed_has_cost_nothing(store: SqliteStore) -> None:
    asking = Asking("fail")
    failed = await Engine(store, limits=UNLIMITED).start(asking.workflow, "p")
    assert (failed.state, await charged(store)) == ("failed", 10)
    await Engine(store, limits=UNLIMITED).resume(asking.workflow, failed.thread_id)
    assert await charged(store) == 30


@pytest.mark.parametrize(("event", "lost"), [("die", 100), ("die in a tool", 0)])
async def test_a_call_that_the_death_of_the_process_cut_off_counts_too(
    tmp_path: Path, event: str, lost: int
) -> None:
    path = tmp_path / "store.sqlite3"
    await anyio.to_thread.run_sync(died, path, event)
    async with open_store(path) as store:
        engine = Engine(store, limits=UNLIMITED)
        thread_id = await find_thread(store, "latest")
        done = await engine.resume(Asking().workflow, thread_id)
        assert (done.state, await charged(store)) == ("completed", 30 + lost)


async def test_it_counts_also_where_the_dead_thread_was_cancelled_before_it_went_on(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.sqlite3"
    await anyio.to_thread.run_sync(died, path, "die")
    async with open_store(path) as store:
        engine = Engine(store, limits=UNLIMITED)
        thread_id = await find_thread(store, "latest")
        await engine.cancel(thread_id)
        await engine.resume(Asking().workflow, thread_id)
        assert await charged(store) == 130


async def test_it_counts_also_where_the_thread_did_not_come_as_far_at_first(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.sqlite3"
    await anyio.to_thread.run_sync(died, path, "die")

    async def no_key(ctx: ThreadContext) -> int:
        raise LookupError("the key is not set")

    async with open_store(path) as store:
        engine = Engine(store, limits=UNLIMITED)
        thread_id = await find_thread(store, "latest")
        for _ in range(2):
            assert (await engine.resume(in_turn(no_key), thread_id)).state == "failed"
        await engine.resume(Asking().workflow, thread_id)
        assert await charged(store) == 130


async def test_the_time_of_a_turn_that_was_stopped_counts(store: SqliteStore) -> None:
    asking = Asking("wait")
    engine = Engine(store, limits=UNLIMITED)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.start, asking.workflow, "p")
        await asking.begun.wait()
        await anyio.sleep(0.3)
        await engine.pause(await find_thread(store, "latest"))
    thread_id = await find_thread(store, "latest")
    assert (await read_thread(store, thread_id)).status.turn_ms >= 300

    asking.event = "wait"
    limited = Engine(store, limits=Limits(max_seconds=0.2))
    late = await limited.resume(asking.workflow, thread_id)
    assert (late.state, late.cause) == ("suspended", "limit")
    asking.event = ""
    await engine.resume(asking.workflow, thread_id)
    assert (await read_thread(store, thread_id)).steps[0].record.elapsed_ms >= 300


async def test_the_time_of_a_turn_in_a_process_that_died_counts_until_its_last_record(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.sqlite3"
    await anyio.to_thread.run_sync(died, path, "die in a tool")  # 0.1 s after its first record
    async with open_store(path) as store:
        thread_id = await find_thread(store, "latest")
        engine = Engine(store, limits=UNLIMITED)
        await engine.pause(thread_id)
        turn_ms = (await read_thread(store, thread_id)).status.turn_ms
        await engine.resume(Asking().workflow, thread_id)
        assert (await read_thread(store, thread_id)).steps[0].record.elapsed_ms >= turn_ms > 0


class Tool:
    """Work in a thread, which nothing can stop, until it is let go."""

    def __init__(self) -> None:
        self.begun, self.go, self.ended = threading.Event(), threading.Event(), False

    def work(self) -> None:
        self.begun.set()
        self.go.wait(10)
        self.ended = True

    async def turn(self, ctx: ThreadContext) -> int:
        await to_thread.run_sync(self.work)
        return 1


async def test_asyncio_s_own_cancellation_waits_for_what_can_not_be_stopped(
    store: SqliteStore, tmp_path: Path
) -> None:
    tool, engine = Tool(), Engine(store, locks=tmp_path / "locks")
    running = asyncio.ensure_future(engine.start(in_turn(tool.turn), "p"))
    await to_thread.run_sync(tool.begun.wait)
    for _ in range(3):
        running.cancel()
        await anyio.sleep(0.05)
    assert await engine.is_running(await find_thread(store, "latest"))

    tool.go.set()
    with pytest.raises(asyncio.CancelledError):
        await running
    stored = await read_thread(store, await find_thread(store, "latest"))
    assert (tool.ended, stored.status.state) == (True, "cancelled")


async def test_a_role_s_own_timeout_waits_for_the_tool_of_its_child(store: SqliteStore) -> None:
    tool = Tool()

    async def above(ctx: ThreadContext) -> int:
        task = ChildTask(workflow=in_turn(tool.turn), input="p", name="child")
        asyncio.get_running_loop().call_later(0.2, tool.go.set)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await run_child(ctx, task)
        return int(tool.ended)

    assert (await Engine(store).start(in_turn(above), "p")).value == 1


async def test_a_thread_that_is_cancelled_while_it_begins_is_cancelled(store: SqliteStore) -> None:
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    running = asyncio.ensure_future(Engine(store).start(in_turn(Tool().turn), "p"))
    await anyio.sleep(0.2)  # its first commit waits for the lock by now
    running.cancel()
    await anyio.sleep(0.05)
    other.close()
    with pytest.raises(asyncio.CancelledError):
        await running
    stored = await read_thread(store, await find_thread(store, "latest"))
    assert stored.status.state == "cancelled"
