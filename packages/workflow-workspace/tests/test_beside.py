"""A folder beside another: a worktree of its repository, with the environments of its tests."""

import os
import subprocess
from pathlib import Path

import anyio
import pytest

from workflow_cas import MemoryStore
from workflow_workspace import FolderVersions, RestoreError, remove_beside, restore_beside


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    return subprocess.run(
        ["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """A repository with something committed, staged, changed, new, ignored, and a hook."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "-q")
    for name, text in {"a": "1", "b": "1", "gone": "1", ".gitignore": ".venv\n*.log\n"}.items():
        (folder / name).write_text(text)
    hook = folder / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "x")
    (folder / "a").write_text("2")
    git(folder, "add", "a")
    (folder / "b").write_text("2")
    (folder / "new").write_text("1")
    (folder / "gone").unlink()
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").symlink_to("/usr/bin/python3")
    (folder / "x.log").write_text("ignored")
    return folder


async def fork(origin: Path, into: Path) -> None:
    store = MemoryStore()
    version = await FolderVersions(store, origin).take(None)
    await store.commit([*version.objects])
    await restore_beside(store, version.hash, origin, into)


async def test_it_is_a_worktree_with_files_and_index_as_they_were(
    origin: Path, tmp_path: Path
) -> None:
    before = git(origin, "status", "--porcelain"), git(origin, "branch", "-v")
    into = tmp_path / "fork"
    await fork(origin, into)

    assert git(into, "status", "--porcelain") == before[0]
    assert git(into, "rev-parse", "HEAD") == git(origin, "rev-parse", "HEAD")
    assert (git(origin, "status", "--porcelain"), git(origin, "branch", "-v")) == before
    assert os.readlink(into / ".venv" / "bin" / "python") == "/usr/bin/python3"
    assert "x.log" not in os.listdir(into)
    assert "hooked" not in os.listdir(tmp_path)


async def test_removed_it_leaves_nothing_in_the_repository(origin: Path, tmp_path: Path) -> None:
    into = tmp_path / "fork"
    await fork(origin, into)
    await anyio.to_thread.run_sync(remove_beside, into)

    assert "fork" not in os.listdir(tmp_path)
    assert git(origin, "worktree", "list").count("\n") == 1
    await anyio.to_thread.run_sync(remove_beside, into)


async def test_without_a_repository_it_has_the_files(tmp_path: Path) -> None:
    origin, into = tmp_path / "origin", tmp_path / "fork"
    origin.mkdir()
    (origin / "a").write_text("1")
    await fork(origin, into)

    assert os.listdir(into) == ["a"]


async def test_a_commit_that_is_gone_and_a_folder_that_is_gone_leave_the_files(
    origin: Path, tmp_path: Path
) -> None:
    store = MemoryStore()
    version = await FolderVersions(store, origin).take(None)
    await store.commit([*version.objects])
    for name in ("objects", "refs"):
        os.rename(origin / ".git" / name, tmp_path / name)
    await restore_beside(store, version.hash, origin, tmp_path / "one")
    os.rename(origin, tmp_path / "elsewhere")
    await restore_beside(store, version.hash, origin, tmp_path / "two")

    assert sorted(os.listdir(tmp_path / "one")) == [".gitignore", ".venv", "a", "b", "new"]
    assert sorted(os.listdir(tmp_path / "two")) == [".gitignore", "a", "b", "new"]


async def test_a_folder_with_files_is_left_as_it_is(origin: Path, tmp_path: Path) -> None:
    into = tmp_path / "full"
    into.mkdir()
    (into / "mine").write_text("mine")
    with pytest.raises(RestoreError, match="isn't empty"):
        await fork(origin, into)

    assert os.listdir(into) == ["mine"]
    assert git(origin, "worktree", "list").count("\n") == 1
