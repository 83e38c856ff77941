"""What a run leaves for the next one: the role at work, what was set for it, where it works."""

from pathlib import Path

import anyio
import pytest

from workflow_cas import MemoryStore
from workflow_execute import Engine, JournalMismatch, read_thread
from workflow_execute.testing import in_turn
from workflow_execute.transcript import build_transcript, read_records
from workflow_protocol import Effect, ThreadContext, ThreadId


async def asked(ctx: ThreadContext, key: str, about: str) -> int:
    async def answer() -> int:
        return 1

    return await ctx.journal.run(key, answer, type=int, effect=Effect.UNSAFE, digest=about)


async def first(ctx: ThreadContext) -> int:
    return 0


async def role_of_last_turn(store: MemoryStore, thread_id: ThreadId) -> str:
    stored = await read_thread(store, thread_id)
    return build_transcript(stored, await read_records(store, stored)).turns[-1].role


async def test_the_role_at_work_is_in_the_record_while_it_runs_and_when_its_process_died() -> None:
    store = MemoryStore()
    recorded = anyio.Event()

    async def second(ctx: ThreadContext) -> int:
        await asked(ctx, "a", "a")
        recorded.set()
        await anyio.sleep_forever()
        return 1

    engine = Engine(store)
    async with anyio.create_task_group() as group:
        group.start_soon(engine.start, in_turn(first, second), "x")
        with anyio.fail_after(5):
            await recorded.wait()
        (summary,) = await engine.list_threads()
        # What is in the store now is all that a process leaves that dies.
        assert await role_of_last_turn(store, summary.thread_id) == "role-1"
        group.cancel_scope.cancel()


@pytest.mark.parametrize("signal", ["pause", "cancel"])
async def test_stopping_a_thread_that_nobody_runs_keeps_what_was_set_for_its_run(
    signal: str,
) -> None:
    store = MemoryStore()

    async def second(ctx: ThreadContext) -> int:
        raise LookupError("gone")

    result = await Engine(store, run_options=["--model a/b"]).start(in_turn(first, second), "x")
    engine = Engine(store)
    await (engine.pause if signal == "pause" else engine.cancel)(result.thread_id)

    stored = await read_thread(store, result.thread_id)
    assert stored.status.run_options == ("--model a/b",)
    assert stored.status.place == "role-1"
    assert stored.steps[0].record.run_options == ("--model a/b",)


async def test_a_resume_that_is_refused_for_its_folder_leaves_the_thread_as_it_was(
    tmp_path: Path,
) -> None:
    store = MemoryStore()
    (tmp_path / "other").mkdir()
    fails = [True]

    async def turn(ctx: ThreadContext) -> int:
        done = await asked(ctx, "a", str(len(str(ctx.start.workspace))))
        if fails:
            raise LookupError("gone")
        return done

    workflow = in_turn(turn)
    result = await Engine(store).start(workflow, "x", workspace=tmp_path)
    before = await read_thread(store, result.thread_id)
    with pytest.raises(JournalMismatch):
        await Engine(store).resume(workflow, result.thread_id, workspace=tmp_path / "other")
    assert await read_thread(store, result.thread_id) == before

    fails.clear()
    assert (await Engine(store).resume(workflow, result.thread_id)).state == "completed"
