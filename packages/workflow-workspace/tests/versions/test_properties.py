"""What holds for all folders and all changes."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_cas import MemoryStore
from workflow_protocol import Hash
from workflow_workspace import FolderVersions, compare, read_files, restore
from workflow_workspace.versions._known import is_clean

NAMES = st.sampled_from(
    [
        *("a", "b", "A", "é", "e\u0301", "ﬁ", " ", "\n", "-x", "*", "a.log", "\\", "Ωmega", "CON"),
        *(os.fsdecode(raw) for raw in (b"\xff", b"caf\xe9", b"\xed\xa0\x80", b"x" * 255)),
    ]
)
PATHS = st.lists(NAMES, min_size=1, max_size=4)
CONTENTS = st.one_of(st.sampled_from([b"", b"one", b"two"]), st.binary(max_size=300))
MODES = st.sampled_from([0o644, 0o600, 0o755, 0o444, 0o777])
RULES = st.sampled_from([b"*\n", b"*.log\n", b"a/\n", b"!a.log\n", b"/b\nA\n", b""])

Change = tuple[str, list[str], bytes, int]
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), PATHS, CONTENTS, MODES),
        st.tuples(st.just("link"), PATHS, CONTENTS, MODES),
        st.tuples(st.just("folder"), PATHS, CONTENTS, MODES),
        st.tuples(st.just("remove"), PATHS, CONTENTS, MODES),
        st.tuples(st.just("rules"), st.lists(NAMES, max_size=2), RULES, MODES),
    ),
    min_size=1,
    max_size=12,
)


def carry_out(top: Path, change: Change) -> str | None:
    """Make the change if it can be; gives the path that it changed."""
    kind, names, data, mode = change
    path = top.joinpath(*names)
    try:
        if kind == "rules":
            path = path / ".gitignore"
        if any(parent.is_symlink() for parent in path.parents if parent != top):
            return None
        if kind in {"write", "rules"} and path.is_symlink():
            return None  # it would change what the link leads to
        if kind == "remove":
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "link":
                path.symlink_to(os.fsdecode(data.replace(b"\0", b"")) or "x")
            elif kind == "folder":
                path.mkdir(mode=0o755)
            else:
                path.write_bytes(data)
                path.chmod(mode)
    except OSError:
        return None
    return os.fspath(path.relative_to(top))


def in_a_folder(test: Callable[[Path], object]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        test(Path(folder))


@settings(max_examples=10, deadline=None)
@given(CHANGES)
def test_what_is_taken_and_restored_is_the_same_version(changes: list[Change]) -> None:
    async def check(top: Path) -> None:
        folder, again = top / "w", top / "again"
        await anyio.Path(folder).mkdir()
        for change in changes:
            carry_out(folder, change)
        store = MemoryStore()
        version = await FolderVersions(store, folder).take(None)
        await store.commit(version.objects)

        await restore(store, version.hash, again)

        restored = await FolderVersions(store, again).take(version.hash)
        assert await compare(store, version.hash, restored.hash) == []
        assert restored.hash == version.hash
        assert (await store.verify()).ok

    in_a_folder(lambda top: anyio.run(check, top))


async def take_after_each(
    folder: Path, first: list[Change], then: list[Change], *, one_by_one: bool
) -> None:
    """Versions that one object takes, and those that a new one takes of the same moment."""
    for change in first:
        carry_out(folder, change)
    store = MemoryStore()
    versions = FolderVersions(store, folder)
    base: Hash | None = None
    paths: list[str] | None = None
    for change in [None, *then]:
        if change is not None:
            changed = carry_out(folder, change)
            paths = [changed] if one_by_one and changed is not None else None
        taken = await versions.take(base, paths)
        fresh = await FolderVersions(store, folder).take(base)
        await store.commit(taken.objects)
        assert taken.hash == fresh.hash
        base = taken.hash
    assert (await store.verify()).ok


@settings(max_examples=10, deadline=None)
@given(CHANGES, CHANGES, st.booleans())
def test_named_paths_and_what_is_known_give_the_version_of_a_first_scan(
    first: list[Change], then: list[Change], one_by_one: bool
) -> None:
    """Whatever changes, at whatever moment, nothing is missed."""
    take = partial(take_after_each, first=first, then=then, one_by_one=one_by_one)
    in_a_folder(lambda folder: anyio.run(take, folder))


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(CHANGES, CHANGES, st.booleans())
def test_nothing_is_missed_in_many_folders(
    first: list[Change], then: list[Change], one_by_one: bool
) -> None:
    take = partial(take_after_each, first=first, then=then, one_by_one=one_by_one)
    in_a_folder(lambda folder: anyio.run(take, folder))


@settings(max_examples=10, deadline=None)
@given(CHANGES, CHANGES)
def test_the_changes_between_two_versions_lead_from_one_to_the_other(
    first: list[Change], then: list[Change]
) -> None:
    async def check(folder: Path) -> None:
        store = MemoryStore()
        versions = FolderVersions(store, folder)
        hashes: list[Hash] = []
        for changes in (first, then):
            for change in changes:
                carry_out(folder, change)
            taken = await versions.take(hashes[-1] if hashes else None)
            await store.commit(taken.objects)
            hashes.append(taken.hash)
        before, after = [await read_files(store, each) for each in hashes]

        for change in await compare(store, hashes[0], hashes[1]):
            assert (before.pop(change.path, None), after.pop(change.path, None)) == (
                change.before,
                change.after,
            )

        folders = {path for path, entry in before.items() if entry.kind == "folder"}
        assert {path: each for path, each in before.items() if path not in folders} == {
            path: each for path, each in after.items() if path not in folders
        }

    in_a_folder(lambda folder: anyio.run(check, folder))


async def test_a_file_that_is_written_again_at_once_is_not_missed(tmp_path: Path) -> None:
    """With as many bytes, in the same inode, in the same tick of the clock of older kernels."""
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    base: Hash | None = None
    seen: set[Hash] = set()
    for number in range(200):
        fd = os.open(tmp_path / "a", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"%03d" % number)
        os.close(fd)
        version = await versions.take(base)
        await store.commit(version.objects)
        base = version.hash
        seen.add(base)

    assert len(seen) == 200


@pytest.mark.parametrize(
    ("changed_ns", "read_at_ns", "clean"),
    [
        (10_000_000_001, 10_000_000_001, False),
        (10_000_000_001, 10_040_000_000, False),
        (10_000_000_001, 10_060_000_000, True),
        (10_000_000_000, 10_060_000_000, False),  # a file system that keeps whole seconds
        (10_000_000_000, 12_000_000_000, False),  # or two
        (10_000_000_000, 12_200_000_000, True),
        (10_000_000_001, 9_000_000_000, False),  # a clock that was set back
    ],
)
def test_what_was_changed_in_the_tick_of_its_reading_is_read_again(
    changed_ns: int, read_at_ns: int, clean: bool
) -> None:
    old = 1_000_000_007
    for times in ((changed_ns, changed_ns), (old, changed_ns)):
        assert is_clean((0o100644, 3, *times, 1), read_at_ns) is clean
