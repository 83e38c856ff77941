"""The index of threads: that it is true after whatever is done, and that it is quick to search."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_cas import Entry, MemoryStore, RefMove, SqliteStore, Stored, StoreFull, content
from workflow_cas import open_store as open_sqlite
from workflow_execute import (
    ChildTask,
    Engine,
    Limits,
    Price,
    ThreadNotFound,
    ThreadSummary,
    Workflow,
    check_summaries,
    find_thread,
    list_threads,
    read_summaries,
    read_thread,
    run_child,
)
from workflow_execute.testing import in_turn
from workflow_protocol import (
    Answer,
    Metered,
    Question,
    ThreadContext,
    ThreadId,
    Usage,
    WorkflowError,
)

METERED = Metered[bytes](
    model="m",
    at_most=lambda: Usage(input_tokens=10),
    used=lambda _: Usage(input_tokens=6, output_tokens=2, calls=1),
)
PRICED = Limits(prices={"m": Price(input=2, output=10)})


async def model_call(ctx: ThreadContext, key: str = "llm/0") -> None:
    async def ask() -> bytes:
        return b'"said"'

    await ctx.journal.run(key, ask, type=bytes, request=lambda: b"ask", metered=METERED)


async def plain(ctx: ThreadContext) -> int:
    await model_call(ctx)
    return 1


async def fails(ctx: ThreadContext) -> int:
    await model_call(ctx)
    raise ValueError("the page has no table")


async def asks(ctx: ThreadContext) -> int:
    await model_call(ctx)
    return int((await ctx.journal.ask("go", Question(text="Go on?"))).approved)


def below(child: Workflow) -> Callable[[ThreadContext], Awaitable[int]]:
    async def turn(ctx: ThreadContext) -> int:
        await model_call(ctx)
        task = ChildTask(workflow=child, input="below", name="child")
        return (await run_child(ctx, task)).read(int)

    return turn


FLOWS = [
    in_turn(plain, plain),
    in_turn(plain, fails),
    in_turn(asks, plain),
    in_turn(plain, below(in_turn(plain, asks))),
    in_turn(below(in_turn(plain)), fails),
]


class Mortal(MemoryStore):
    """Takes only so many more commits, as if the process had died then."""

    def __init__(self) -> None:
        super().__init__()
        self.left: int | None = None

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


class Driver:
    """Does what numbers say."""

    def __init__(self) -> None:
        self.store = Mortal()
        self.engine = Engine(self.store, limits=PRICED)
        self.flows: dict[str, Workflow] = {}

    async def do(self, what: int, which: int, detail: int) -> None:
        tops = [each for each in await list_threads(self.store) if each in self.flows]
        with contextlib.suppress(WorkflowError):
            if what == 0 or not tops:
                await self.start(which, detail)
            else:
                await self.do_with(what, tops[which % len(tops)], detail)
        self.store.left = None

    async def start(self, which: int, detail: int) -> None:
        self.store.left = detail if detail % 3 else None
        flow = FLOWS[which % len(FLOWS)]
        before = set(await list_threads(self.store))
        try:
            await self.engine.start(
                flow, f"prompt {which}", name=f"flow {which % 3}", tags=[f"t{detail % 2}"]
            )
        finally:
            new = set(await list_threads(self.store)) - before
            if new:
                self.flows[min(new)] = flow

    async def do_with(self, what: int, thread: ThreadId, detail: int) -> None:
        engine, flow = self.engine, self.flows[thread]
        match what:
            case 1 | 2:
                self.store.left = detail if detail % 2 else None
                await engine.resume(flow, thread, fresh=what == 2)
            case 3:
                archive = content(f"bundle {detail}")
                await self.store.commit([archive])
                self.store.left = detail % 5
                await engine.resume(flow, thread, bundle=archive.hash, workspace=Path("/"))
            case 4:
                prompt = f"forked {detail}" if detail % 2 else None
                name = "fork" if detail % 3 else None
                fork = await engine.fork(thread, at_step=detail % 3, prompt=prompt, name=name)
                self.flows[fork] = flow
            case 5:
                await engine.pause(thread)
            case 6:
                await engine.cancel(thread)
            case 7:
                await engine.delete(thread)
            case _:
                for each in await list_threads(self.store):
                    for key in await engine.questions(each):
                        await engine.answer(each, key, Answer(approved=True))

    async def check(self) -> None:
        assert await check_summaries(self.store) == []
        assert (await self.store.verify()).problems == ()
        threads = [await read_thread(self.store, each) for each in await list_threads(self.store)]
        whole = [each.summary for each in reversed(threads)]
        found = await read_summaries(self.store)
        assert [without_children(each) for each in found] == whole
        for each in whole:
            await self.check_filters(whole, each)
        for thread in threads:
            below = [
                each for each in threads if thread.thread_id in await self.above(each.thread_id)
            ]
            (mine,) = [each for each in found if each.thread_id == thread.thread_id]
            assert mine.children == len(below)
            assert mine.children_micros == sum(
                each.summary.step_micros + each.summary.turn_micros for each in below
            )

    async def check_filters(self, whole: list[ThreadSummary], one: ThreadSummary) -> None:
        filters: list[dict[str, Any]] = [
            {"state": one.state},
            {"workflow": one.workflow, "state": one.state},
            {"parent": one.parent} if one.parent else {"top": True},
            {"tag": "t1", "top": True},
        ]
        for wanted in filters:
            found = await read_summaries(self.store, after=one.thread_id, limit=3, **wanted)
            assert [each.thread_id for each in found] == [
                each.thread_id
                for each in whole
                if each.thread_id < one.thread_id and is_wanted(each, **wanted)
            ][:3]

    async def above(self, thread: ThreadId) -> list[ThreadId]:
        found: list[ThreadId] = []
        with contextlib.suppress(ThreadNotFound):
            while (above := (await read_thread(self.store, thread)).parent) is not None:
                found.append(thread := above)
        return found


def without_children(summary: ThreadSummary) -> ThreadSummary:
    return msgspec.structs.replace(summary, children=0, children_tokens=0, children_micros=0)


def is_wanted(
    each: ThreadSummary,
    *,
    state: str | None = None,
    workflow: str | None = None,
    tag: str | None = None,
    parent: str | None = None,
    top: bool = False,
) -> bool:
    return (
        state in {None, each.state}
        and workflow in {None, each.workflow}
        and (tag is None or tag in each.tags)
        and parent in {None, each.parent}
        and not (top and each.parent is not None)
    )


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.tuples(st.integers(0, 8), st.integers(0, 20), st.integers(0, 11)),
        min_size=1,
        max_size=9,
    )
)
def test_after_anything_that_is_done_the_index_says_what_the_threads_do(
    operations: list[tuple[int, int, int]],
) -> None:
    async def run() -> None:
        driver = Driver()
        for operation in operations:
            await driver.do(*operation)
            await driver.check()

    anyio.run(run)


async def test_a_summary_tells_what_one_asks_of_a_thread_at_first(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "store.db") as store:
        engine = Engine(store, locks=tmp_path / "locks", limits=PRICED)
        thread = (
            await engine.start(FLOWS[1], "p" * 500, name="fetch", tags=["nightly", "a", "nightly"])
        ).thread_id
        (found,) = await engine.list_threads(state="failed", tag="nightly", workflow="fetch")
        assert (found.thread_id, found.prompt, found.tags) == (thread, "p" * 200, ("a", "nightly"))
        assert (found.state, found.role, found.return_code) == ("failed", "role-1", 1)
        assert (found.error, found.summary) == ("ValueError", "the page has no table")
        assert (found.steps, found.models) == (1, ("m",))
        # A step and an unfinished turn of 6 tokens at 2 and 2 at 10 a million.
        assert (found.tokens, found.cost_micros) == (16, 64)
        fork = await engine.fork(thread, at_step=1)
        (forked,) = await engine.list_threads(tag="nightly", state="suspended")
        assert (forked.thread_id, forked.origin, forked.cause) == (fork, thread, "forked")
        assert (forked.tokens, forked.cost_micros) == (8, 32)
        assert forked.started_ms >= found.started_ms
        since = await engine.list_threads(since_ms=forked.started_ms)
        assert fork in {each.thread_id for each in since}
        assert await engine.list_threads(since_ms=forked.started_ms + 1000) == []


async def test_what_is_below_a_thread_counts_towards_it() -> None:
    engine = Engine(store := MemoryStore(), limits=PRICED)
    top = await engine.start(FLOWS[3], "p")
    assert top.state == "suspended"
    (found,) = await read_summaries(store, top=True)
    assert (found.steps, found.children) == (1, 1)
    assert (found.tokens, found.cost_micros) == (4 * 8, 4 * 32)
    (child,) = await read_summaries(store, parent=top.thread_id)
    assert (child.parent, child.steps, child.tokens) == (top.thread_id, 1, 16)
    assert (await read_summaries(store, limit=1))[0].thread_id == child.thread_id
    assert await find_thread(store, "latest") == top.thread_id


async def test_a_dead_run_shows_as_interrupted_and_one_at_work_as_running(tmp_path: Path) -> None:
    at_work, go_on = anyio.Event(), anyio.Event()

    async def wait(ctx: ThreadContext) -> int:
        at_work.set()
        await go_on.wait()
        return 1

    async with open_sqlite(tmp_path / "store.db") as store:
        engine = Engine(store, locks=(locks := tmp_path / "locks"))
        mortal = Engine(store)  # without locks, so that nobody owns what it runs
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(mortal.start, in_turn(wait), "dead")
            await at_work.wait()
            at_work = anyio.Event()
            tasks.start_soon(engine.start, in_turn(wait), "alive")
            await at_work.wait()

            async def states(**wanted: Any) -> list[tuple[str, str]]:
                found = await read_summaries(store, locks=locks, **wanted)
                return [(each.prompt, each.state) for each in found]

            assert await states() == [("alive", "running"), ("dead", "interrupted")]
            assert await states(state="running") == [("alive", "running")]
            assert await states(state="interrupted", limit=1) == [("dead", "interrupted")]
            assert await states(state="failed") == []
            recorded = await read_summaries(store, state="running")
            assert [each.prompt for each in recorded] == ["alive", "dead"]
            assert [each.state for each in await mortal.list_threads()] == [
                "interrupted",
                "running",
            ]
            go_on.set()
        done = await read_summaries(store, locks=locks)
        assert [each.state for each in done] == ["completed", "completed"]


@pytest.mark.parametrize("tag", ["", "two words", "-x", "a,b", "x" * 65, "line\n", "\ud800"])
async def test_a_tag_that_is_none_is_refused_before_there_is_a_thread(tag: str) -> None:
    engine = Engine(store := MemoryStore())
    with pytest.raises(ValueError, match="can't be a tag; use 1 to 64"):
        await engine.start(FLOWS[0], "p", tags=["fine", tag])
    assert await list_threads(store) == []


async def test_any_name_of_a_workflow_can_be_looked_for() -> None:
    engine = Engine(MemoryStore())
    for name in ("", "two\nlines", "\ud800".encode("utf-16", "surrogatepass").hex(), "ü=ü"):
        thread = (await engine.start(FLOWS[0], "p", name=name)).thread_id
        assert [each.thread_id for each in await engine.list_threads(workflow=name)] == [thread]


async def test_a_thread_is_found_by_the_beginning_of_its_id() -> None:
    engine = Engine(store := MemoryStore())
    one = (await engine.start(FLOWS[0], "p")).thread_id
    other = (await engine.start(FLOWS[0], "p")).thread_id
    assert await find_thread(store, one.lower()) == one
    assert await find_thread(store, other) == await find_thread(store, "latest") == other
    with pytest.raises(ThreadNotFound, match=f"one of {one}, {other}"):
        await find_thread(store, one[:5])
    for wrong in ("", "ZZ", one + "0", "~", f"{one}/head"):
        with pytest.raises(ThreadNotFound):
            await find_thread(store, wrong)


async def fill(store: SqliteStore, count: int) -> None:
    """Threads of which a thousandth failed, and every tenth has a child."""
    from workflow_execute.threads._summary import entry_of  # what the engine writes, without it

    one = content("1")
    moves: list[RefMove] = []
    entries: list[Entry] = []
    for number in range(count):
        thread = ThreadId(f"01M{number:023}")
        summary = ThreadSummary(
            thread_id=thread,
            workflow=f"flow-{number % 7}",
            started_ms=number,
            updated_ms=number,
            state="failed" if number % 1000 == 500 else "completed",
            prompt="p" * 200,
            tags=("nightly",) if number % 50 == 0 else (),
            parent=ThreadId(f"01M{number - 1:023}") if number % 10 == 9 else None,
        )
        moves.append(RefMove(f"thread/{thread}/head", None, one.hash))
        entries.append(entry_of(summary))
    await store.commit([one], moves, entries)


async def test_a_page_of_many_threads_takes_little_whatever_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts the instructions of SQLite's machine: time would depend on the machine."""
    worked = 0
    connect = sqlite3.connect

    def count() -> int:
        nonlocal worked
        worked += 1
        return 0

    def counting(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_progress_handler(count, 100)
        return connection

    monkeypatch.setattr(sqlite3, "connect", counting)
    async with open_sqlite(tmp_path / "store.db", durability="normal") as store:
        await fill(store, 10_000)
        wanted: list[dict[str, Any]] = [
            {}, {"top": True}, {"state": "failed"}, {"state": "failed", "top": True},
            {"state": "completed", "workflow": "flow-3", "tag": "nightly", "top": True},
            {"state": "running"}, {"workflow": "flow-1", "state": "cancelled"},
            {"top": True, "after": ThreadId(f"01M{5000:023}")},
        ]  # fmt: skip
        for each in wanted:
            worked = 0
            found = await read_summaries(store, limit=50, locks=tmp_path / "locks", **each)
            assert found or each.get("state") in {"running", "cancelled"}
            # 100,000 instructions take about 5 ms; to count the 9,000 at the top takes 30,000.
            assert worked * 100 <= 100_000, each
