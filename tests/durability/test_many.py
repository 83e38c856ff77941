"""Many threads at once: in one process, and in several on one store."""

import json
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from workflow_cas import RefConflict, open_store
from workflow_execute import Engine, list_threads, read_thread, read_turn
from workflow_execute.testing import in_turn
from workflow_protocol import Effect, ThreadContext

ENTRY = """
from workflow_execute.testing import in_turn

async def turn(ctx):
    async def perform():
        with open("ledger", "a") as file:
            file.write(f"{ctx.thread_id}\\n")
        return len(ctx.steps)
    return [await ctx.journal.run(f"tool/{n}/0", perform, type=int) for n in range(5)][0]

run = in_turn(turn, turn, turn)
"""


@pytest.mark.timeout(120)
async def test_two_hundred_threads_of_one_process_lose_nothing(tmp_path: Path) -> None:
    ledger: list[str] = []

    async def turn(ctx: ThreadContext) -> str:
        for number in range(3):

            async def perform(number: int = number) -> str:
                ledger.append(f"{ctx.start.prompt}/{len(ctx.steps)}/{number}")
                return ctx.start.prompt

            await ctx.journal.run(f"tool/{number}/0", perform, type=str, effect=Effect.UNSAFE)
        return ctx.start.prompt

    workflow = in_turn(turn, turn, schema=str)
    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store, locks=tmp_path / "locks")
        with anyio.fail_after(110):
            async with anyio.create_task_group() as tasks:
                for number in range(200):
                    tasks.start_soon(engine.start, workflow, f"thread {number}")
        threads = [await read_thread(store, each) for each in await list_threads(store)]
        turns = [await read_turn(store, step.turn) for each in threads for step in each.steps]
        assert (await store.verify()).ok

    assert [each.status.state for each in threads] == ["completed"] * 200
    assert sorted(json.loads(each.steps[1].value) for each in threads) == sorted(
        f"thread {number}" for number in range(200)
    )
    assert {len(entries) for entries in turns} == {3}
    assert len(ledger) == len(set(ledger)) == 1200


@pytest.mark.timeout(120)
def test_six_runs_of_one_workflow_at_once_lose_nothing(tmp_path: Path) -> None:
    entry = tmp_path / "entry.py"
    entry.write_text(ENTRY, encoding="utf-8")
    environment = os.environ | {"UWF_HOME": str(tmp_path / "home")}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "uwf", "run", str(entry), f"run {number}", "--json"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(6)
    ]
    outcomes = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, outcomes

    listed = subprocess.run(
        [sys.executable, "-m", "uwf", "thread", "list", "--json"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    rows = [json.loads(line) for line in listed.stdout.splitlines()]
    assert {row["prompt"] for row in rows} == {f"run {number}" for number in range(6)}
    assert {(row["state"], row["steps"]) for row in rows} == {("completed", 3)}
    ledger = (tmp_path / "ledger").read_text(encoding="utf-8").splitlines()
    assert sorted(ledger) == sorted(row["thread"] for row in rows for _ in range(15))


async def test_an_owner_that_slept_through_its_replacement_can_not_append(tmp_path: Path) -> None:
    """Without locks, as when a machine was suspended: the refs themselves refuse."""
    awake, replaced = anyio.Event(), anyio.Event()
    slow = True

    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            if slow:
                awake.set()
                await replaced.wait()
                return 1
            return 2

        return await ctx.journal.run("llm/0", perform, type=int)

    workflow = in_turn(turn, turn)
    async with open_store(tmp_path / "a.sqlite3") as store:
        refused: list[BaseException] = []

        async def sleeper() -> None:
            try:
                await Engine(store).start(workflow, "p")
            except RefConflict as error:
                refused.append(error)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sleeper)
                await awake.wait()
                slow = False
                (thread_id,) = await list_threads(store)
                done = await Engine(store).resume(workflow, thread_id)
                assert [step.meta for step in done.steps] == [2, 2]
                replaced.set()

        assert len(refused) == 1
        (thread_id,) = await list_threads(store)
        stored = await read_thread(store, thread_id)
        assert [step.value for step in stored.steps] == [b"2", b"2"]
        assert stored.status.state == "completed"
