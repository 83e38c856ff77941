"""Restoring a version into a folder, and comparing two."""

from __future__ import annotations

import os
import sys
import unicodedata
from pathlib import Path

import pytest

from workflow_cas import MemoryStore, StoreFormat, content
from workflow_workspace import FolderVersions, RestoreError, compare, diff, restore
from workflow_workspace.versions._records import (
    VersionEntry,
    VersionRecord,
    tree_node,
    version_node,
)
from workflow_workspace.versions._restore import refuse_clashes


async def test_what_is_restored_is_the_same_version(tmp_path: Path) -> None:
    folder, other = tmp_path / "a", tmp_path / "b"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "run").write_bytes(b"#!/bin/sh\r\n")
    (folder / "inner" / "run").chmod(0o555)
    (folder / "out").symlink_to("../../outside")
    (folder / "large").write_bytes(os.urandom(2_500_000))
    (folder / "inner").chmod(0o500)
    store = MemoryStore()
    version = await FolderVersions(store, folder).take(None)
    await store.commit(version.objects)

    await restore(store, version.hash, other)

    assert (await FolderVersions(store, other).take(None)).hash == version.hash
    assert (other / "large").read_bytes() == (folder / "large").read_bytes()


async def test_only_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one", encoding="utf-8")
    store = MemoryStore()
    version = await FolderVersions(store, tmp_path).take(None)
    await store.commit(version.objects)

    with pytest.raises(RestoreError, match="isn't empty"):
        await restore(store, version.hash, tmp_path)
    with pytest.raises(RestoreError, match="can't be opened"):
        await restore(store, version.hash, tmp_path / "a" / "b")


@pytest.mark.parametrize("name", ["..", ".", "", ".git", ".GIT", "a/b", "a\0b"])
async def test_a_version_with_an_impossible_name_is_refused(tmp_path: Path, name: str) -> None:
    """Objects may come from another machine."""
    store = MemoryStore()
    data = content(b"x")
    tree = tree_node({name: VersionEntry(kind="file", mode=0o644, size=1, parts=(data.hash,))})
    version = version_node(VersionRecord(root=tree.hash, files=1, bytes=1))
    await store.commit([data, tree, version])

    with pytest.raises((RestoreError, StoreFormat), match=r"belongs to git|the name of a file"):
        await restore(store, version.hash, tmp_path / "into")
    assert not (tmp_path / "into").exists()


async def test_changes_are_told_with_their_lines(tmp_path: Path) -> None:
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    (tmp_path / "a").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "gone").write_text("x", encoding="utf-8")
    first = await versions.take(None)
    await store.commit(first.objects)
    (tmp_path / "a").write_text("one\nthree\nfour", encoding="utf-8")
    (tmp_path / "gone").unlink()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "binary").write_bytes(b"\0\1")
    second = await versions.take(first.hash)
    await store.commit(second.objects)

    changes = await compare(store, first.hash, second.hash)

    assert [(each.path, each.kind) for each in changes] == [
        ("a", "changed"), ("b", "added"), ("b/binary", "added"), ("gone", "deleted"),
    ]  # fmt: skip
    changed = await diff(store, changes[0])
    assert (changed.added, changed.deleted, changed.binary) == (2, 1, False)
    assert changed.text == (
        "changed a\n--- a/a\n+++ b/a\n@@ -1,2 +1,3 @@\n one\n-two\n+three\n+four\n"
        "\\ No newline at end of file\n"
    )
    assert (await diff(store, changes[2])).binary
    assert (await diff(store, changes[3])).deleted == 1
    assert await compare(store, second.hash, second.hash) == []


def fold_case(root: int, name: str) -> None:
    """Make a file as macOS and Windows do: not beside one that differs in case or Unicode form."""

    def folded(text: str) -> str:
        return unicodedata.normalize("NFD", text).casefold()

    if folded(name) in map(folded, os.listdir(root)):
        raise FileExistsError(name)
    os.close(os.open(name, os.O_CREAT | os.O_EXCL, dir_fd=root))


@pytest.mark.skipif(sys.platform != "linux", reason="its file systems tell all names apart")
@pytest.mark.parametrize(
    ("names", "clash"),
    [
        (["README", "readme"], "readme"),
        (["d/a", "d/b", "d/A"], "d/A"),
        (["\u00e9", "e\u0301"], "e\u0301"),
        (["stra\u00dfe", "STRASSE"], "STRASSE"),
        (["a", "d/A", "e/a"], None),
        (["fi", "f1"], None),
    ],
)
def test_names_that_are_one_in_the_folder_are_refused_before_anything_is_put_there(
    tmp_path: Path, names: list[str], clash: str | None
) -> None:
    entries = {name: VersionEntry(kind="file") for name in names}
    fd = os.open(tmp_path, os.O_RDONLY)
    try:
        refuse_clashes(fd, entries)  # the file system of the tests tells them apart
        if clash is None:
            refuse_clashes(fd, entries, fold_case)
        else:
            with pytest.raises(RestoreError, match="tells them apart") as caught:
                refuse_clashes(fd, entries, fold_case)
            assert caught.value.path == clash
    finally:
        os.close(fd)
    assert os.listdir(tmp_path) == []
