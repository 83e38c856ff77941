from __future__ import annotations

import asyncio  # noqa: TID251 - its own cancellation gets through every shield of anyio
import os
import sqlite3
import stat
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from workflow_cas import (
    Durability,
    ObjectMissing,
    RefConflict,
    RefMove,
    StoreCorrupt,
    Stored,
    StoreError,
    StoreFormat,
    StoreReadOnly,
    content,
    node,
    open_store,
)
from workflow_cas.testing import raised
from workflow_protocol import Hash

ONE, TWO = content("1"), content("2")


async def test_a_store_outlives_its_closing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with open_store(path) as store:
        await store.commit([ONE], [RefMove("head", None, ONE.hash)])
    async with open_store(path) as store:
        assert store.path == path
        assert await store.refs() == {"head": ONE.hash}
        assert await store.get(ONE.hash) == ONE


async def test_a_path_may_be_text_and_a_store_in_memory_is_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async with open_store("sub/store.sqlite3") as store:
        await store.commit([content("kept")])
    async with open_store(tmp_path / "sub" / "store.sqlite3") as store:
        assert (await store.get(content("kept").hash)).text() == "kept"
    for path in (":memory:", Path(":memory:")):
        with pytest.raises(StoreError, match="is a MemoryStore"):
            async with open_store(path):
                pass
    assert os.listdir(tmp_path) == ["sub"]


async def test_a_new_store_makes_its_directory_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep?#% é" / "store.db"
    async with open_store(path) as store:
        await store.commit([ONE])
        assert {file.name for file in path.parent.iterdir()} == {
            "store.db",
            "store.db-shm",
            "store.db-wal",
        }
        for file in path.parent.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [file.name for file in path.parent.iterdir()] == ["store.db"]


async def test_the_mode_of_an_existing_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    path.touch(0o640)
    path.chmod(0o640)
    async with open_store(path) as store:
        await store.commit([ONE])
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


async def test_a_symbolic_link_leads_to_the_same_store(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "real" / "store.db")
    async with open_store(link) as one, open_store(tmp_path / "real" / "store.db") as other:
        await one.commit([ONE])
        assert await other.get(ONE.hash) == ONE


@pytest.mark.parametrize(("durability", "level"), [("full", 2), ("normal", 1)])
async def test_durability_is_what_sqlite_is_told(
    tmp_path: Path, durability: Durability, level: int
) -> None:
    """Only a loss of power would show the difference from outside."""
    async with open_store(tmp_path / "store.db", durability=durability) as store:
        with store._connections.writer() as connection:  # pyright: ignore[reportPrivateUsage]
            assert connection.execute("PRAGMA synchronous").fetchone() == (level,)


async def test_an_error_inside_the_context_comes_out_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="mine"):
        async with open_store(tmp_path / "store.db"):
            raise KeyError("mine")


async def test_a_closed_store_says_that_it_is_closed(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.db") as store:
        await store.commit([ONE])
    for attempt in (store.get(ONE.hash), store.commit([TWO]), store.verify(), store.refs()):
        assert "closed" in str(await raised(StoreError, attempt))


async def test_closing_writes_what_waits_behind_a_commit_and_refuses_what_comes_later(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    with anyio.fail_after(10):
        async with open_store(path) as store, anyio.create_task_group() as tasks:
            await store.commit([])
            with WriteLock(path):
                tasks.start_soon(store.commit, [ONE])
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(store.commit, [TWO])
                await anyio.wait_all_tasks_blocked()
                tasks.start_soon(store.close)
                await anyio.wait_all_tasks_blocked()
                assert "closed" in str(await raised(StoreError, store.commit([content("3")])))
    async with open_store(path) as store:
        assert await store.get_many([ONE.hash, TWO.hash]) == [ONE, TWO]


async def test_a_store_opened_to_be_read_refuses_to_write(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with open_store(path) as store:
        await store.commit([ONE, TWO], [RefMove("head", None, ONE.hash)])
    before = path.read_bytes()
    async with open_store(path, read_only=True) as store:
        assert await store.get(ONE.hash) == ONE
        assert (await store.verify()).ok
        assert (await store.collect_garbage(keep_newer_than_s=0, dry_run=True)).removed == (
            TWO.hash,
        )
        await raised(StoreReadOnly, store.commit([content("3")]))
        await raised(StoreReadOnly, store.collect_garbage(keep_newer_than_s=0))
    assert path.read_bytes() == before


async def test_a_store_to_be_read_follows_one_that_writes(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with anyio.fail_after(5):
        async with (
            open_store(path) as writer,
            open_store(path, read_only=True) as reader,
            reader.watch() as changes,
        ):
            await writer.commit([ONE], [RefMove("head", None, ONE.hash)])
            assert await anext(changes) == RefMove("head", None, ONE.hash)
            assert await reader.get(ONE.hash) == ONE


async def test_reading_a_file_that_is_not_there_makes_none(tmp_path: Path) -> None:
    path = tmp_path / "none" / "store.db"
    with pytest.raises(StoreError, match=r"no such file") as caught:
        async with open_store(path, read_only=True):
            pass
    assert caught.value.path == path
    assert not path.parent.exists()


@pytest.mark.parametrize("size", [50, 5000])
@pytest.mark.parametrize("read_only", [False, True])
async def test_a_file_that_is_no_database_is_refused_and_left_alone(
    tmp_path: Path, size: int, *, read_only: bool
) -> None:
    path = tmp_path / "store.db"
    path.write_bytes(b"some notes " * size)
    with pytest.raises(StoreCorrupt, match="not a database"):
        async with open_store(path, read_only=read_only):
            pass
    assert path.read_bytes() == b"some notes " * size


async def test_the_database_of_another_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE ref (theirs)")
    before = path.read_bytes()
    with pytest.raises(StoreFormat, match="another program"):
        async with open_store(path):
            pass
    assert path.read_bytes() == before


@pytest.mark.parametrize(("found", "advice"), [("1", "version that wrote it"), ("9", "upgrade")])
async def test_another_format_is_refused(tmp_path: Path, found: str, advice: str) -> None:
    path = tmp_path / "store.db"
    async with open_store(path):
        pass
    edit(path, f"UPDATE meta SET value = '{found}' WHERE key = 'format'")
    for read_only in (False, True):
        with pytest.raises(StoreFormat, match=rf"format {found} .* reads 3; .*{advice}"):
            async with open_store(path, read_only=read_only):
                pass


async def test_text_is_kept_deflated_as_sqlar_does_and_what_is_not_shorter_as_it_is(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    text, noise, short = content("text " * 400), content(os.urandom(4000)), content("short")
    async with open_store(path) as store:
        await store.commit([text, noise, short])
        assert await store.get_many([text.hash, noise.hash, short.hash]) == [text, noise, short]
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT size, data FROM object ORDER BY id").fetchall()
    assert [size for size, _ in rows] == [2000, 4000, 5]
    assert (zlib.decompress(rows[0][1]), rows[1][1], rows[2][1]) == (
        text.data,
        noise.data,
        b"short",
    )
    assert len(rows[0][1]) < 100


async def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    """What a process leaves that dies between making the file and filling it."""
    path = tmp_path / "store.db"
    path.touch()
    async with open_store(path) as store:
        await store.commit([ONE])
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreFormat):
        async with open_store(tmp_path / "empty.db", read_only=True):
            pass


async def test_a_directory_in_place_of_the_file_is_a_store_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        async with open_store(tmp_path):
            pass
    (tmp_path / "file").touch()
    with pytest.raises(StoreError):
        async with open_store(tmp_path / "file" / "store.db"):
            pass


async def test_commits_that_wait_are_written_in_one_transaction(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    objects = [content(f"{number}") for number in range(50)]
    async with open_store(path) as store, anyio.create_task_group() as tasks:
        with WriteLock(path):
            for stored in objects:
                tasks.start_soon(store.commit, [stored])
            await anyio.wait_all_tasks_blocked()
            before = transactions(path)
        await store.commit([])
        assert transactions(path) - before <= 3  # the first, all others, the empty one
        assert await store.get_many([stored.hash for stored in objects]) == objects


async def test_a_conflict_leaves_the_commits_beside_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    refused: list[str] = []

    async with open_store(path) as store:

        async def commit(name: str, old: str | None) -> None:
            stored = content(name)
            expected = ONE.hash if old else None
            try:
                await store.commit([stored], [RefMove(name, expected, stored.hash)])
            except RefConflict as error:
                refused.append(error.name)

        async with anyio.create_task_group() as tasks:
            with WriteLock(path):
                for number in range(20):
                    tasks.start_soon(commit, f"{number:02}", "wrong" if number % 3 == 1 else None)
                await anyio.wait_all_tasks_blocked()
        wrong = [f"{number:02}" for number in range(20) if number % 3 == 1]
        assert sorted(refused) == wrong
        assert list(await store.refs()) == [f"{n:02}" for n in range(20) if n % 3 != 1]
        for name in wrong:
            await raised(ObjectMissing, store.get(content(name).hash))


async def test_a_commit_that_makes_no_sense_leaves_those_beside_it_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    broken = Stored(hash=Hash("zz"), kind="content", data=b"", refs=())
    errors: list[StoreError] = []

    async with open_store(path) as store:

        async def commit() -> None:
            errors.append(await raised(StoreError, store.commit([content("3"), broken])))

        async with anyio.create_task_group() as tasks:
            with WriteLock(path):
                for each in (ONE, TWO):
                    tasks.start_soon(store.commit, [each])
                    tasks.start_soon(commit)
                await anyio.wait_all_tasks_blocked()
        assert await store.get_many([ONE.hash, TWO.hash]) == [ONE, TWO]
        await raised(ObjectMissing, store.get(content("3").hash))
    assert ["nothing was written" in str(each) for each in errors] == [True, True]


async def test_reading_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    async with open_store(path) as store:
        await store.commit([ONE], [RefMove("head", None, ONE.hash)])
        with WriteLock(path), anyio.fail_after(2):
            assert await store.get(ONE.hash) == ONE
            assert await store.refs() == {"head": ONE.hash}
            assert (await store.verify()).ok


async def test_a_cancelled_commit_is_whole_or_absent_and_hurts_no_other(tmp_path: Path) -> None:
    """The first is being written when it is cancelled; the others wait their turn."""
    path = tmp_path / "store.db"
    texts = [content(f"{number}") for number in range(12)]
    scopes = [anyio.CancelScope() for _ in texts]
    ended: list[int] = []

    async with open_store(path) as store:

        async def commit(number: int) -> None:
            state = node("state", number, [texts[number].hash])
            with scopes[number]:
                await store.commit(
                    [texts[number], state], [RefMove(f"{number:02}", None, state.hash)]
                )
                ended.append(number)

        async with anyio.create_task_group() as tasks:
            with WriteLock(path):
                tasks.start_soon(commit, 0)
                await anyio.wait_all_tasks_blocked()  # it is handed to the thread that writes
                for number in range(1, len(texts)):
                    tasks.start_soon(commit, number)
                await anyio.wait_all_tasks_blocked()
                for number in (0, 3, 4, 11):
                    scopes[number].cancel()
                await anyio.lowlevel.checkpoint()
        written = [number for number in range(len(texts)) if number not in {3, 4, 11}]
        assert list(await store.refs()) == [f"{number:02}" for number in written]
        assert [0, *sorted(ended)] == written  # the first is cancelled, but carried through
        for number in (3, 4, 11):
            await raised(ObjectMissing, store.get(texts[number].hash))
        assert (await store.verify()).ok


async def test_a_commit_that_has_begun_is_waited_for_however_often_it_is_cancelled(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    async with open_store(path) as store:
        committing = asyncio.ensure_future(store.commit([ONE], [RefMove("head", None, ONE.hash)]))
        with WriteLock(path):
            await anyio.sleep(0.2)  # its thread has begun by now
            for _ in range(3):
                committing.cancel()
                await anyio.wait_all_tasks_blocked()
            assert not committing.done()
        with pytest.raises(asyncio.CancelledError):
            await committing
        assert await store.refs() == {"head": ONE.hash}


async def test_a_commit_cancelled_at_any_moment_is_whole_or_absent(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.db", durability="normal") as store:
        seen: set[bool] = set()
        for number in range(120):
            text = content(f"{number}")
            state = node("state", number, [text.hash])
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(store.commit, [text, state], [RefMove("r", None, state.hash)])
                tasks.start_soon(store.commit, [content(f"other {number}")])
                for _ in range(number % 12):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            there = await store.ref("r") == state.hash
            seen.add(there)
            if there:
                await store.commit([], [RefMove("r", state.hash, None)])
            else:
                await raised(ObjectMissing, store.get(text.hash))
                await raised(ObjectMissing, store.get(state.hash))
        assert seen == {True, False}
        assert (await store.verify()).ok


async def test_what_was_collected_before_it_was_referred_to_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    state = node("state", None, [ONE.hash])
    move = RefMove("head", None, state.hash)
    async with open_store(path) as mine, open_store(path) as other:
        await mine.commit([ONE])
        assert (await other.collect_garbage(keep_newer_than_s=0)).removed == (ONE.hash,)
        assert (await raised(ObjectMissing, mine.commit([state], [move]))).hash == ONE.hash
        await mine.commit([ONE, state], [move])
        assert (await other.collect_garbage(keep_newer_than_s=0)).removed == ()


async def test_garbage_collection_beside_writers_leaves_nothing_dangling(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    collections = 0
    done = anyio.Event()

    async with open_store(path, durability="normal") as mine, open_store(path) as other:

        async def write(name: str) -> None:
            head = None
            number = 0
            while collections < 4:
                number += 1
                text = content(f"{name} {number % 7}")
                state = node("state", [name, number], [text.hash, *([head] if head else [])])
                await mine.commit([text, content(f"garbage {name} {number}")])
                while True:
                    try:
                        await mine.commit([state], [RefMove(name, head, state.hash)])
                        break
                    except ObjectMissing:
                        await mine.commit([text])
                head = state.hash

        async def collect() -> None:
            nonlocal collections
            while not done.is_set():
                report = await other.collect_garbage(keep_newer_than_s=0)
                collections += bool(report.removed)

        with anyio.fail_after(50):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(collect)
                async with anyio.create_task_group() as writers:
                    for number in range(4):
                        writers.start_soon(write, f"{number}")
                done.set()
        report = await mine.verify()
        assert (report.ok, report.refs) == (True, 4)


async def test_a_cancelled_collection_removed_everything_or_nothing(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.db", durability="normal") as store:
        chain = [ONE]
        for number in range(3000):
            chain.append(node("state", number, [chain[-1].hash]))
        garbage = [content(f"garbage {number}") for number in range(3000)]
        await store.commit([*chain, *garbage], [RefMove("head", None, chain[-1].hash)])
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: store.collect_garbage(keep_newer_than_s=0))
            tasks.start_soon(store.verify)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        report = await store.verify()
        assert (report.ok, report.objects) in {(True, 6001), (True, 3001)}
        assert (await store.collect_garbage(keep_newer_than_s=0)).kept == 3001


async def test_an_error_beside_a_watcher_comes_out_as_it_is(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.db") as store:
        with pytest.raises(OSError, match="mine"):
            async with store.watch():
                raise OSError("mine")


def edit(path: Path, statement: str, parameters: Sequence[object] = ()) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, parameters)


class WriteLock:
    """Hold the lock of the file as another program would, so that what writes has to wait."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)

    def __enter__(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, *_: object) -> None:
        self.connection.execute("ROLLBACK")
        self.connection.close()


def transactions(path: Path) -> int:
    """How many the -wal file holds: frames that say how long the database is after them."""
    wal = Path(f"{path}-wal").read_bytes()
    page_bytes = int.from_bytes(wal[8:12])
    frames = range(32, len(wal), 24 + page_bytes)
    return sum(1 for frame in frames if int.from_bytes(wal[frame + 4 : frame + 8]))
