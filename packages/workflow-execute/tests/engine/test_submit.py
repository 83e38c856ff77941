"""Threads in the background: submitted once by a key, watched, shut down."""

import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from anyio.lowlevel import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_cas import MemoryStore, RefMove, SqliteStore, Store, Stored, open_store
from workflow_execute import (
    Engine,
    EngineNotRunning,
    InputError,
    KeyConflict,
    ThreadHandle,
    ThreadNotFound,
    Workflow,
    check_summaries,
    export_thread,
    import_thread,
    list_threads,
    read_thread,
)
from workflow_execute.testing import in_turn
from workflow_protocol import Hash, ThreadContext, ThreadId


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


class Gate:
    """A role that waits until it may go on, and counts its turns."""

    def __init__(self) -> None:
        self.at_work = anyio.Event()
        self.open = anyio.Event()
        self.turns = 0

    async def __call__(self, ctx: ThreadContext) -> int:
        self.turns += 1
        self.at_work.set()
        await self.open.wait()
        return self.turns


async def one(ctx: ThreadContext) -> int:
    return 1


async def two(ctx: ThreadContext) -> int:
    return 2


async def test_a_submitted_thread_runs_beside_the_caller_and_gives_its_result(
    store: SqliteStore, tmp_path: Path
) -> None:
    gate = Gate()
    with anyio.fail_after(10):
        async with Engine(store, locks=tmp_path / "locks").running() as engine:
            handle = await engine.submit(in_turn(gate, two), "task", tags={"customer": "42"})
            on_disk = await read_thread(store, handle.id)  # before anybody waits
            await gate.at_work.wait()
            gate.open.set()
            first, second = await handle, await handle

    assert (on_disk.prompt, on_disk.status.state, on_disk.start.tags) == (
        "task", "running", ("customer=42",),
    )  # fmt: skip
    assert handle.is_new
    assert first is second
    assert (first.thread_id, first.state, first.value) == (handle.id, "completed", 2)


async def test_a_submission_outside_of_running_is_refused_in_plain_words(
    store: SqliteStore, tmp_path: Path
) -> None:
    engine = Engine(store)
    refused: list[str] = []
    for _ in range(2):
        with pytest.raises(EngineNotRunning) as caught:
            await engine.submit(in_turn(one), "task")
        refused.append(str(caught.value))
        async with engine.running():
            with pytest.raises(RuntimeError, match="running already"):
                async with engine.running():
                    pass

    assert refused == [
        "the engine runs nothing in the background now; do this inside of "
        "`async with engine.running():`"
    ] * 2  # fmt: skip
    assert await list_threads(store) == []


async def test_the_same_key_gives_the_same_thread_and_no_second_run(
    store: SqliteStore, tmp_path: Path
) -> None:
    gate = Gate()
    work = in_turn(gate, two)
    async with open_store(tmp_path / "store.sqlite3") as other_store:
        with anyio.fail_after(10):
            async with (
                Engine(store, locks=tmp_path / "locks").running() as engine,
                Engine(other_store, locks=tmp_path / "locks").running() as other,
            ):
                handles = [
                    await each.submit(work, "task", key="order 1") for each in (engine, other)
                ]
                handles.append(await engine.submit(work, "task", key="order 1"))
                gate.open.set()
                values = [(await each).value for each in handles]
                handles.append(await other.submit(work, "task", key="order 1"))
                values.append((await handles[-1]).value)

    assert len({each.id for each in handles}) == 1
    assert [each.is_new for each in handles] == [True, False, False, False]
    assert (values, gate.turns) == ([2, 2, 2, 2], 1)
    assert len(await list_threads(store)) == 1
    (listed,) = await engine.list_threads()
    assert (listed.key, listed.workflow) == ("order 1", "role-0+role-1")
    assert await check_summaries(store) == []


async def test_a_key_that_is_used_for_another_task_says_what_differs(store: SqliteStore) -> None:
    async with Engine(store).running() as engine:
        first = await engine.submit(in_turn(one), "task", key="k", name="ones")
        said: list[tuple[str, tuple[str, ...]]] = []
        for workflow, name, prompt in [
            (in_turn(one), "ones", "another task"),
            (in_turn(one), "others", "task"),
            (in_turn(one, two), None, "another task"),
        ]:
            with pytest.raises(KeyConflict) as caught:
                await engine.submit(workflow, prompt, key="k", name=name)
            said.append((str(caught.value), caught.value.differs))
        same = await engine.submit(in_turn(one), "task", key="k", name="ones", tags=["other"])

    start = f"the key 'k' has begun thread {first.id} with "
    end = "; use a key of its own for each task"
    other = "another workflow ('ones' then, {} now)"
    assert said == [
        (f"{start}another input{end}", ("input",)),
        (f"{start}{other.format(repr('others'))}{end}", ("workflow",)),
        (
            f"{start}{other.format(repr('role-0+role-1'))} and another input{end}",
            ("workflow", "input"),
        ),
    ]
    assert same.id == first.id


@pytest.mark.parametrize("key", ["", "two\nlines", "x" * 201, "\ud800"])
async def test_what_cannot_be_a_key_is_refused(store: SqliteStore, key: str) -> None:
    async with Engine(store).running() as engine:
        with pytest.raises(ValueError, match="can't be a key; use 1 to 200 printable characters"):
            await engine.submit(in_turn(one), "task", key=key)
        with pytest.raises(InputError):
            await engine.submit(in_turn(one), cast("str", 5), key="k")

    assert await store.refs() == {}


async def test_a_deleted_thread_frees_its_key_and_a_fork_does_not(store: SqliteStore) -> None:
    engine = Engine(store)
    async with engine.running():
        first = await engine.submit(in_turn(one), "task", key="k")
        await first
        fork = await engine.fork(first.id)
        await engine.delete(fork)
        kept = await engine.submit(in_turn(one), "task", key="k")
        fork = await engine.fork(first.id)
        await engine.delete(first.id)
        left = await store.refs("key/")
        new = await engine.submit(in_turn(one), "another task", key="k")
        await new
        fork_of_deleted = await read_thread(store, fork)

    assert kept.id == first.id
    assert left == {}
    assert new.is_new
    assert fork_of_deleted.start.key == fork_of_deleted.summary.key == ""
    assert await check_summaries(store) == []


async def test_garbage_collection_keeps_what_a_key_leads_to(store: SqliteStore) -> None:
    async with Engine(store).running() as engine:
        first = await engine.submit(in_turn(one), "task", key="k")
        await first
        await store.collect_garbage(keep_newer_than_s=0)
        again = await engine.submit(in_turn(one), "task", key="k")
        same = (await again).value

    assert (again.id, same) == (first.id, 1)
    assert (await store.verify()).ok


async def test_an_imported_thread_brings_its_key_unless_another_thread_has_it(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with Engine(store).running() as engine:
        first = await engine.submit(in_turn(one), "task", key="k")
        await first
        fork = await engine.fork(first.id)
    for thread_id in (first.id, fork):
        await export_thread(store, thread_id, tmp_path / thread_id)
    there: dict[str, bool] = {}
    for name, files in {"empty": [first.id], "of a fork": [fork], "taken": [first.id]}.items():
        other = MemoryStore()
        async with Engine(other).running() as engine:
            if name == "taken":
                await (await engine.submit(in_turn(one), "task", key="k"))
            for each in files:
                await import_thread(other, tmp_path / each)
            handle = await engine.submit(in_turn(one), "task", key="k")
            await handle
            there[name] = handle.id == first.id
        assert await check_summaries(other) == []

    assert there == {"empty": True, "of a fork": False, "taken": False}


class Scheduled:
    """A store whose every look and commit waits for its turn."""

    def __init__(self, store: Store, turns: "Turns") -> None:
        self._store = store
        self._turns = turns

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def ref(self, name: str) -> Hash | None:
        await self._turns.wait()
        return await self._store.ref(name)

    async def commit(
        self, objects: Sequence[Stored], moves: Sequence[RefMove] = (), entries: Any = ()
    ) -> None:
        await self._turns.wait()
        await self._store.commit(objects, moves, entries)


class Turns:
    """Lets one of those that wait go on, as it is drawn."""

    def __init__(self) -> None:
        self._waiting: list[anyio.Event] = []

    async def wait(self) -> None:
        turn = anyio.Event()
        self._waiting.append(turn)
        await turn.wait()

    async def give(self, drawn: Iterator[int]) -> None:
        while True:
            for _ in range(5):  # so that all those come to wait who can
                await checkpoint()
            if self._waiting:
                self._waiting.pop(next(drawn) % len(self._waiting)).set()


@settings(max_examples=40, deadline=None)
@given(
    keys=st.lists(st.sampled_from("ab"), min_size=2, max_size=5),
    engines=st.lists(st.integers(0, 2), min_size=5, max_size=5),
    order=st.lists(st.integers(0, 99), min_size=1, max_size=40),
)
async def test_submissions_of_one_key_start_one_thread_in_whatever_order_they_come(
    keys: list[str], engines: list[int], order: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    inner, turns, ran = MemoryStore(), Turns(), Counter[str]()
    locks = tmp_path_factory.mktemp("locks")
    handles: list[ThreadHandle[object]] = []

    async def count(ctx: ThreadContext) -> int:
        ran[ctx.start.prompt] += 1
        return 1

    async def submit(engine: Engine, key: str) -> None:
        handle = await engine.submit(in_turn(count), f"task {key}", key=key)
        await handle
        handles.append(handle)

    drawn = iter(order * 200)
    with anyio.fail_after(20):
        async with anyio.create_task_group() as giving:
            giving.start_soon(turns.give, drawn)
            several = [
                Engine(cast("Store", Scheduled(inner, turns)), locks=locks) for _ in range(3)
            ]
            async with (
                several[0].running(),
                several[1].running(),
                several[2].running(),
                anyio.create_task_group() as tasks,
            ):
                for at, key in zip(engines, keys, strict=False):
                    tasks.start_soon(submit, several[at], key)
            giving.cancel_scope.cancel()

    assert ran == {f"task {key}": 1 for key in keys}
    assert len(await list_threads(inner)) == len({each.id for each in handles}) == len(set(keys))
    assert sum(each.is_new for each in handles) == len(set(keys))


SUBMITTER = """
import sys
from pathlib import Path
import anyio
from workflow_cas import open_store
from workflow_execute import Engine
from workflow_execute.testing import in_turn

async def role(ctx):
    with open(Path(sys.argv[1]) / "ran", "a") as file:
        file.write(ctx.start.prompt + "\\n")
    return 1

async def main():
    folder, keys = Path(sys.argv[1]), sys.argv[2:]
    async with open_store(folder / "store.sqlite3") as store:
        async with Engine(store, locks=folder / "locks").running() as engine:
            print("ready", flush=True)
            sys.stdin.readline()
            for key in keys:
                print((await (await engine.submit(in_turn(role), key, key=key))).thread_id)

anyio.run(main)
"""


def test_processes_that_submit_the_same_keys_share_the_threads(
    tmp_path: Path,
) -> None:
    keys = [f"key-{number}" for number in range(6)]
    orders = [keys, keys, keys[::-1]]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", SUBMITTER, str(tmp_path), *order],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for order in orders
    ]  # fmt: skip
    for each in processes:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    printed = [(each.communicate(timeout=30)[0].split(), each.returncode) for each in processes]

    assert [code for _, code in printed] == [0, 0, 0]
    (first, second, third) = [ids for ids, _ in printed]
    assert first == second == third[::-1]
    assert Counter((tmp_path / "ran").read_text(encoding="utf-8").split()) == Counter(keys)
    assert len(set(first)) == len(keys)


async def test_a_cancelled_wait_leaves_the_thread_alone_unless_it_is_to_be_cancelled(
    store: SqliteStore, tmp_path: Path
) -> None:
    gates = [Gate(), Gate()]
    with anyio.fail_after(10):
        async with Engine(store, locks=tmp_path / "locks").running() as engine:
            handles = [await engine.submit(in_turn(each), "task") for each in gates]
            for each, cancel_thread in zip(handles, (False, True), strict=True):
                with anyio.move_on_after(0.05):
                    await each.result(cancel_thread=cancel_thread)
            gates[0].open.set()
            states = [(await each).state for each in handles]

    assert states == ["completed", "cancelled"]


async def test_a_handle_cancels_and_pauses_its_thread(store: SqliteStore, tmp_path: Path) -> None:
    with anyio.fail_after(10):
        async with Engine(store, locks=tmp_path / "locks").running() as engine:
            first = await engine.submit(in_turn(Gate()), "task")
            second = await engine.submit(in_turn(Gate()), "task")
            await first.cancel()
            await second.pause()
            done = [await first, await second]

    assert [(each.state, each.cause) for each in done] == [
        ("cancelled", ""), ("suspended", "paused"),
    ]  # fmt: skip


async def test_leaving_the_engine_lets_threads_end_for_a_while_and_shuts_down_the_rest(
    store: SqliteStore, tmp_path: Path
) -> None:
    quick, stuck = Gate(), Gate()
    engine = Engine(store, locks=tmp_path / "locks")
    handles: list[ThreadHandle[object]] = []

    async def open_soon() -> None:
        with pytest.raises(EngineNotRunning):  # nothing new begins while it is being left
            await submit_again_and_again()
        quick.open.set()

    async def submit_again_and_again() -> None:
        while True:
            await engine.submit(in_turn(one), "late", key="late")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks, engine.running(wait_s=0.5):
            for each in (quick, stuck):
                handles.append(await engine.submit(in_turn(each), "task"))
            tasks.start_soon(open_soon)
        done = [await each for each in handles]

    assert [(each.state, each.cause, each.summary) for each in done] == [
        ("completed", "", "role-0: 1"),
        ("suspended", "shutdown", "the process that ran it was shut down"),
    ]
    assert await check_summaries(store) == []


@pytest.mark.parametrize("how", ["exception", "cancellation"])
async def test_an_engine_that_is_left_in_a_hurry_shuts_its_threads_down(
    store: SqliteStore, how: str
) -> None:
    gate = Gate()
    engine = Engine(store)
    handle: ThreadHandle[object] | None = None

    async def serve() -> None:
        nonlocal handle
        async with engine.running(wait_s=60):
            handle = await engine.submit(in_turn(gate), "task")
            await gate.at_work.wait()
            if how == "exception":
                raise KeyError("of the caller")
            scope.cancel()
            await anyio.sleep_forever()

    with anyio.fail_after(10), anyio.CancelScope() as scope:
        if how == "exception":
            with pytest.raises(KeyError, match="of the caller"):
                await serve()
        else:
            await serve()
    assert handle is not None
    done = await handle

    assert (done.state, done.cause) == ("suspended", "shutdown")


async def test_what_a_role_raises_is_in_the_result_and_a_store_that_fails_is_raised(
    store: SqliteStore,
) -> None:
    async def fail(ctx: ThreadContext) -> int:
        raise KeyError("of the role")

    async with Engine(store).running() as engine:
        failed = await (await engine.submit(in_turn(fail), "task", key="k"))
        again = await (await engine.submit(in_turn(fail), "task", key="k"))
        with pytest.raises(ThreadNotFound):
            await engine.handle(in_turn(fail), ThreadId("01"))

    assert (failed.state, repr(failed.error)) == ("failed", "KeyError('of the role')")
    assert (again.state, again.error, again.summary) == ("failed", None, failed.summary)
    assert (again.traceback, again.origin) == (failed.traceback, failed.origin)


async def test_an_answered_thread_goes_on_in_the_background(store: SqliteStore) -> None:
    from workflow_protocol import Answer, Question

    async def ask(ctx: ThreadContext) -> bool:
        return (await ctx.journal.ask("ok", Question(text="Go?"))).approved

    asking: Workflow = in_turn(ask, schema=bool)
    async with Engine(store).running() as engine:
        handle = await engine.submit(asking, "task")
        waits = await handle
        await engine.answer(handle.id, None, Answer(approved=True))
        done = await (await engine.resume_in_background(asking, handle.id))

    assert (waits.state, waits.cause) == ("suspended", "question")
    assert (done.state, done.value) == ("completed", True)
