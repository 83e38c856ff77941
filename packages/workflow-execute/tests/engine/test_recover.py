"""Threads of dead and closed processes are taken up: by one process each, or it says why not."""

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from workflow_cas import SqliteStore, content, open_store
from workflow_execute import (
    Engine,
    EngineNotRunning,
    JournalMismatch,
    Recovery,
    Workflow,
    check_summaries,
    list_threads,
    read_thread,
)
from workflow_execute.testing import in_turn
from workflow_protocol import Hash, ThreadContext

VICTIM = """
import json, sys
from pathlib import Path
import anyio
from workflow_cas import open_store
from workflow_execute import Engine
from workflow_execute.testing import in_turn

async def paid(ctx):
    async def pay():
        with open(Path(sys.argv[1]) / "paid", "a") as file:
            file.write(ctx.start.prompt + "\\n")
        return 7
    return await ctx.journal.run("llm/0", pay, type=int)

async def stuck(ctx):
    await anyio.sleep_forever()

async def main():
    folder = Path(sys.argv[1])
    async with open_store(folder / "store.sqlite3") as store:
        async with Engine(store, locks=folder / "locks").running() as engine:
            for name in sys.argv[2:]:
                workflow = in_turn(paid, stuck)
                handle = await engine.submit(workflow, name, name=name or None, key=name)
                async for event in handle:
                    if type(event).__name__ == "RoleFinished":
                        break
            print("ready", flush=True)
            await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


def kill_in_the_second_step(folder: Path, *names: str) -> None:
    """Let a process take one step of each thread, and kill it."""
    process = subprocess.Popen(
        [sys.executable, "-c", VICTIM, str(folder), *names], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()


async def never(ctx: ThreadContext) -> int:
    raise AssertionError("the first step is recorded")


async def nine(ctx: ThreadContext) -> int:
    return 9


GOES_ON = in_turn(never, nine)


async def test_what_a_dead_process_left_goes_on_where_it_was_by_name(
    store: SqliteStore, tmp_path: Path
) -> None:
    await anyio.to_thread.run_sync(kill_in_the_second_step, tmp_path, "first", "second", "unknown")
    with anyio.fail_after(20):
        async with Engine(store, locks=tmp_path / "locks").running() as engine:
            recovery = await engine.recover({"first": GOES_ON, "second": GOES_ON})
            again = await engine.recover({"first": GOES_ON, "second": GOES_ON})
            done = [await each for each in recovery.taken]

    assert [(each.state, [step.meta for step in each.steps]) for each in done] == [
        ("completed", [7, 9])
    ] * 2  # fmt: skip
    assert again.taken == ()
    assert [(each.workflow, each.reason) for each in recovery.left] == [
        ("unknown", "there is no workflow 'unknown' among those that were given: 'first', 'second'")
    ]
    assert recovery.left == again.left
    paid = (tmp_path / "paid").read_text(encoding="utf-8").split()
    assert Counter(paid) == {"first": 1, "second": 1, "unknown": 1}
    assert await check_summaries(store) == []


async def test_without_names_workflows_are_known_by_their_roles(
    store: SqliteStore, tmp_path: Path
) -> None:
    async with Engine(store).running() as engine:
        await engine.submit(in_turn(nine, forever), "task")
    async with Engine(store).running() as engine:
        wrong = await engine.recover([in_turn(nine)])
        right = await engine.recover([in_turn(nine), GOES_ON])
        done = await right.taken[0]

    assert [(each.workflow, each.reason) for each in wrong.left] == [
        (
            "role-0+role-1",
            "there is no workflow 'role-0+role-1' among those that were given: 'role-0'",
        )
    ]
    assert done.value == 9


async def forever(ctx: ThreadContext) -> int:
    await anyio.sleep_forever()
    return 0


async def test_several_processes_that_recover_at_once_take_up_each_thread_once(
    store: SqliteStore, tmp_path: Path
) -> None:
    names = [f"thread-{number}" for number in range(5)]
    await anyio.to_thread.run_sync(kill_in_the_second_step, tmp_path, *names)
    ran = Counter[str]()
    go_on = anyio.Event()

    async def count(ctx: ThreadContext) -> int:
        ran[ctx.start.prompt] += 1
        await go_on.wait()
        return 9

    workflows = dict.fromkeys(names, in_turn(never, count))
    recoveries: list[Recovery] = []
    with anyio.fail_after(20):
        async with (
            open_store(tmp_path / "store.sqlite3") as other_store,
            Engine(store, locks=tmp_path / "locks").running() as engine,
            Engine(other_store, locks=tmp_path / "locks").running() as other,
        ):

            async def recover(each: Engine) -> None:
                recoveries.append(await each.recover(workflows))

            async with anyio.create_task_group() as tasks:
                for each in (engine, other, engine, other):
                    tasks.start_soon(recover, each)
            go_on.set()
            done = {handle.id: (await handle).state for each in recoveries for handle in each.taken}

    assert dict(ran) == dict.fromkeys(names, 1)
    assert list(done.values()) == ["completed"] * 5
    assert [each.left for each in recoveries] == [()] * 4


async def test_a_bundle_comes_before_a_name(store: SqliteStore) -> None:
    stored = content("a bundle")
    await store.commit([stored], [])
    bundle: Hash = stored.hash
    async with Engine(store).running() as engine:
        await engine.submit(in_turn(forever), "task", name="flow", bundle=bundle)
    async with Engine(store).running() as engine:
        recovery = await engine.recover({"flow": in_turn(never), bundle: in_turn(nine)})
        (handle,) = recovery.taken
        value = (await handle).value

    assert value == 9


async def test_what_was_shut_down_is_taken_up_and_what_somebody_paused_is_not(
    store: SqliteStore,
) -> None:
    async with Engine(store).running() as engine:
        shut_down = await engine.submit(in_turn(forever), "task")
        paused = await engine.submit(in_turn(forever), "task")
        await paused.pause()
    async with Engine(store).running() as engine:
        with_limit = await engine.recover([in_turn(nine)], limit=0)
        recovery = await engine.recover([in_turn(nine)])
        await recovery.taken[0]

    assert (with_limit.taken, with_limit.left) == ((), ())
    assert [each.id for each in recovery.taken] == [shut_down.id]
    assert (await read_thread(store, paused.id)).status.cause == "paused"


async def test_a_thread_that_cannot_go_on_is_left_with_the_reason_and_the_others_are_not(
    store: SqliteStore, tmp_path: Path
) -> None:
    folder = tmp_path / "gone"
    folder.mkdir()
    async with Engine(store).running() as engine:
        for name in ("good", "other values"):
            handle = await engine.submit(in_turn(nine, forever), "task", name=name)
            async for event in handle:
                if type(event).__name__ == "RoleFinished":
                    break
        await engine.submit(in_turn(forever), "task", name="gone", workspace=folder)
    folder.rmdir()
    async with Engine(store).running() as engine:
        recovery = await engine.recover(
            {"good": GOES_ON, "other values": in_turn(nine, nine, schema=list), "gone": GOES_ON}
        )
        done = await recovery.taken[0]

    assert done.value == 9
    assert [(each.workflow, each.reason.split(":")[0]) for each in recovery.left] == [
        ("other values", "ThreadNotResumable"), ("gone", "NotADirectoryError"),
    ]  # fmt: skip


async def test_a_run_that_asks_for_something_else_is_not_tried_again(store: SqliteStore) -> None:
    at_work = anyio.Event()

    def asking(digest: str) -> Workflow:
        async def turn(ctx: ThreadContext) -> int:
            async def give() -> int:
                return 1

            await ctx.journal.run("llm/0", give, type=int, digest=digest)
            at_work.set()
            await anyio.sleep_forever()
            return 0

        return in_turn(turn)

    async with Engine(store).running() as engine:
        handle = await engine.submit(asking("11" * 32), "task")
        await at_work.wait()
    async with Engine(store).running() as engine:
        recovery = await engine.recover([asking("22" * 32)])
        with pytest.raises(JournalMismatch):
            await recovery.taken[0]
        again = await engine.recover([asking("22" * 32)])

    assert again.taken == ()
    assert [each.thread_id for each in again.left] == [handle.id]
    assert "llm/0" in again.left[0].reason


async def test_the_same_key_takes_up_a_thread_whose_process_died(
    store: SqliteStore, tmp_path: Path
) -> None:
    await anyio.to_thread.run_sync(kill_in_the_second_step, tmp_path, "k")
    with anyio.fail_after(10):
        async with Engine(store, locks=tmp_path / "locks").running() as engine:
            handle = await engine.submit(GOES_ON, "k", key="k", name="k")
            done = await handle

    assert not handle.is_new
    assert [step.meta for step in done.steps] == [7, 9]
    assert len(await list_threads(store)) == 1


async def test_to_recover_outside_of_running_is_refused(store: SqliteStore) -> None:
    with pytest.raises(EngineNotRunning):
        await Engine(store).recover([GOES_ON])
