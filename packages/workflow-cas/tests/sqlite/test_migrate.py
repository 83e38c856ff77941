"""Carrying a file over to the present format."""

from __future__ import annotations

import json
import shutil
import sqlite3
import stat
import sys
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import anyio
import pytest

from workflow_cas import (
    Entry,
    RefMove,
    Store,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFormat,
    content,
    migrate_store,
    node,
    open_store,
)

NAMES = [f"thread/{number:02}/head" for number in range(20)]


async def make_old_store(path: Path) -> None:
    """A file of format 2, which had no entries."""
    async with open_store(path) as store:
        for name in NAMES:
            text = content(f"{name} " * 200)
            state = node("state", name, [text.hash])
            await store.commit([text, state], [RefMove(name, None, state.hash)])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript(
            "DROP TABLE entry; DROP TABLE label; UPDATE meta SET value = '2' WHERE key = 'format'"
        )


def what_is_stored(path: Path) -> list[list[tuple[object, ...]]]:
    with closing(sqlite3.connect(path)) as connection:
        return [
            connection.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()
            for table in ("object", "name", "ref")
        ]


async def entry_each(store: Store) -> Iterable[Entry]:
    return [
        Entry(name, (await store.get(target)).data, ("found",))
        for name, target in (await store.refs()).items()
    ]


def bytes_of(path: Path) -> bytes:
    return path.read_bytes()


@pytest.fixture
async def old(tmp_path: Path) -> Path:
    path = tmp_path / "store.db"
    await make_old_store(path)
    return path


@pytest.mark.parametrize("read_only", [False, True])
async def test_an_older_format_is_refused_with_the_way_to_carry_it_over(
    old: Path, *, read_only: bool
) -> None:
    before = bytes_of(old)
    with pytest.raises(
        StoreFormat, match=r"format 2 .* reads 3; carry it over with `migrate_store`"
    ):
        async with open_store(old, read_only=read_only):
            pass
    assert bytes_of(old) == before


async def test_everything_is_carried_over_and_the_old_file_is_kept_whole(old: Path) -> None:
    before = what_is_stored(old)

    report = await migrate_store(old, entry_each)

    kept = old.with_name("store.db.format-2")
    assert (report.from_format, report.to_format, report.entries) == (2, 3, len(NAMES))
    assert (report.kept, report.problems) == (kept, ())
    assert what_is_stored(old) == what_is_stored(kept) == before
    assert sorted(each.name for each in old.parent.iterdir()) == [old.name, kept.name]
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    async with open_store(old) as store:
        assert [entry.ref for entry in await store.entries(labels=["found"])] == NAMES[::-1]
        assert (await store.verify()).ok
        await store.commit([], [RefMove(NAMES[0], await store.ref(NAMES[0]), None)])
        assert len(await store.entries()) == len(NAMES) - 1
    with pytest.raises(StoreFormat, match="format 2"):
        async with open_store(kept):
            pass


async def test_it_may_be_repeated_and_what_is_carried_over_is_left_alone(old: Path) -> None:
    await migrate_store(old, entry_each)
    async with open_store(old) as store:  # also while it is in use
        await store.commit([content("new")])
        again = await migrate_store(old, entry_each)
    assert (again.from_format, again.to_format, again.entries, again.kept) == (3, 3, 0, None)


async def test_an_old_file_that_is_put_back_can_be_carried_over_again(old: Path) -> None:
    report = await migrate_store(old, entry_each)
    assert report.kept is not None
    shutil.copyfile(report.kept, old)
    assert await migrate_store(old, entry_each) == report


async def test_a_dry_run_does_all_but_the_change(old: Path) -> None:
    before = what_is_stored(old)
    report = await migrate_store(old, entry_each, dry_run=True)
    assert (report.from_format, report.entries, report.kept) == (2, len(NAMES), None)
    assert what_is_stored(old) == before
    assert [each.name for each in old.parent.iterdir()] == [old.name]
    assert (await migrate_store(old, entry_each)).entries == len(NAMES)


async def test_a_store_that_anybody_has_open_is_refused(old: Path) -> None:
    before = what_is_stored(old)
    with closing(sqlite3.connect(old)) as other:
        assert other.execute("SELECT count(*) FROM ref").fetchone() == (len(NAMES),)
        with pytest.raises(StoreBusy, match="another process has it open, so nothing was changed"):
            await migrate_store(old, entry_each, busy_timeout_s=0.05)
    assert what_is_stored(old) == before
    assert (await migrate_store(old, entry_each)).entries == len(NAMES)


async def test_nobody_gets_in_while_it_is_carried_over(old: Path) -> None:
    async def look(store: Store) -> list[Entry]:
        with closing(sqlite3.connect(old, timeout=0)) as other:
            for statement in ("SELECT * FROM ref", "DELETE FROM ref"):
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    other.execute(statement)
        return []

    assert (await migrate_store(old, look)).to_format == 3


async def test_an_error_on_the_way_changes_nothing(old: Path) -> None:
    before = what_is_stored(old)

    async def fail(store: Store) -> list[Entry]:
        raise LookupError("no entries")

    async def about_nothing(store: Store) -> list[Entry]:
        return [Entry("nowhere", b"")]

    with pytest.raises(LookupError):
        await migrate_store(old, fail)
    with pytest.raises(StoreCorrupt, match="so nothing was changed: entry nowhere"):
        await migrate_store(old, about_nothing)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await migrate_store(old, entry_each)
    assert what_is_stored(old) == before
    assert (await migrate_store(old, entry_each)).entries == len(NAMES)


async def test_damage_is_carried_over_and_told(old: Path) -> None:
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        connection.execute("UPDATE object SET data = x'00' WHERE id = 3")

    async def none(store: Store) -> list[Entry]:
        return []

    report = await migrate_store(old, none)
    assert [problem.kind for problem in report.problems] == ["damaged"]
    async with open_store(old) as store:
        assert (await store.verify()).problems == report.problems


@pytest.mark.parametrize(
    ("found", "advice"),
    [("1", "too old to be carried over"), ("4", "upgrade"), ("x", "unknown .*upgrade")],
)
async def test_a_format_that_is_too_old_or_too_new_is_refused(
    old: Path, found: str, advice: str
) -> None:
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (found,))
    before = bytes_of(old)
    with pytest.raises(StoreFormat, match=advice):
        await migrate_store(old, entry_each)
    assert bytes_of(old) == before


async def test_what_is_no_store_is_refused_with_its_own_error(tmp_path: Path) -> None:
    nothing, text, theirs = tmp_path / "nothing", tmp_path / "text", tmp_path / "theirs"
    text.write_bytes(b"some notes " * 100)
    with closing(sqlite3.connect(theirs)) as connection:
        connection.execute("CREATE TABLE ref (theirs)")
    for path, error in ((nothing, StoreError), (text, StoreCorrupt), (theirs, StoreFormat)):
        with pytest.raises(error):
            await migrate_store(path, entry_each)
    assert not nothing.exists()


@pytest.mark.parametrize(
    "points", [8, pytest.param(150, marks=[pytest.mark.slow, pytest.mark.timeout(400)])]
)
async def test_a_kill_at_any_point_leaves_the_old_format_or_the_new_one(
    tmp_path: Path, points: int
) -> None:
    driver = Path(__file__).with_name("kill_migration.py")
    command = [sys.executable, str(driver), str(tmp_path), str(points)]
    with anyio.fail_after(30 + 2 * points):
        done = await anyio.run_process(command, stderr=None)
    found = json.loads(done.stdout)
    assert found["wrong"] == {}
    assert found["killed"] >= points * 0.9
