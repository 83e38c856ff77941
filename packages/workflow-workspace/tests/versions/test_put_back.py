"""Putting a folder that is in use back to a version."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_cas import MemoryStore, Store
from workflow_protocol import Hash
from workflow_workspace import FolderVersions, RestoreError, Versioned, put_back

_NAMES = st.sampled_from(["a", "b", "a.b"])
_LEAVES = st.one_of(
    st.binary(max_size=3),
    st.sampled_from(["a", "../outside", "."]),  # where a link leads
)
_TREES = st.recursive(
    _LEAVES, lambda inner: st.dictionaries(_NAMES, inner, max_size=3), max_leaves=8
)
_FOLDERS = st.dictionaries(_NAMES, _TREES, max_size=3)


def make(folder: Path, tree: dict[str, object]) -> None:
    for name, what in tree.items():
        path = folder / name
        if isinstance(what, bytes):
            path.write_bytes(what)
            path.chmod(0o755 if what[:1] > b"\x80" else 0o644)
        elif isinstance(what, str):
            path.symlink_to(what)
        else:
            path.mkdir()
            make(path, cast("dict[str, object]", what))


async def taken(store: Store, folder: Path, base: Hash | None = None) -> Hash:
    version = await FolderVersions(store, folder, secrets=[b"sk-a-key"]).take(base)
    await store.commit(version.objects)
    return version.hash


@given(before=_FOLDERS, now=_FOLDERS)
@settings(max_examples=25, deadline=None)
async def test_any_folder_becomes_what_any_other_was(
    before: dict[str, object], now: dict[str, object]
) -> None:
    top = Path(tempfile.mkdtemp())
    try:
        outside, folder = top / "outside", top / "folder"
        outside.mkdir()
        (outside / "b").write_bytes(b"outside")
        store = MemoryStore()
        folder.mkdir()
        make(folder, before)
        left = await taken(store, folder)
        shutil.rmtree(folder)
        folder.mkdir()
        make(folder, now)
        present = await taken(store, folder, left)

        assert await put_back(store, left, present, folder) == []

        assert await taken(store, folder, present) == left
        assert {each.name: each.read_bytes() for each in outside.iterdir()} == {"b": b"outside"}
    finally:
        shutil.rmtree(top)


async def test_what_is_the_same_is_not_written(tmp_path: Path) -> None:
    store = MemoryStore()
    make(tmp_path, {"same": b"1", "folder": {"same": b"2", "other": b"3"}})
    left = await taken(store, tmp_path)
    known = {name: os.stat(tmp_path / name) for name in ("same", "folder/same")}
    (tmp_path / "folder" / "other").write_bytes(b"4")

    await put_back(store, left, await taken(store, tmp_path, left), tmp_path)

    assert (tmp_path / "folder" / "other").read_bytes() == b"3"
    assert {name: os.stat(tmp_path / name) for name in known} == known


async def test_what_no_version_has_stays(tmp_path: Path) -> None:
    store = MemoryStore()
    make(tmp_path, {".gitignore": b"ignored\n", "kept": b"1", "secret": b"2"})
    left = await taken(store, tmp_path)
    (tmp_path / "kept").unlink()
    (tmp_path / "secret").write_bytes(b"it is sk-a-key")
    make(tmp_path, {".env": b"KEY=1", "new": {"ignored": b"3", "seen": b"4"}})

    stays = await put_back(store, left, await taken(store, tmp_path, left), tmp_path)

    assert stays == [".env", "secret"]
    assert sorted(os.listdir(tmp_path)) == [".env", ".gitignore", "kept", "new", "secret"]
    assert os.listdir(tmp_path / "new") == ["ignored"]
    assert (tmp_path / "secret").read_bytes() == b"it is sk-a-key"


async def test_a_file_that_is_not_looked_at_any_more_is_not_overwritten(tmp_path: Path) -> None:
    store = MemoryStore()
    make(tmp_path, {"data": b"1", "other": b"2"})
    left = await taken(store, tmp_path)
    make(tmp_path, {"data": b"mine", "other": b"3"})
    version = await FolderVersions(store, tmp_path, Versioned(exclude=("data",))).take(None)
    await store.commit(version.objects)

    assert await put_back(store, left, version.hash, tmp_path) == ["data"]

    assert (tmp_path / "data").read_bytes() == b"mine"
    assert (tmp_path / "other").read_bytes() == b"2"


async def test_a_folder_with_other_files_where_a_file_was_is_told(tmp_path: Path) -> None:
    store = MemoryStore()
    make(tmp_path, {".gitignore": b"ignored\n", "a": b"1"})
    left = await taken(store, tmp_path)
    (tmp_path / "a").unlink()
    make(tmp_path, {"a": {"ignored": b"2"}})

    with pytest.raises(RestoreError, match="files that no version has; move them away"):
        await put_back(store, left, await taken(store, tmp_path, left), tmp_path)
    assert (tmp_path / "a" / "ignored").read_bytes() == b"2"


async def test_a_folder_that_became_a_link_meanwhile_is_not_followed(tmp_path: Path) -> None:
    folder, outside = tmp_path / "folder", tmp_path / "outside"
    for each in (folder, outside):
        each.mkdir()
    store = MemoryStore()
    make(folder, {"inner": {"a": b"1"}})
    left = await taken(store, folder)
    (folder / "inner" / "a").write_bytes(b"2")
    present = await taken(store, folder, left)
    shutil.rmtree(folder / "inner")
    (folder / "inner").symlink_to(outside)

    with pytest.raises(RestoreError, match="'inner"):
        await put_back(store, left, present, folder)
    assert os.listdir(outside) == []
