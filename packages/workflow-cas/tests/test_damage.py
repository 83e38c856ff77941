"""Bytes that changed on disk: what is hit is named, what isn't can still be read."""

from __future__ import annotations

import os
import random
import sqlite3
import tracemalloc
import zlib
from contextlib import closing, suppress
from pathlib import Path

import pytest

from workflow_cas import (
    ObjectMissing,
    RefMove,
    SqliteStore,
    StoreCorrupt,
    Stored,
    StoreError,
    content,
    node,
    open_store,
)
from workflow_cas.testing import raised


async def filled(path: Path, steps: int = 40) -> list[Stored]:
    """A store with one thread; its objects in the order of writing."""
    objects: list[Stored] = []
    async with open_store(path, durability="normal") as store:
        for number in range(steps):
            noise = random.Random(number).randbytes(number * 7 % 400 * 10)
            text = content(f"{number} {noise.hex()}")
            state = node("state", number, [text.hash, *(o.hash for o in objects[-1:])])
            old = objects[-1].hash if objects else None
            await store.commit([text, state], [RefMove("head", old, state.hash)])
            objects += [text, state]
    return objects


async def test_an_object_whose_bytes_changed_is_named_and_mended_by_writing_it_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    objects = await filled(path)
    victim = objects[21]
    data = path.read_bytes()
    assert data.count(victim.data) == 1
    path.write_bytes(data.replace(victim.data, victim.data.replace(b"state", b"stale")))
    async with open_store(path) as store:
        error = await raised(StoreCorrupt, store.get(victim.hash))
        assert (error.hash, victim.hash in str(error)) == (victim.hash, True)
        await raised(StoreCorrupt, store.get_many([objects[0].hash, victim.hash]))
        report = await store.verify()
        assert [(problem.kind, problem.place) for problem in report.problems] == [
            ("damaged", victim.hash)
        ]
        await raised(StoreCorrupt, store.collect_garbage(keep_newer_than_s=0))
        await store.commit([victim])
        assert await store.get(victim.hash) == victim
        assert (await store.verify()).ok


async def test_a_packed_object_whose_bytes_or_size_changed_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    text = content("text " * 10_000)
    for change in (
        "data = substr(data, 1, 20)",
        "data = zeroblob(length(data))",
        "data = x''",
        "size = size - 1",
        "size = -1",
        "size = 'many'",
        "size = length(data)",
    ):
        async with open_store(path) as store:
            await store.commit([text])
            assert await store.get(text.hash) == text
        edit(path, f"UPDATE object SET {change}")
        async with open_store(path) as store:
            error = await raised(StoreCorrupt, store.get(text.hash))
            assert text.hash in str(error) or "a row is not what was written" in str(error)
            problems = (await store.verify()).problems
            assert [(p.kind, p.place) for p in problems] == [("damaged", text.hash)]


async def test_damage_that_inflates_without_end_takes_no_more_memory_than_the_object(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    text = content("text " * 1000)
    async with open_store(path) as store:
        await store.commit([text])
    edit(path, "UPDATE object SET data = ?", zlib.compress(bytes(200_000_000)).hex())
    async with open_store(path) as store:
        tracemalloc.start()
        await raised(StoreCorrupt, store.get(text.hash))
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 2_000_000


async def test_each_object_on_a_ruined_page_is_listed_and_all_others_are_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    objects = await filled(path)
    ruin(path, "object", leaf=7)
    async with open_store(path) as store:
        lost = [stored.hash for stored in objects if not await readable(store, stored)]
        assert 0 < len(lost) < len(objects) / 4
        report = await store.verify()
        listed = {problem.place for problem in report.problems}
        assert set(lost) <= listed
        assert listed - set(lost) <= {"the file", "the objects"}
        assert report.objects == len(objects)
        await raised(StoreCorrupt, store.collect_garbage(keep_newer_than_s=0))
        assert [o.hash for o in objects if not await readable(store, o)] == lost


async def test_objects_whose_names_are_on_a_ruined_page_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    objects = await filled(path, steps=400)
    ruin(path, "name", leaf=3)
    async with open_store(path) as store:
        lost = [stored.hash for stored in objects if not await readable(store, stored)]
        assert 0 < len(lost) < len(objects) / 2
        problems = (await store.verify()).problems
        assert {"the file", "the names"} <= {problem.place for problem in problems}
        nameless = sum(problem.message == "its hash is missing" for problem in problems)
        assert nameless - len(lost) in {0, 1}  # a key between two pages is found, but not listed


async def test_a_ruined_page_of_refs_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    one = content("1")
    async with open_store(path) as store:
        moves = [RefMove(f"thread/{number:05}", None, one.hash) for number in range(600)]
        await store.commit([one], moves)
    ruin(path, "ref", leaf=2)
    async with open_store(path) as store:
        report = await store.verify()
        assert {"the file", "the refs"} <= {problem.place for problem in report.problems}
        assert 300 < report.refs < 600
        assert await store.ref("thread/00000") == one.hash
        await raised(StoreCorrupt, store.refs())


async def test_verification_says_what_is_referred_to_and_gone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    objects = await filled(path, steps=3)
    lost, referrer = objects[2], objects[3]
    head = objects[-1]
    for hash in (lost.hash, head.hash):
        edit(path, "DELETE FROM object WHERE id = (SELECT id FROM name WHERE hash = ?)", hash)
        edit(path, "DELETE FROM name WHERE hash = ?", hash)
    async with open_store(path) as store:
        problems = (await store.verify()).problems
        assert {(problem.kind, problem.place) for problem in problems} == {
            ("dangling", referrer.hash),
            ("dangling", "ref head"),
        }
        error = await raised(StoreCorrupt, store.collect_garbage(keep_newer_than_s=0))
        assert error.hash == head.hash
        await store.commit([lost, head])
        assert (await store.verify()).ok


async def test_a_name_without_its_object_is_reported_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    objects = await filled(path, steps=3)
    lost = objects[2]
    edit(path, "DELETE FROM object WHERE id = (SELECT id FROM name WHERE hash = ?)", lost.hash)
    async with open_store(path) as store:
        await raised(ObjectMissing, store.get(lost.hash))
        (problem,) = (await store.verify()).problems
        assert (problem.kind, problem.place) == ("unreadable", lost.hash)
        await store.commit([lost])
        assert (await store.verify()).ok


async def test_a_file_that_was_cut_is_corrupt_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await filled(path)
    data = path.read_bytes()
    page = 8192
    inside = [
        len(data) - page * number - rest for number in range(4) for rest in (1, 100, page - 1)
    ]
    whole = [len(data) - page * number for number in (1, 2, 5)]
    for size in [*inside, *whole, page, page - 1, page + 1, 4096, 200, 100, 99, 1]:
        path.write_bytes(data[:size])
        for read_only in (False, True):
            with pytest.raises(StoreCorrupt):
                async with open_store(path, read_only=read_only):
                    pass
        assert path.read_bytes() == data[:size]


async def test_a_cut_inside_the_last_page_is_told_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    await filled(path)
    pages = path.stat().st_size // 8192
    os.truncate(path, pages * 8192 - 10)
    with pytest.raises(
        StoreCorrupt, match=f"it has {pages - 1} of {pages} pages and 8182 bytes of another"
    ):
        async with open_store(path):
            pass


async def test_a_cut_file_with_a_log_is_whole_only_where_the_log_has_what_is_missing(
    tmp_path: Path,
) -> None:
    """As a process leaves it that dies while the log is moved into the file."""
    path, log = tmp_path / "store.db", tmp_path / "store.db-wal"
    objects = await filled(path)
    before = path.read_bytes()
    more = [content(random.Random(number).randbytes(9000).hex()) for number in range(9)]
    async with open_store(path) as store:
        await store.commit(more)
        logged = log.read_bytes()
    after = path.read_bytes()
    assert len(after) > len(before) + 3 * 8192

    for size in (len(before), len(before) + 100, len(before) + 2 * 8192, len(after) - 1):
        path.write_bytes(before[:size] + after[len(before) : size])
        log.write_bytes(logged)
        async with open_store(path) as store:
            assert await store.get_many([o.hash for o in objects + more]) == objects + more
            assert (await store.verify()).ok

    cut_log = logged[:-1]  # whose commit is not complete
    for size, kept in ((len(before) - 8192 * 3, logged), (len(before) + 100, cut_log)):
        path.write_bytes(before[:size] + after[len(before) : size])
        log.write_bytes(kept)
        left = path.read_bytes()
        with pytest.raises(StoreCorrupt, match="the end of the file is missing"):
            async with open_store(path):
                pass
        assert (path.read_bytes(), log.read_bytes()) == (left, kept)


@pytest.mark.parametrize("seed", range(12))
async def test_random_damage_never_gives_wrong_bytes_or_another_error(
    tmp_path: Path, seed: int
) -> None:
    """Whatever is overwritten: each object is right or its error is typed, and verify ends."""
    path = tmp_path / "store.db"
    objects = await filled(path, steps=60)
    rnd = random.Random(seed)
    data = bytearray(path.read_bytes())
    for _ in range(rnd.choice([1, 4])):
        size = rnd.choice([1, 16, 512, 4096, 9000])
        start = rnd.randrange(8192, len(data) - size)  # past the header: the file still opens
        data[start : start + size] = rnd.randbytes(size)
    path.write_bytes(data)
    async with open_store(path) as store:
        lost = [stored.hash for stored in objects if not await readable(store, stored)]
        report = await store.verify()
        assert report.ok is False or not lost
        for attempt in (
            store.refs(),
            store.find(objects[0].hash[:6]),
            store.collect_garbage(keep_newer_than_s=0),
        ):
            with suppress(StoreError):
                await attempt
        assert [o.hash for o in objects if not await readable(store, o)] == lost
        with suppress(StoreError):
            await store.commit([content("new"), objects[5]])


async def readable(store: SqliteStore, stored: Stored) -> bool:
    try:
        assert await store.get(stored.hash) == stored
    except StoreError:
        return False
    return True


def ruin(path: Path, table: str, *, leaf: int) -> None:
    """Overwrite one leaf page of a table with garbage."""
    with closing(sqlite3.connect(path)) as connection:
        (page_bytes,) = connection.execute("PRAGMA page_size").fetchone()
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)
        ).fetchone()
    data = bytearray(path.read_bytes())
    page = children(data, root, page_bytes)[leaf]
    start = (page - 1) * page_bytes
    data[start : start + page_bytes] = random.Random(1).randbytes(page_bytes)
    path.write_bytes(data)


def children(data: bytearray, page: int, page_bytes: int) -> list[int]:
    """The pages below an interior page: https://www.sqlite.org/fileformat2.html#b_tree_pages."""
    start = (page - 1) * page_bytes
    assert data[start] in {2, 5}, "an interior page of an index or a table"
    cells = int.from_bytes(data[start + 3 : start + 5])
    pointers = range(start + 12, start + 12 + 2 * cells, 2)
    offsets = [start + int.from_bytes(data[pointer : pointer + 2]) for pointer in pointers]
    found = [int.from_bytes(data[offset : offset + 4]) for offset in offsets]
    return [*found, int.from_bytes(data[start + 8 : start + 12])]


def edit(path: Path, statement: str, *blobs: str) -> None:
    """Change the file behind the store's back; blobs are given in hex."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, [bytes.fromhex(blob) for blob in blobs])
