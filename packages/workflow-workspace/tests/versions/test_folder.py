"""Taking versions: what is kept of a folder, and when it is the same version."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from workflow_cas import MemoryStore
from workflow_protocol import Hash
from workflow_workspace import (
    FolderVersions,
    NotVersioned,
    Versioned,
    compare,
    read_content,
    read_files,
    version_record,
)

KEY = b"sk-0123456789abcdefghij"


async def taken(
    store: MemoryStore,
    versions: FolderVersions,
    base: Hash | None = None,
    paths: Sequence[str] | None = None,
) -> Hash:
    version = await versions.take(base, paths)
    await store.commit(version.objects)
    return version.hash


async def kept(store: MemoryStore, version: Hash) -> set[str]:
    entries = await read_files(store, version)
    return {path for path, entry in entries.items() if entry.kind in {"file", "link"}}


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


async def test_files_links_folders_and_modes_are_kept_as_they_are(tmp_path: Path) -> None:
    write(tmp_path, a="one", b__c="two")
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("/nowhere/outside")
    (tmp_path / "a").chmod(0o755)
    (tmp_path / os.fsdecode(b"caf\xe9")).write_bytes(b"latin")
    store = MemoryStore()

    version = await taken(store, FolderVersions(store, tmp_path))
    entries = await read_files(store, version)

    assert {os.fsencode(path): entry.kind for path, entry in entries.items()} == {
        b"a": "file", b"b": "folder", b"b/c": "file", b"empty": "folder", b"link": "link",
        b"caf\xe9": "file",
    }  # fmt: skip
    assert (entries["a"].mode, entries["link"].target) == (0o755, "/nowhere/outside")
    assert await read_content(store, entries["b/c"]) == b"two"
    record = await version_record(store, version)
    assert (record.files, record.bytes, record.git) == (4, 11, None)


async def test_the_same_files_are_the_same_version_without_objects(tmp_path: Path) -> None:
    write(tmp_path, a="one", b__c="two")
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    version = await taken(store, versions)

    again = await versions.take(version)
    os.utime(tmp_path / "a")  # another time, the same bytes
    other = await FolderVersions(store, tmp_path).take(version)

    assert (again.hash, again.objects, other.hash, other.objects) == (version, (), version, ())


async def test_only_what_changed_is_to_be_committed(tmp_path: Path) -> None:
    write(tmp_path, a="one", b__c="two", b__d="three", e__f="four")
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    before = await taken(store, versions)
    write(tmp_path, b__c="new")

    version = await versions.take(before)
    await store.commit(version.objects)

    assert len(version.objects) == 4  # the content, the trees of b and of the top, the version
    (change,) = await compare(store, before, version.hash)
    assert (change.path, change.kind) == ("b/c", "changed")


def overwrite(folder: Path) -> None:
    write(folder, b__c="new")


def remove(folder: Path) -> None:
    (folder / "b/c").unlink()


def make_a_folder(folder: Path) -> None:
    (folder / "b/c").unlink()
    write(folder, b__c__x="new", b__c__y__z="more")


def make_executable(folder: Path) -> None:
    (folder / "b/c").chmod(0o700)


@pytest.mark.parametrize("change", [overwrite, remove, make_a_folder, make_executable])
async def test_a_path_that_is_named_gives_the_version_of_a_whole_scan(
    tmp_path: Path, change: Callable[[Path], None]
) -> None:
    write(tmp_path, a="one", b__c="two", b__d="three")
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    before = await taken(store, versions)
    change(tmp_path)

    named = await taken(store, versions, before, ["b/c"])
    scanned = await taken(store, FolderVersions(store, tmp_path), before)

    assert named == scanned != before


async def test_what_is_not_named_is_not_looked_at(tmp_path: Path) -> None:
    write(tmp_path, a="one", b__c="two")
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    before = await taken(store, versions)
    write(tmp_path, a="new", b__new="three")

    version = await taken(store, versions, before, ["b/new"])

    assert [each.path for each in await compare(store, before, version)] == ["b/new"]


async def test_a_new_process_reads_nothing_again(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    write(folder, a="one")
    os.utime(folder / "a", (1, 1))
    store, cache = MemoryStore(), tmp_path / "cache" / "known"
    first = FolderVersions(store, folder, cache=cache)
    version = await taken(store, first)

    second = FolderVersions(store, folder, cache=cache)
    assert second.is_new
    again = await second.take(None)

    assert (again.hash, second.is_new) == (version, False)
    assert cache.stat().st_mode & 0o777 == 0o600


async def test_what_was_never_committed_is_given_again(tmp_path: Path) -> None:
    write(tmp_path, a="one", b__c="two")
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    lost = await versions.take(None)

    version = await versions.take(None)
    await store.commit(version.objects)

    assert version.hash == lost.hash
    assert await kept(store, version.hash) == {"a", "b/c"}


async def test_what_may_be_a_secret_is_left_out_and_told(tmp_path: Path) -> None:
    write(tmp_path, a="one", _dot_env="X=1", b__id_rsa="x", code=f"key = '{KEY.decode()}'")
    os.mkfifo(tmp_path / "pipe")
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path, secrets=[KEY])

    entries = await read_files(store, await taken(store, versions))

    assert {path: entry.reason for path, entry in entries.items() if entry.reason} == {
        ".env": "secret name", "b/id_rsa": "secret name", "code": "configured key",
        "pipe": "not a file",
    }  # fmt: skip
    assert versions.left_out == (".env", "b/id_rsa", "code", "pipe")


async def test_what_gitignore_names_is_not_kept_unless_it_was(tmp_path: Path) -> None:
    write(tmp_path, _dot_gitignore="*.log\nbuild/\n", a="one", b_dot_log="x", build__c="y")
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    before = await taken(store, versions)
    assert await kept(store, before) == {".gitignore", "a"}

    write(tmp_path, _dot_gitignore="*\n", a="two", new="three")
    after = await taken(store, versions, before)

    assert await kept(store, after) == {".gitignore", "a"}
    (a,) = [each for each in await compare(store, before, after) if each.path == "a"]
    assert a.kind == "changed"


async def test_the_user_says_what_is_kept_besides_and_what_not(tmp_path: Path) -> None:
    write(
        tmp_path, _dot_gitignore="build/\n", _dot_env="X=1", a="one", big="two", build__c="y",
        build__d__e="z",
    )  # fmt: skip
    options = Versioned(include=(".env", "build/c"), exclude=("big",))
    store = MemoryStore()

    version = await taken(store, FolderVersions(store, tmp_path, options))

    assert await kept(store, version) == {".gitignore", ".env", "a", "build/c"}


async def test_commit_branch_and_index_of_git_are_part_of_it(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        identity = ["-c", "user.name=n", "-c", "user.email=e@x"]
        done = subprocess.run(
            ["git", *identity, *words], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "-q", "-b", "work")
    write(tmp_path, _dot_gitignore="*.log\n", a="one", b_dot_log="tracked all the same")
    git("add", "-f", ".")
    git("commit", "-qm", "first")
    write(tmp_path, c_dot_log="ignored")
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)

    version = await taken(store, versions)
    state = (await version_record(store, version)).git

    assert state is not None
    assert (state.head, state.branch) == (git("rev-parse", "HEAD"), "work")
    assert state.index is not None
    assert (await store.get(state.index)).text() == git("ls-files", "--stage", "-z")
    assert await kept(store, version) == {".gitignore", "a", "b.log"}

    git("status")
    assert (await versions.take(version)).hash == version
    write(tmp_path, a="two")
    git("add", "a")
    staged = await taken(store, versions, version)
    git("stash", "-q")
    assert staged != version == await taken(store, versions, staged)


@pytest.mark.parametrize("folder", [Path("/"), Path.home(), Path.home().parent])
async def test_no_versions_are_kept_of_the_root_or_a_home(folder: Path) -> None:
    with pytest.raises(NotVersioned, match="folder of its own"):
        await FolderVersions(MemoryStore(), folder).take(None)


async def test_a_folder_that_is_too_large_is_refused(tmp_path: Path) -> None:
    write(tmp_path, a="one", b="two", c="three")
    for options in (Versioned(max_files=2), Versioned(max_bytes=10)):
        with pytest.raises(NotVersioned, match="raise the limit"):
            await FolderVersions(MemoryStore(), tmp_path, options).take(None)
    with pytest.raises(NotVersioned, match="can't be opened"):
        await FolderVersions(MemoryStore(), tmp_path / "missing").take(None)
    store = MemoryStore()
    version = await taken(store, FolderVersions(store, tmp_path, Versioned(max_file_bytes=4)))
    assert (await read_files(store, version))["c"].reason == "too large"


async def test_a_socket_is_told_and_a_submodules_git_is_not_kept(tmp_path: Path) -> None:
    write(tmp_path, sub__a="one", sub___dot_git="gitdir: ../.git/modules/sub")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(os.fspath(tmp_path / "s"))
        store = MemoryStore()
        entries = await read_files(store, await taken(store, FolderVersions(store, tmp_path)))

    assert {path: entry.reason for path, entry in entries.items()} == {
        "s": "not a file", "sub": None, "sub/a": None,
    }  # fmt: skip


def make_repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "add", "."], cwd=folder, check=True)


async def test_nothing_is_written_into_the_folder_or_its_repository(tmp_path: Path) -> None:
    write(tmp_path, a="one", b__c="two", _dot_gitignore="*.log\n", d_dot_log="three")
    make_repository(tmp_path)
    write(tmp_path, a="not what the index has")

    def everything() -> dict[str, tuple[int, ...]]:
        paths = [tmp_path, *tmp_path.rglob("*")]
        states = [(path, path.lstat()) for path in paths]
        return {
            os.fspath(path): (state.st_ctime_ns, state.st_mtime_ns, state.st_size, state.st_mode)
            + ((state.st_atime_ns,) if path.is_file() and ".git" not in path.parts else ())
            for path, state in states
        }

    before = everything()
    store = MemoryStore()
    versions = FolderVersions(store, tmp_path)
    version = await taken(store, versions)
    await versions.take(version, ["a"])
    await versions.take(version)

    assert everything() == before
