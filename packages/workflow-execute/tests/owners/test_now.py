"""What a running thread does now can be seen from any process, and only while it runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import anyio
import msgspec

from workflow_cas import MemoryStore, open_store
from workflow_execute import (
    ChildTask,
    Engine,
    Limits,
    ThreadNow,
    read_now,
    run_child,
)
from workflow_execute.testing import in_turn
from workflow_protocol import (
    ModelReplied,
    Retrying,
    RoundStarted,
    ThreadContext,
    ThreadId,
    ToolFinished,
    ToolStarted,
    Usage,
)

OUTSIDE = (
    "import sys, msgspec, pathlib; from workflow_execute import read_now; "
    "print(msgspec.json.encode(read_now(pathlib.Path(sys.argv[1]), sys.argv[2])).decode())"
)


async def test_another_process_sees_what_a_thread_and_its_child_do(tmp_path: Path) -> None:
    locks = tmp_path / "locks"
    seen: list[ThreadNow | None] = []

    def look(thread_id: ThreadId) -> None:
        seen.append(read_now(locks, thread_id))

    async def below(ctx: ThreadContext) -> int:
        await ctx.journal.note(ToolStarted(key="tool/0/0", name="dig", arguments="{}"))
        done = await anyio.run_process([sys.executable, "-c", OUTSIDE, str(locks), top[0]])
        seen.append(msgspec.json.decode(done.stdout, type=ThreadNow | None))
        return 1

    top: list[ThreadId] = []
    child = in_turn(below)

    async def above(ctx: ThreadContext) -> int:
        top.append(ctx.thread_id)
        await ctx.journal.note(RoundStarted(key="llm/2", round=2, max_rounds=9))
        look(ctx.thread_id)
        await ctx.journal.note(Retrying(key="llm/2", reason="busy", attempt=1, wait_s=3.0))
        look(ctx.thread_id)
        await ctx.journal.note(ModelReplied(key="llm/2", round=2, usage=Usage()))
        await ctx.journal.note(ToolStarted(key="tool/2/0", name="a", arguments="{}", round=2))
        await ctx.journal.note(ToolStarted(key="tool/2/1", name="b", arguments="{}", round=2))
        await ctx.journal.note(ToolFinished(key="tool/2/0", name="a", ok=True, round=2))
        look(ctx.thread_id)
        await run_child(ctx, ChildTask(name="child", workflow=child, input="dig"))
        return 1

    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store, locks=locks, limits=Limits(max_tokens=500, max_steps=7))
        result = await engine.start(in_turn(above), "p", name="top")
        assert result.state == "completed", result.error
        assert await engine.now(result.thread_id) is None
    assert not list(locks.glob("*.now"))
    asking, waiting, running, outside = seen
    assert asking is not None
    assert (asking.role, asking.step, asking.round, asking.max_rounds) == ("role-0", 0, 2, 9)
    assert (asking.workflow, asking.max_tokens, asking.max_steps) == ("top", 500, 7)
    assert [(each.what, each.key) for each in asking.doing] == [("model", "llm/2")]
    assert waiting is not None
    (wait,) = waiting.doing
    assert (wait.what, wait.name, wait.until_ms - wait.since_ms) == ("wait", "busy", 3000)
    assert running is not None
    assert [(each.what, each.name) for each in running.doing] == [("tool", "b")]
    assert outside is not None
    assert outside.thread == result.thread_id
    (inside,) = outside.children
    assert [(each.what, each.name) for each in inside.doing] == [("tool", "dig")]


async def test_what_a_dead_owner_left_says_nothing(tmp_path: Path) -> None:
    script = (
        "import sys, os, pathlib, anyio\n"
        "from workflow_cas import open_store\n"
        "from workflow_execute import Engine\n"
        "from workflow_execute.testing import in_turn\n"
        "async def die(ctx):\n"
        "    print(ctx.thread_id, flush=True); os.kill(os.getpid(), 9)\n"
        "async def main():\n"
        "    folder = pathlib.Path(sys.argv[1])\n"
        "    async with open_store(folder / 'store.sqlite3') as store:\n"
        "        await Engine(store, locks=folder / 'locks').start(in_turn(die), 'p')\n"
        "anyio.run(main)\n"
    )
    done = subprocess.run(  # noqa: ASYNC221 - nothing else runs here
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    thread_id = ThreadId(done.stdout.strip())
    assert (tmp_path / "locks" / f"{thread_id}.now").exists(), done.stderr

    assert read_now(tmp_path / "locks", thread_id) is None


async def test_without_locks_there_is_nothing_to_see() -> None:
    engine = Engine(MemoryStore())
    seen: list[ThreadNow | None] = []

    async def look(ctx: ThreadContext) -> int:
        seen.append(await engine.now(ctx.thread_id))
        return 1

    await engine.start(in_turn(look), "p")
    assert seen == [None]


async def test_a_place_that_can_not_be_written_does_not_stop_the_thread(tmp_path: Path) -> None:
    locks = tmp_path / "locks"

    async def take_away(ctx: ThreadContext) -> int:
        (locks / f"{ctx.thread_id}.now").unlink()
        await ctx.journal.note(ToolStarted(key="tool/0/0", name="a", arguments="{}"))
        assert read_now(locks, ctx.thread_id) is None
        return 1

    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store, locks=locks)
        assert (await engine.start(in_turn(take_away), "p")).state == "completed"
