"""Deleting threads: what goes with them, what stays, and who may."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import pytest

from workflow_cas import (
    MemoryStore,
    Node,
    RefMove,
    SqliteStore,
    StoreCorrupt,
    node,
    open_store,
)
from workflow_execute import (
    Engine,
    ThreadBusy,
    ThreadNotDeletable,
    ThreadNotFound,
    Workflow,
    create_workflow,
    list_threads,
    read_thread,
    read_tree,
    workflow_adapter,
)
from workflow_execute.testing import in_turn
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Hash,
    Question,
    RoleDefinition,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


async def one(ctx: ThreadContext) -> int:
    async def ask() -> int:
        return 1

    return await ctx.journal.run("llm/0", ask, type=int, request=lambda: b"ask")


async def asking(ctx: ThreadContext) -> int:
    return int((await ctx.journal.ask("ask/0", Question(text="Go on?"))).approved)


SMALL = in_turn(one)


def above(child: Workflow) -> Workflow:
    """Two roles that are workflows of their own: this child, and a small one."""
    roles = [RoleDefinition(name=each, system_prompt="", schema=int) for each in "ab"]
    first, second = roles
    return create_workflow(
        WorkflowDefinition(
            table={
                START: first,
                first: second,
                second: END,
            },
        ),
        AdapterBinding(
            workflow_adapter("b", SMALL),
            overrides={"a": workflow_adapter("a", child)},
        ),
    )


async def test_a_thread_is_gone_with_its_lock_and_what_only_it_led_to(
    store: SqliteStore, tmp_path: Path
) -> None:
    engine = Engine(store, locks=tmp_path / "locks")
    kept = await engine.start(SMALL, "kept")
    await store.collect_garbage(keep_newer_than_s=0)
    before = await store.verify()
    gone = await engine.start(SMALL, "gone")

    assert await engine.delete(gone.thread_id) == [gone.thread_id]

    assert await list_threads(store) == [kept.thread_id]
    assert list(await store.refs()) == [
        f"thread/{kept.thread_id}/{what}" for what in ("head", "status")
    ]
    assert [path.stem for path in (tmp_path / "locks").iterdir()] == [kept.thread_id]
    for action in (engine.delete, engine.pause, engine.fork):
        with pytest.raises(ThreadNotFound):
            await action(gone.thread_id)
    await store.collect_garbage(keep_newer_than_s=0)
    after = await store.verify()
    assert after.ok
    assert (after.objects, after.refs) == (before.objects, before.refs)
    assert await engine.replay(SMALL, kept.thread_id)


async def test_a_fork_stays_whole(store: SqliteStore) -> None:
    engine = Engine(store)
    done = await engine.start(SMALL, "p")
    fork = await engine.fork(done.thread_id, at_step=1)
    await engine.delete(done.thread_id)
    await store.collect_garbage(keep_newer_than_s=0)

    assert (await store.verify()).ok
    assert (await read_thread(store, fork)).origin == done.thread_id
    assert (await engine.resume(SMALL, fork)).value == 1
    await engine.replay(SMALL, fork)


async def test_children_go_with_the_thread_above_and_not_before_it(store: SqliteStore) -> None:
    engine, parent = Engine(store), above(above(SMALL))
    done = await engine.start(parent, "p")
    tree = await read_tree(store, done.thread_id)
    ids = [part.thread.thread_id for part in tree.walk()]
    assert len(ids) == 5
    for child in ids[1:]:
        with pytest.raises(
            ThreadNotDeletable, match=r"is a child of thread \w+; delete thread \w+ instead"
        ):
            await engine.delete(child)

    assert sorted(await engine.delete(done.thread_id)) == sorted(ids)
    assert await store.refs() == {}
    await store.collect_garbage(keep_newer_than_s=0)
    assert (await store.verify()).objects == 0


async def test_children_that_a_fork_shares_go_with_the_last_of_them(store: SqliteStore) -> None:
    engine, parent = Engine(store), above(above(SMALL))
    done = await engine.start(parent, "p")
    first, second = (ThreadId(step.child_threads[0]) for step in done.steps)
    shared = [part.thread.thread_id for part in (await read_tree(store, first)).walk()]
    fork = await engine.fork(done.thread_id, at_step=1)

    assert await engine.delete(done.thread_id) == [done.thread_id, second]
    assert set(await list_threads(store)) == {fork, *shared}
    with pytest.raises(ThreadNotDeletable, match=fork):
        await engine.delete(first)
    assert (await engine.resume(parent, fork)).state == "completed"
    assert len(await engine.delete(fork)) == len(shared) + 2
    assert await store.refs() == {}


async def test_a_thread_that_runs_is_not_deleted(store: SqliteStore, tmp_path: Path) -> None:
    begun = anyio.Event()

    async def stuck(ctx: ThreadContext) -> int:
        begun.set()
        await anyio.sleep_forever()
        return 1

    for engine, other in (
        (Engine(store, locks=tmp_path / "locks"), Engine(store, locks=tmp_path / "locks")),
        (here := Engine(MemoryStore()), here),
    ):
        begun, thread = anyio.Event(), ThreadId("")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.start, in_turn(stuck), "p")
            await begun.wait()
            (thread,) = await list_threads(engine.store)
            with pytest.raises(ThreadBusy):
                await other.delete(thread)
            await other.cancel(thread)
        assert await other.delete(thread) == [thread]
        assert await engine.store.refs() == {}


async def test_a_question_and_a_signal_go_with_their_thread(
    store: SqliteStore, tmp_path: Path
) -> None:
    engine = Engine(store, locks=tmp_path / "locks")
    thread = (await engine.start(in_turn(asking), "p")).thread_id
    assert len(await engine.questions(thread)) == 1
    left = node("signal", {"signal": "pause", "at_ms": 0})  # as of a process that died then
    await store.commit([left], [RefMove(f"signal/{thread}", None, left.hash)])

    await engine.delete(thread)
    assert await store.refs() == {}
    await store.collect_garbage(keep_newer_than_s=0)
    assert (await store.verify()).objects == 0


class Damaged(MemoryStore):
    """A store that can't read one of its objects."""

    lost = Hash("")

    async def chain(self, last: Hash, ends: Callable[[Node], bool]) -> list[Node]:
        if last == self.lost:
            raise StoreCorrupt(f"object {last} is damaged", hash=last)
        return await super().chain(last, ends)


async def test_of_a_thread_that_can_not_be_read_nothing_is_deleted() -> None:
    engine = Engine(store := Damaged())
    thread = (await engine.start(SMALL, "p")).thread_id
    before = await store.refs()
    store.lost = before[f"thread/{thread}/head"]

    with pytest.raises(StoreCorrupt):
        await engine.delete(thread)
    assert await store.refs() == before
