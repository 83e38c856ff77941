"""Disks that are full, locked, damaged or read-only: a clear error, nothing committed is lost."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import pytest

from workflow_cas import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    open_store,
)
from workflow_execute import Engine, ThreadNotFound, Workflow, find_thread, read_thread
from workflow_execute.testing import in_turn
from workflow_protocol import Effect, ThreadContext

ROUNDS = 60


def growing(ledger: list[int], *, rounds: int = ROUNDS) -> Workflow:
    """Two roles that each charge and read 4 kB a round, in bytes that don't compress."""

    async def turn(ctx: ThreadContext) -> int:
        for number in range(rounds):

            async def read() -> str:
                return os.urandom(2048).hex()

            async def charge(n: int = len(ctx.steps) * rounds + number) -> int:
                ledger.append(n)
                return n

            await ctx.journal.run(f"read/{number}", read, type=str)
            await ctx.journal.run(f"charge/{number}", charge, type=int, effect=Effect.UNSAFE)
        return rounds

    return in_turn(turn, turn)


@pytest.fixture
def small_disk(tmp_path: Path) -> Generator[Path]:
    """A disk of 300 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a small disk can be mounted as root on Linux only")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


async def test_a_full_disk_stops_the_thread_which_goes_on_once_there_is_room(
    small_disk: Path,
) -> None:
    ledger: list[int] = []
    async with open_store(small_disk / "store.sqlite3") as store:
        with pytest.raises(StoreFull):
            await Engine(store).start(growing(ledger), "p")
    before = list(ledger)
    assert 0 < len(before) < 2 * ROUNDS
    subprocess.run(["mount", "-o", "remount,size=20m", small_disk], check=True)  # noqa: ASYNC221

    async with open_store(small_disk / "store.sqlite3") as store:
        thread_id = await find_thread(store, "latest")
        done = await Engine(store).resume(growing(ledger), thread_id)
        report = await store.verify()

    # A charge whose result found no room is of unknown outcome, which this role doesn't handle.
    assert report.ok
    assert len(ledger) == len(set(ledger))
    assert ledger[: len(before)] == before
    assert done.state == "completed" or "was never recorded" in done.summary


async def test_a_store_that_is_only_read_can_be_shown_and_replayed_but_not_run(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.sqlite3"
    async with open_store(path) as store:
        done = await Engine(store).start(growing([], rounds=3), "p")
    before = path.read_bytes()

    async with open_store(path, read_only=True) as store:
        engine = Engine(store)
        assert (await read_thread(store, done.thread_id)).status.state == "completed"
        assert (await engine.replay(growing([], rounds=3), done.thread_id)).steps == 2
        ledger: list[int] = []
        with pytest.raises(StoreReadOnly):
            await engine.start(growing(ledger), "p")
        with pytest.raises(StoreReadOnly):
            await engine.fork(done.thread_id)
    assert ledger == []
    assert path.read_bytes() == before


async def test_a_store_that_another_process_keeps_locked_is_busy_and_loses_nothing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.sqlite3"
    hold = (
        "import sqlite3, sys\n"
        f"c = sqlite3.connect({str(path)!r}, isolation_level=None)\n"
        "c.execute('BEGIN IMMEDIATE'); print('held', flush=True); sys.stdin.readline()\n"
    )
    ledger: list[int] = []
    holder: list[subprocess.Popen[str]] = []

    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            if not holder:
                process = subprocess.Popen(  # noqa: ASYNC220
                    [sys.executable, "-c", hold],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
                assert process.stdout is not None
                process.stdout.readline()
                holder.append(process)
            ledger.append(1)
            return 1

        async def first() -> int:
            return 1

        await ctx.journal.run("first", first, type=int)
        return await ctx.journal.run("second", perform, type=int)

    async with open_store(path, busy_timeout_s=0.3) as store:
        with pytest.raises(StoreBusy):
            await Engine(store).start(in_turn(turn), "p")
        with holder[0]:
            holder[0].communicate("\n")
        done = await Engine(store).resume(in_turn(turn), await find_thread(store, "latest"))
        assert (done.state, ledger) == ("completed", [1, 1])
        assert (await store.verify()).ok


async def test_each_damaged_page_is_a_typed_error_or_does_no_harm(tmp_path: Path) -> None:
    path, damaged = tmp_path / "store.sqlite3", tmp_path / "damaged.sqlite3"
    workflow = growing([], rounds=4)
    async with open_store(path) as store:
        done = await Engine(store).start(workflow, "p")
        fine = await read_thread(store, done.thread_id)
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    pages = path.stat().st_size // size
    told = 0
    for page in range(pages):
        for offset in (0, size // 2, size - 64):
            shutil.copy(path, damaged)
            with damaged.open("r+b") as file:
                file.seek(page * size + offset)
                file.write(b"\xa5" * 64)
            try:
                async with open_store(damaged) as store:
                    assert await read_thread(store, done.thread_id) == fine
                    replay = await Engine(store).replay(workflow, done.thread_id)
                    assert (replay.steps, replay.effects) == (2, 16)
            except (StoreError, ThreadNotFound):  # not found: its refs are gone
                told += 1
    assert pages > 8
    assert told > pages


async def test_damage_in_the_unfinished_turn_is_told_and_nothing_is_repeated(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.sqlite3"
    ledger: list[int] = []

    async def turn(ctx: ThreadContext) -> int:
        async def charge() -> str:
            ledger.append(1)
            return "the receipt that will be damaged"

        await ctx.journal.run("charge", charge, type=str, effect=Effect.UNSAFE)
        raise RuntimeError("stop here")

    async with open_store(path) as store:
        failed = await Engine(store).start(in_turn(turn), "p")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"the receipt that", b"the receipt THAT"))

    async with open_store(path) as store:
        with pytest.raises(StoreCorrupt):
            await Engine(store).resume(in_turn(turn), failed.thread_id)
    assert ledger == [1]
