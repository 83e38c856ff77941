"""Faults made for real: killed processes, foreign locks, full and read-only disks."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import anyio
import anyio.abc
import pytest

from workflow_cas import (
    ObjectMissing,
    RefMove,
    Store,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
    content,
    node,
    open_store,
)
from workflow_cas.testing import raised
from workflow_protocol import Hash

ONE, TWO = content("1"), content("2")

needs_mounts = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0 or shutil.which("mount") is None,
    reason="mounting a file system takes root on Linux",
)


@pytest.mark.slow
async def test_whatever_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    """Two processes commit to one file and are killed at some moment, again and again."""
    path = tmp_path / "store.db"
    rnd = random.Random(20)
    names = ("thread/a", "thread/b")
    acknowledged: dict[str, dict[int, str]] = {name: {} for name in names}
    for _ in range(6):
        async with (
            child("commit_forever", path, names[0]) as one,
            child("commit_forever", path, names[1]) as other,
        ):
            both = list(zip(names, (one, other), strict=True))
            for _, committer in both:
                assert await committer.line() == "ready"
            for name, committer in (both[1], both[1], *[both[0]] * rnd.randrange(2, 40)):
                note(acknowledged[name], await committer.line())
            for name, committer in both:
                committer.process.kill()
                while line := await committer.line():
                    note(acknowledged[name], line)
                await committer.process.wait()
        async with open_store(path) as store:
            assert (await store.verify()).ok
            for name in names:
                chain = await steps(store, await store.ref(name))
                assert sorted(chain) == list(range(len(chain)))
                assert acknowledged[name].items() <= chain.items()
                assert len(chain) - len(acknowledged[name]) <= 8  # one a kill had no time to say
    assert all(len(found) > 8 for found in acknowledged.values())


async def test_of_two_processes_that_move_a_ref_exactly_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with child("count", path, 150) as one, child("count", path, 150) as other:
        for counter in (one, other):
            assert await counter.line() == "ready"
        for counter in (one, other):
            await counter.go()
        conflicts = [int(await counter.line()) for counter in (one, other)]
    assert sum(conflicts) > 0, "they never met"
    async with open_store(path) as store:
        assert len(await steps(store, await store.ref("count"))) == 300
        assert (await store.verify()).objects == 300


async def test_processes_that_open_a_new_store_at_once_all_get_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with (
        child("open_once", path) as a,
        child("open_once", path) as b,
        child("open_once", path) as c,
    ):
        for opener in (a, b, c):
            assert await opener.line() == "ready"
        for opener in (a, b, c):
            await opener.go()
        assert [await opener.line() for opener in (a, b, c)] == ["done"] * 3
    async with open_store(path) as store:
        assert (await store.verify()).objects == 1


async def test_a_lock_that_another_process_keeps_makes_the_store_busy(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with open_store(path, busy_timeout_s=0.1) as store:
        await store.commit([ONE])
        async with child("lock", path) as locker:
            assert await locker.line() == "locked"
            async with anyio.create_task_group() as tasks:
                for stored in (TWO, content("3"), content("4")):
                    tasks.start_soon(raised, StoreBusy, store.commit([stored]))
            await raised(StoreBusy, store.collect_garbage(keep_newer_than_s=0))
            assert await store.get(ONE.hash) == ONE
            await raised(ObjectMissing, store.get(TWO.hash))
            await locker.go()
            assert await locker.line() == "free"
        await store.commit([TWO])
        assert await store.get(TWO.hash) == TWO


async def test_a_store_that_is_locked_while_it_is_opened_is_busy(tmp_path: Path) -> None:
    new, old = tmp_path / "new.db", tmp_path / "old.db"
    async with open_store(old):
        pass
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    for path in (new, old):
        async with child("lock", path) as locker:
            assert await locker.line() == "locked"
            with pytest.raises(StoreBusy):
                async with open_store(path, busy_timeout_s=0.1):
                    pass
    for path in (new, old):
        async with open_store(path) as store:
            await store.commit([ONE])
            assert (tmp_path / f"{path.name}-wal").stat().st_size > 0


async def test_a_commit_waits_while_another_process_keeps_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with anyio.fail_after(10):
        async with open_store(path) as store, child("lock", path) as locker:
            assert await locker.line() == "locked"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.commit, [ONE])
                await anyio.wait_all_tasks_blocked()
                await raised(ObjectMissing, store.get(ONE.hash))
                await locker.go()
            assert await store.get(ONE.hash) == ONE


async def test_a_watcher_sees_what_another_process_does(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with open_store(path) as store, store.watch("control/") as changes:
        async with child("move", path, "control/cancel", "please") as mover:
            assert await mover.process.wait() == 0
        with anyio.fail_after(2):  # it looks four times a second; the machine may be busy
            change = await anext(changes)
    assert change == RefMove("control/cancel", None, content("please").hash)


@needs_mounts
async def test_a_full_disk_loses_nothing_and_the_store_goes_on_once_there_is_room(
    tmp_path: Path,
) -> None:
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=2m", "tmpfs") as folder:
        filler = folder / "filler"
        filler.write_bytes(bytes(700_000))
        async with open_store(folder / "store.db") as store:
            written: list[Hash] = []
            for number in range(1000):
                text = content(f"{number} " + "x" * 5000)
                state = node("state", number, [text.hash, *written[-1:]])
                old = written[-1] if written else None
                try:
                    await store.commit([text, state], [RefMove("head", old, state.hash)])
                except StoreFull as error:
                    assert "full" in str(error)  # noqa: PT017
                    break
                written.append(state.hash)
            else:
                pytest.fail("the disk never became full")
            assert len(written) > 20
            await assert_whole(store, written)
            filler.unlink()
            await store.commit([text, state], [RefMove("head", written[-1], state.hash)])
            written.append(state.hash)
            await assert_whole(store, written)
        async with open_store(folder / "store.db") as store:
            await assert_whole(store, written)


@needs_mounts
async def test_one_commit_too_large_for_the_disk_fails_alone(tmp_path: Path) -> None:
    with mounted(tmp_path / "small", "-t", "tmpfs", "-o", "size=2m", "tmpfs") as folder:
        async with open_store(folder / "store.db") as store:
            small = [content(f"{number}") for number in range(6)]
            async with anyio.create_task_group() as tasks:
                for stored in small[:3]:
                    tasks.start_soon(store.commit, [stored])
                tasks.start_soon(raised, StoreFull, store.commit([content(os.urandom(4_000_000))]))
                for stored in small[3:]:
                    tasks.start_soon(store.commit, [stored])
            assert await store.get_many([stored.hash for stored in small]) == small
            report = await store.verify()
            assert (report.ok, report.objects) == (True, 6)


@needs_mounts
async def test_a_store_that_does_not_fit_on_the_disk_is_not_made(tmp_path: Path) -> None:
    how = ("-t", "tmpfs", "-o", "size=16k", "tmpfs")
    with mounted(tmp_path / "tiny", *how) as folder, pytest.raises(StoreFull):
        async with open_store(folder / "store.db"):
            pass


async def test_a_limit_on_the_size_of_files_shows_as_a_full_store(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with child("fill", path, 500_000) as filler:
        said = [line async for line in filler.lines()]
    *written, error = said
    assert error == "StoreFull"
    assert len(written) > 10
    async with open_store(path) as store:
        assert len(await store.get_many([Hash(hash) for hash in written])) == len(written)
        assert (await store.verify()).ok


@needs_mounts
async def test_a_read_only_disk_can_be_read_and_says_that_it_can_not_be_written(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    async with open_store(folder / "store.db") as store:
        await store.commit([ONE], [RefMove("head", None, ONE.hash)])
    with mounted_read_only(folder):
        for path in (folder / "store.db", folder / "new.db", folder / "new" / "store.db"):
            with pytest.raises(StoreReadOnly):
                async with open_store(path):
                    pass
        async with open_store(folder / "store.db", read_only=True) as store:
            assert await store.refs() == {"head": ONE.hash}
            assert await store.get(ONE.hash) == ONE
            assert (await store.verify()).ok
            await raised(StoreReadOnly, store.commit([TWO]))


@needs_mounts
async def test_what_was_not_closed_before_the_disk_became_read_only_is_not_misread(
    tmp_path: Path,
) -> None:
    """The latest commits are in the -wal file, which needs a writable directory to be read."""
    folder, path = tmp_path / "folder", tmp_path / "folder" / "store.db"
    folder.mkdir()
    async with child("commit_forever", path, "head") as committer:
        assert await committer.line() == "ready"
        last = [await committer.line() for _ in range(5)][-1]
        committer.process.kill()
        await committer.process.wait()
    (folder / "store.db-shm").unlink()
    with mounted_read_only(folder), pytest.raises(StoreReadOnly, match="not closed"):
        async with open_store(path, read_only=True):
            pass
    async with open_store(path, read_only=True) as store:
        assert Hash(last.split()[1]) in (await steps(store, await store.ref("head"))).values()


class Child:
    """A running `child.py`."""

    def __init__(self, process: anyio.abc.Process) -> None:
        self.process = process
        self._heard = b""

    async def line(self) -> str:
        """The next whole line that it says; empty once it ended, even within a line."""
        assert self.process.stdout is not None
        while b"\n" not in self._heard:
            try:
                self._heard += await self.process.stdout.receive()
            except anyio.EndOfStream:
                return ""
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()

    async def lines(self) -> AsyncGenerator[str]:
        while line := await self.line():
            yield line

    async def go(self) -> None:
        """Let it go on."""
        assert self.process.stdin is not None
        await self.process.stdin.send(b"\n")


@asynccontextmanager
async def child(command: str, *arguments: object) -> AsyncGenerator[Child]:
    """Run `child.py`, and kill it at the end if it is still there."""
    words = [sys.executable, str(Path(__file__).with_name("child.py")), command]
    async with await anyio.open_process([*words, *map(str, arguments)], stderr=None) as process:
        try:
            with anyio.fail_after(50):
                yield Child(process)
        finally:
            if process.returncode is None:
                process.kill()


@contextmanager
def mounted(folder: Path, *how: str) -> Generator[Path]:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", *how, str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@contextmanager
def mounted_read_only(folder: Path) -> Generator[None]:
    with mounted(folder, "--bind", str(folder)):
        subprocess.run(["mount", "-o", "remount,ro,bind", str(folder)], check=True)
        yield


def note(acknowledged: dict[int, str], line: str) -> None:
    number, hash = line.split()
    acknowledged[int(number)] = hash


async def steps(store: Store, head: Hash | None) -> dict[int, str]:
    """The steps of a thread by number."""
    found: dict[int, str] = {}
    while head is not None:
        state = (await store.get(head)).as_node()
        found[state.read(int)] = head
        parents = [ref for ref in state.refs if (await store.get(ref)).kind == "node"]
        head = parents[0] if parents else None
    return found


async def assert_whole(store: Store, written: list[Hash]) -> None:
    assert (await store.verify()).problems == ()
    assert await store.ref("head") == written[-1]
    assert len(await store.get_many(written)) == len(written)
