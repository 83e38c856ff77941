"""Versions of files, killed at each commit: each record has the files as they were then."""

import json
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from workflow_cas import Entry, RefMove, Store, Stored, open_store
from workflow_execute import (
    Engine,
    Workflow,
    list_threads,
    read_attempts,
    read_thread,
)
from workflow_execute.testing import in_turn
from workflow_protocol import Effect, Hash, OutcomeUnknown, ThreadContext, ThreadId
from workflow_workspace import read_content, read_files

Files = dict[str, str]


class Deadly:
    """Kills this process at one of its commits, before or after it."""

    def __init__(self, inner: Store, at: int, *, after: bool) -> None:
        self._inner, self._left, self._after = inner, at, after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        self._left -= 1
        if self._left == 0 and not self._after:
            os.kill(os.getpid(), signal.SIGKILL)
        await self._inner.commit(objects, moves, entries)
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def files_in(folder: Path) -> Files:
    return {
        str(path.relative_to(folder)): path.read_text("utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


def writing(log: Path) -> Workflow:
    """Three roles that write by effects of both kinds; the log has the files after each of them."""

    async def act(ctx: ThreadContext, key: str, effect: Effect) -> None:
        folder = ctx.start.workspace
        name = f"{len(ctx.steps)}/{key}.txt"

        async def perform() -> str:
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(name, encoding="utf-8")
            with (folder / "all.txt").open("a" if effect is Effect.UNSAFE else "w") as file:
                file.write(f"{name}\n")
            with log.open("a", encoding="utf-8") as file:
                file.write(json.dumps([len(ctx.steps), key, files_in(folder)]) + "\n")
            return name

        with suppress(OutcomeUnknown):  # it was killed just then, and does not do it again
            await ctx.journal.run(key, perform, type=str, effect=effect)

    async def turn(ctx: ThreadContext) -> int:
        await act(ctx, "unsafe", Effect.UNSAFE)
        await act(ctx, "repeatable", Effect.REPEATABLE)
        await act(ctx, "again", Effect.UNSAFE)
        return len(ctx.steps)

    return in_turn(turn, turn, turn)


async def contents(store: Store, version: Hash) -> Files:
    entries = await read_files(store, version)
    return {
        path: (await read_content(store, entry)).decode()
        for path, entry in entries.items()
        if entry.kind == "file"
    }


async def go(folder: Path, at: int = 0, *, after: bool = False) -> ThreadId:
    flow = writing(folder / "log")
    async with open_store(folder / "store", durability="normal") as store:
        used = cast("Store", Deadly(store, at, after=after)) if at else store
        engine = Engine(used, workspaces=folder / "forks")
        known = await list_threads(store)
        if known and (await read_thread(store, known[0])).status.state == "completed":
            return known[0]
        if known:
            done = await engine.resume(flow, known[0])
        else:
            done = await engine.start(flow, "p", workspace=folder / "work")
        assert done.state == "completed", (at, done.summary)
        return done.thread_id


async def check(folder: Path, thread_id: ThreadId) -> int:
    """Compare each version with the files at its record by the log; how many effects had one."""
    lines = map(json.loads, (folder / "log").read_text("utf-8").splitlines())
    was = [(step, key, cast("Files", files)) for step, key, files in lines]
    compared = 0
    async with open_store(folder / "store", durability="normal") as store:
        engine = Engine(store, workspaces=folder / "forks")
        thread = await read_thread(store, thread_id)
        for number, step in enumerate(thread.steps):
            for entry in (each for part in await read_attempts(store, step.turn) for each in part):
                if entry.record.kind == "result" and entry.files is not None:
                    (*_, then) = [
                        files for at, key, files in was if (at, key) == (number, entry.record.key)
                    ]
                    assert await contents(store, entry.files) == then
                    compared += 1
            at_end = [files for at, _, files in was if at <= number][-1]
            assert step.files is not None
            assert await contents(store, step.files) == at_end
            fork = await read_thread(store, await engine.fork(thread_id, at_step=number + 1))
            assert files_in(fork.workspace) == at_end
        assert await engine.changed_files(thread_id) == []
        assert (await engine.replay(writing(folder / "log"), thread_id)).steps == 3
    unsafe = [(step, key) for step, key, _ in was if key != "repeatable"]
    assert len(unsafe) == len(set(unsafe)), "none is done twice"
    return compared


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.skipif(sys.platform == "win32", reason="it has no SIGKILL")
def test_after_a_kill_at_any_commit_each_version_has_the_files_of_its_record(
    tmp_path: Path, after: bool
) -> None:
    for at in range(1, 200):
        folder = tmp_path / f"{at}"
        (folder / "work").mkdir(parents=True)
        (folder / "work" / "begun.txt").write_text("begun", encoding="utf-8")
        pid = os.fork()
        if pid == 0:
            anyio.run(lambda: go(folder, at, after=after))  # noqa: B023 - it is run at once
            os._exit(0)
        _, status = os.waitpid(pid, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            assert at > 15
            return
        assert anyio.run(check, folder, anyio.run(go, folder)) >= 8, (
            "all nine but the one that was cut off"
        )
    raise AssertionError("the run has no end")
