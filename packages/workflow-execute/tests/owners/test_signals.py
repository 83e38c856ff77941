"""Pausing and cancelling, from the same engine, another one and without an owner."""

import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import anyio
import pytest
from filelock import FileLock

from workflow_cas import Entry, MemoryStore, RefMove, SqliteStore, Stored, node, open_store
from workflow_execute import (
    Engine,
    StoredThread,
    ThreadNotFound,
    ThreadNotResumable,
    ThreadResult,
    Workflow,
    list_threads,
    read_thread,
)
from workflow_execute.testing import in_turn
from workflow_protocol import Hash, ThreadContext, ThreadId


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


class Stuck:
    """A thread in the middle of an effect that takes for ever, the first time."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.cleaned = False
        self.times = 0
        self.result: ThreadResult | None = None

    @property
    def workflow(self) -> Workflow:
        async def turn(ctx: ThreadContext) -> int:
            async def perform() -> int:
                self.times += 1
                self.started.set()
                if self.times == 1:
                    try:
                        await anyio.sleep_forever()
                    finally:
                        self.cleaned = True
                return self.times

            return await ctx.journal.run("llm/0", perform, type=int)

        return in_turn(turn)

    async def run(self, engine: Engine) -> None:
        self.result = await engine.start(self.workflow, "p")


@pytest.mark.parametrize("where", ["same engine", "no locks", "another store"])
@pytest.mark.parametrize(("what", "state"), [("pause", "suspended"), ("cancel", "cancelled")])
async def test_a_running_thread_is_stopped_within_a_second_and_can_go_on(
    store: SqliteStore, tmp_path: Path, where: str, what: str, state: str
) -> None:
    locks = None if where == "no locks" else tmp_path / "locks"
    engine, stuck = Engine(store, locks=locks), Stuck()
    thread_id, took_s = ThreadId(""), 9.9
    async with open_store(tmp_path / "store.sqlite3") as other:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stuck.run, engine)
                await stuck.started.wait()
                (thread_id,) = await list_threads(store)
                elsewhere = Engine(other, locks=locks) if where == "another store" else engine
                began = time.monotonic()
                await (elsewhere.pause if what == "pause" else elsewhere.cancel)(thread_id)
                took_s = time.monotonic() - began
        assert stuck.result is not None
        assert (stuck.result.state, stuck.cleaned) == (state, True)
        assert took_s < 1.0
        status = (await read_thread(other, thread_id)).status
        assert (status.state, status.place) == (state, "role-0")
        assert await other.refs("signal/") == {}

    done = await engine.resume(stuck.workflow, thread_id)
    assert (done.state, done.value) == ("completed", 2)


async def test_a_thread_without_an_owner_is_stopped_too(store: SqliteStore, tmp_path: Path) -> None:
    async def fail(ctx: ThreadContext) -> int:
        raise RuntimeError

    engine = Engine(store, locks=tmp_path / "locks")
    failed = await engine.start(in_turn(fail), "p")
    await engine.pause(failed.thread_id)
    paused = (await read_thread(store, failed.thread_id)).status
    assert (paused.state, paused.cause) == ("suspended", "paused")
    await engine.cancel(failed.thread_id)
    cancelled = (await read_thread(store, failed.thread_id)).status
    assert (cancelled.state, cancelled.return_code) == ("cancelled", 130)


async def test_what_can_not_be_stopped_says_why(store: SqliteStore) -> None:
    async def one(ctx: ThreadContext) -> int:
        return 1

    done = await Engine(store).start(in_turn(one), "p")
    with pytest.raises(ThreadNotResumable, match="is completed"):
        await Engine(store).cancel(done.thread_id)
    with pytest.raises(ThreadNotFound):
        await Engine(store).pause(ThreadId("X"))


async def test_when_the_thread_that_watches_for_all_ends_another_takes_over(
    store: SqliteStore, tmp_path: Path
) -> None:
    engine = Engine(store, locks=tmp_path / "locks")
    several = [Stuck() for _ in range(4)]
    async with open_store(tmp_path / "store.sqlite3") as other:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                for stuck in several:
                    tasks.start_soon(stuck.run, engine)
                for stuck in several:
                    await stuck.started.wait()
                for thread_id in await list_threads(store):
                    await Engine(other, locks=tmp_path / "locks").cancel(thread_id)
    assert [stuck.result and stuck.result.state for stuck in several] == ["cancelled"] * 4


class Insistent(MemoryStore):
    """A store to which a signal is sent again at the moment when it is taken away."""

    sent_again = 0

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        for move in moves:
            if move.name.startswith("signal/") and move.new is None and self.sent_again < 3:
                self.sent_again += 1
                again = node("signal", {"signal": "cancel", "at_ms": self.sent_again})
                await super().commit([again], [RefMove(move.name, move.old, again.hash)])
        await super().commit(objects, moves, entries)


async def test_a_signal_that_is_sent_again_while_it_is_followed_hurts_nothing(
    tmp_path: Path,
) -> None:
    store, stuck = Insistent(), Stuck()
    engine = Engine(store, locks=tmp_path / "locks")
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stuck.run, engine)
            await stuck.started.wait()
            (thread_id,) = await list_threads(store)
            await Engine(store, locks=tmp_path / "locks").cancel(thread_id)
    assert (stuck.result and stuck.result.state, store.sent_again) == ("cancelled", 3)
    assert await store.refs("signal/") == {}


class Ending(MemoryStore):
    """A store in which a thread's owner ends it as wanted just before the signal is there."""

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        for move in moves:
            if move.name.startswith("signal/") and move.new is not None:
                name = f"thread/{move.name.removeprefix('signal/')}/status"
                own = node("status", {"state": "suspended", "cause": "paused", "at_ms": 1})
                await super().commit([own], [RefMove(name, await self.ref(name), own.hash)])
        await super().commit(objects, moves, entries)


async def test_a_signal_to_a_thread_that_has_just_ended_is_not_left_over(tmp_path: Path) -> None:
    async def fail(ctx: ThreadContext) -> int:
        raise RuntimeError

    store = Ending()
    engine = Engine(store, locks=tmp_path / "locks")
    thread_id = (await engine.start(in_turn(fail), "p")).thread_id
    with FileLock(tmp_path / "locks" / f"{thread_id}.lock"):  # the owner has not let go of it yet
        await Engine(store, locks=tmp_path / "locks").pause(thread_id)
    assert (await read_thread(store, thread_id)).status.cause == "paused"
    assert await store.refs("signal/") == {}


class Overtaken(MemoryStore):
    """A store in which a thread's own end comes just before that of the one who cancels it."""

    overtaken = False

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        for move in moves:
            is_end = move.name.endswith("/status") and move.old is not None
            if is_end and b'"cancelled"' in objects[-1].data and not self.overtaken:
                self.overtaken = True
                own = node("status", {"state": "failed", "at_ms": 1, "summary": "its own end"})
                await super().commit([own], [RefMove(move.name, move.old, own.hash)])
        await super().commit(objects, moves, entries)


async def test_a_thread_that_ends_while_it_is_cancelled_is_cancelled_all_the_same() -> None:
    async def fail(ctx: ThreadContext) -> int:
        raise RuntimeError

    engine = Engine(Overtaken())
    failed = await engine.start(in_turn(fail), "p")
    await engine.cancel(failed.thread_id)
    assert (await read_thread(engine.store, failed.thread_id)).status.state == "cancelled"


async def test_a_signal_that_was_left_over_does_not_stop_the_next_run(
    store: SqliteStore, tmp_path: Path
) -> None:
    """As when the owner died before it could follow it."""
    engine = Engine(store, locks=tmp_path / "locks")
    seen: list[dict[str, Hash]] = []

    async def fail(ctx: ThreadContext) -> int:
        raise RuntimeError

    async def one(ctx: ThreadContext) -> int:
        await anyio.sleep(0.6)  # longer than a watcher takes
        seen.append(await store.refs("signal/"))
        return 1

    failed = await engine.start(in_turn(fail), "p")
    status = (await read_thread(store, failed.thread_id)).status_hash
    await store.commit([], [RefMove(f"signal/{failed.thread_id}", None, status)])

    assert (await engine.resume(in_turn(one), failed.thread_id)).state == "completed"
    assert seen == [{}]


async def test_an_owner_that_takes_its_time_is_signalled_once(
    store: SqliteStore, tmp_path: Path
) -> None:
    """A signal that moves again could get in the way of its removal."""
    started, removed, moves = anyio.Event(), anyio.Event(), list[RefMove]()

    async def slow(ctx: ThreadContext) -> int:
        started.set()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(1.2)
        return 1

    async def watch() -> None:
        async with store.watch("signal/") as changes:
            async for move in changes:
                moves.append(move)
                if move.new is None:
                    removed.set()

    async with open_store(tmp_path / "store.sqlite3") as other:
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch)
                tasks.start_soon(Engine(store, locks=tmp_path / "locks").start, in_turn(slow), "p")
                await started.wait()
                (thread_id,) = await list_threads(store)
                await Engine(other, locks=tmp_path / "locks").cancel(thread_id)
                await removed.wait()
                tasks.cancel_scope.cancel()
    assert [move.new is None for move in moves] == [False, True]


async def test_a_run_whose_process_died_is_interrupted(store: SqliteStore, tmp_path: Path) -> None:
    engine, stuck = Engine(store, locks=tmp_path / "locks"), Stuck()
    running: list[StoredThread] = []
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stuck.run, engine)
            await stuck.started.wait()
            (thread_id,) = await list_threads(store)
            running.append(await read_thread(store, thread_id))
            assert await engine.state(running[0]) == "running"
            tasks.cancel_scope.cancel()
    (stored,), thread_id = running, running[0].thread_id
    # As the store was before the end of the run, with nobody who holds the lock.
    assert await engine.state(await read_thread(store, thread_id)) == "cancelled"
    async with open_store(tmp_path / "copy.sqlite3") as copy:
        for hash in (stored.start.prompt, stored.head, stored.status_hash):
            await copy.commit([await store.get(hash)])
        await copy.commit(
            [],
            [
                RefMove(f"thread/{thread_id}/head", None, stored.head),
                RefMove(f"thread/{thread_id}/status", None, stored.status_hash),
            ],
        )
        again = Engine(copy, locks=tmp_path / "locks")
        assert await again.state(await read_thread(copy, thread_id)) == "interrupted"
        assert (await again.resume(stuck.workflow, thread_id)).state == "completed"
