"""The events of a thread: late and slow readers, several of them, here and in other processes."""

from collections.abc import AsyncIterable
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given
from hypothesis import strategies as st

from workflow_cas import open_store
from workflow_execute import ChildTask, Engine, EventsMissed, run_child
from workflow_execute.engine._feed import Feed
from workflow_execute.testing import in_turn
from workflow_protocol import (
    Event,
    Retrying,
    RoleFinished,
    RoleStarted,
    ThreadContext,
    ThreadEnded,
    ThreadStarted,
)


async def one(ctx: ThreadContext) -> int:
    return 1


async def read_all(events: AsyncIterable[Event | EventsMissed]) -> list[Event | EventsMissed]:
    return [event async for event in events]


async def test_each_of_several_readers_hears_all_of_a_run_and_its_children_and_then_stops(
    tmp_path: Path,
) -> None:
    go_on = anyio.Event()
    heard: list[list[Event | EventsMissed]] = []

    async def parent(ctx: ThreadContext) -> int:
        await go_on.wait()
        done = await run_child(ctx, ChildTask(workflow=in_turn(one), input="child", name="below"))
        return int(done.thread_id != "")

    with anyio.fail_after(10):
        async with (
            open_store(tmp_path / "store.sqlite3") as store,
            Engine(store, locks=tmp_path / "locks").running() as engine,
        ):
            handle = await engine.submit(in_turn(parent), "task")

            async def read() -> None:
                heard.append(await read_all(handle))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
                tasks.start_soon(read)
                await checkpoint()
                go_on.set()
            late = await read_all(handle)  # after the end

    assert heard[0] == heard[1] == late
    assert [(type(each), getattr(each, "parents", None)) for each in late] == [
        (ThreadStarted, ()),
        (RoleStarted, ()),
        (ThreadStarted, (handle.id,)),
        (RoleStarted, (handle.id,)),
        (RoleFinished, (handle.id,)),
        (ThreadEnded, (handle.id,)),
        (RoleFinished, ()),
        (ThreadEnded, ()),
    ]


async def test_a_reader_that_leaves_its_loop_does_no_harm(tmp_path: Path) -> None:
    async with (
        open_store(tmp_path / "store.sqlite3") as store,
        Engine(store, locks=tmp_path / "locks").running() as engine,
    ):
        handle = await engine.submit(in_turn(one), "task")
        async for event in handle:
            assert isinstance(event, ThreadStarted)
            break
        done = await handle
        async for event in await Engine(store).handle(in_turn(one), handle.id):
            assert isinstance(event, RoleFinished)
            break

    assert done.state == "completed"


async def test_another_process_gives_each_step_as_it_is_committed_and_the_end(
    tmp_path: Path,
) -> None:
    go_on = anyio.Event()
    heard: list[Event | EventsMissed] = []

    async def wait(ctx: ThreadContext) -> int:
        await go_on.wait()
        return 2

    work = in_turn(one, wait)
    with anyio.fail_after(10):
        async with (
            open_store(tmp_path / "store.sqlite3") as store,
            open_store(tmp_path / "store.sqlite3") as other,
            Engine(store, locks=tmp_path / "locks").running() as engine,
        ):
            handle = await engine.submit(work, "task")
            elsewhere = await Engine(other, locks=tmp_path / "locks").handle(work, handle.id)
            async for event in elsewhere:
                heard.append(event)
                go_on.set()  # after the first step was heard of
            done, seen = await handle, await elsewhere

    assert [type(each) for each in heard] == [RoleFinished, RoleFinished, ThreadEnded]
    assert [each.value for each in heard if isinstance(each, RoleFinished)] == ["1", "2"]
    assert (seen.state, seen.summary, seen.value) == (done.state, done.summary, done.value)
    assert seen.steps == done.steps


@given(
    sizes=st.lists(st.integers(0, 30), max_size=40),
    reads=st.lists(st.integers(0, 12), max_size=40),
    max_events=st.integers(1, 8),
)
async def test_readers_of_any_speed_get_the_latest_in_order_or_how_many_they_missed(
    sizes: list[int], reads: list[int], max_events: int
) -> None:
    feed = Feed(max_events=max_events, max_chars=50)
    reader = feed.read()
    got: list[int] = []

    def take(event: Event | EventsMissed) -> None:
        if isinstance(event, EventsMissed):
            got.extend([-1] * event.count)
        else:
            assert isinstance(event, Retrying)
            got.append(event.attempt)

    pauses = iter(reads)
    for number, size in enumerate(sizes):
        feed.put(Retrying(reason="x" * size, attempt=number, wait_s=0))
        for _ in range(next(pauses, 0)):
            if len(got) <= number:
                take(await anext(reader))
    feed.close()
    async for event in reader:
        take(event)

    assert [each for each in got if each >= 0] == [
        number for number, each in enumerate(got) if each >= 0
    ]
    assert len(got) == len(sizes)
    assert got[-1:] == ([len(sizes) - 1] if sizes else [])
    kept = [event async for event in feed.read() if not isinstance(event, EventsMissed)]
    texts = [len(each.reason) for each in kept if isinstance(each, Retrying)]
    assert len(texts) <= max_events
    assert len(texts) <= 1 or sum(texts) <= 50


@pytest.mark.parametrize("count", [0, 3])
async def test_a_reader_that_waits_is_woken_by_the_end(count: int) -> None:
    feed = Feed()
    heard: list[Event | EventsMissed] = []

    async def read() -> None:
        heard.extend(await read_all(feed.read()))

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            for number in range(count):
                await checkpoint()
                feed.put(Retrying(reason="", attempt=number, wait_s=0))
            await checkpoint()
            feed.close()

    assert len(heard) == count
