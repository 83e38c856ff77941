"""What happens while a version is taken: writers, other threads, cancellation, a full store."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from workflow_cas import Entry, MemoryStore, RefMove, Stored, StoreFull
from workflow_protocol import Hash
from workflow_workspace import FolderVersions, compare, read_files, restore


class RecordingStore(MemoryStore):
    """Counts commits, and may refuse one."""

    def __init__(self, *, full_from: int = 1_000) -> None:
        super().__init__()
        self.commits: list[int] = []
        self.full_from = full_from
        self.begun = anyio.Event()
        self.may_go_on = anyio.Event()
        self.may_go_on.set()

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        self.begun.set()
        await self.may_go_on.wait()
        if len(self.commits) >= self.full_from:
            raise StoreFull("no room")
        self.commits.append(len(objects))
        await super().commit(objects, moves, entries)


def many_files(folder: Path, count: int = 600) -> None:
    for number in range(count):
        (folder / f"d{number % 7}").mkdir(exist_ok=True)
        (folder / f"d{number % 7}" / f"f{number}").write_text(str(number), encoding="utf-8")


async def test_a_file_that_changes_while_it_is_read_is_marked(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b"x" * 12_000_000)
    (tmp_path / "quiet").write_bytes(b"y")
    stop, begun = threading.Event(), threading.Event()

    def write() -> None:
        fd = os.open(file, os.O_WRONLY)
        while not stop.is_set():
            os.pwrite(fd, os.urandom(64), 6_000_000)
            begun.set()
        os.close(fd)

    writer = threading.Thread(target=write)
    writer.start()
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    try:
        await anyio.to_thread.run_sync(begun.wait)
        torn = await versions.take(None)
    finally:
        stop.set()
        writer.join()
    await store.commit(torn.objects)
    whole = await versions.take(torn.hash)
    await store.commit(whole.objects)

    before = await read_files(store, torn.hash)
    assert (before["log"].changed, before["quiet"].changed) == (True, False)
    assert not (await read_files(store, whole.hash))["log"].changed


async def test_many_objects_are_committed_in_batches_and_few_with_the_record(
    tmp_path: Path,
) -> None:
    many_files(tmp_path)
    store = RecordingStore()
    versions = FolderVersions(store, tmp_path)

    first = await versions.take(None)
    await store.commit(first.objects)
    (tmp_path / "d1" / "new").write_text("new", encoding="utf-8")
    second = await versions.take(first.hash)

    assert max(store.commits) == 500
    assert len(first.objects) == 1
    assert len(second.objects) == 4  # content, two trees, the version
    assert (await store.verify()).ok


async def test_a_version_that_was_cancelled_leaves_everything_as_it_was(tmp_path: Path) -> None:
    many_files(tmp_path)
    store = RecordingStore()
    store.may_go_on = anyio.Event()
    versions = FolderVersions(store, tmp_path)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(versions.take, None)
        await store.begun.wait()
        tasks.cancel_scope.cancel()

    store.may_go_on.set()
    assert versions.is_new
    version = await versions.take(None)
    await store.commit(version.objects)
    assert len(await read_files(store, version.hash)) == 607
    assert (await store.verify()).ok


async def test_a_store_without_room_is_told_and_the_next_version_is_whole(tmp_path: Path) -> None:
    many_files(tmp_path)
    store = RecordingStore(full_from=1)
    versions = FolderVersions(store, tmp_path)
    with pytest.raises(StoreFull):
        await versions.take(None)

    store.full_from = 1_000
    version = await versions.take(None)
    await store.commit(version.objects)
    assert len(await read_files(store, version.hash)) == 607


async def test_threads_that_take_turns_in_a_folder_have_their_own_versions(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one", encoding="utf-8")
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    base = await versions.take(None)
    await store.commit(base.objects)
    (tmp_path / "b").write_text("of the first", encoding="utf-8")
    first = await versions.take(base.hash, ["b"])  # its record waits to be written
    (tmp_path / "c").write_text("of the second", encoding="utf-8")
    second = await versions.take(base.hash, ["c"])
    (tmp_path / "b").write_text("again of the first", encoding="utf-8")
    third = await versions.take(first.hash, ["b"])
    for each in (first, second, third):
        await store.commit(each.objects)

    async def changed(version: Hash) -> list[str]:
        return [each.path for each in await compare(store, base.hash, version)]

    assert await changed(first.hash) == ["b"]
    assert await changed(second.hash) == ["c"]
    assert await changed(third.hash) == ["b"]
    everything = await versions.take(third.hash)
    await store.commit(everything.objects)
    assert await changed(everything.hash) == ["b", "c"]


async def test_many_tasks_at_once_have_one_version(tmp_path: Path) -> None:
    many_files(tmp_path, 30)
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    found: set[str] = set()

    async def take() -> None:
        version = await versions.take(None)
        await store.commit(version.objects)
        found.add(version.hash)

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(take)

    assert len(found) == 1


async def test_garbage_collection_keeps_what_a_version_needs(tmp_path: Path) -> None:
    many_files(tmp_path, 30)
    folder = tmp_path / "restored"
    store = MemoryStore()
    version = await FolderVersions(store, tmp_path).take(None)
    await store.commit(version.objects, [RefMove("thread/x/head", None, version.hash)])

    report = await store.collect_garbage(keep_newer_than_s=0)
    await restore(store, version.hash, folder)

    assert report.removed == ()
    await store.commit([], [RefMove("thread/x/head", version.hash, None)])
    assert len((await store.collect_garbage(keep_newer_than_s=0)).removed) == report.kept


async def test_what_a_collection_has_removed_is_read_again(tmp_path: Path) -> None:
    many_files(tmp_path, 30)
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    first = await versions.take(None)
    await store.commit(first.objects)
    await store.collect_garbage(keep_newer_than_s=0)

    again = await versions.take(None)
    await store.commit(again.objects)

    assert again.hash == first.hash
    assert (await store.verify()).ok
