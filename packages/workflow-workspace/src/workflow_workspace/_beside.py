"""A folder beside another: the files of a version, in a worktree of its repository if any."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from anyio import to_thread

from workflow_cas import Store
from workflow_protocol import Hash
from workflow_workspace._errors import RestoreError
from workflow_workspace.git._state import git_environment
from workflow_workspace.versions._records import GitState
from workflow_workspace.versions._restore import restore
from workflow_workspace.versions._trees import version_record

ENVIRONMENTS = frozenset({".venv", "venv", "node_modules"})
"""Folders that tests need and that no version has: they are copied from the other folder."""

_TIMEOUT_S = 120
_GIT = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")  # no program of others runs


async def restore_beside(store: Store, version: Hash, origin: Path, into: Path) -> None:
    """Put the files of a version into an empty folder, to work there as in the one they are of.

    Where that is the top of a git repository and the version's commit is still there, the folder is
    a worktree of it: at the commit, on no branch, with the index as it was. `.venv`, `venv` and
    `node_modules` are copied from where they are now, by reflink where the file system has it.

    Args:
        store: has the version.
        version: which one.
        origin: the folder that the version is of; it may be gone.
        into: the empty folder.

    Raises:
        RestoreError: the files can't be put there.
        StoreError: a part of the version is missing or damaged.
    """
    git = (await version_record(store, version)).git
    aside = None
    if git is not None and git.head is not None:
        aside = await to_thread.run_sync(_add_worktree, origin, into, git.head)
    try:
        await restore(store, version, into)
    except BaseException:
        if aside is not None:
            await to_thread.run_sync(_put_back, aside, into)
            await to_thread.run_sync(remove_beside, into)
        raise
    if git is not None and aside is not None:
        index = None if git.index is None else (await store.get(git.index)).data
        await to_thread.run_sync(_put_back, aside, into)
        await to_thread.run_sync(_set_index, into, git, index)
    await to_thread.run_sync(_copy_environments, origin, into)


def remove_beside(folder: Path) -> None:
    """Remove such a folder, and what its repository knows of it. One that is gone is fine."""
    if not folder.is_dir() or folder.is_symlink():
        return
    common = _run(folder, "rev-parse", "--path-format=absolute", "--git-common-dir")
    if common is not None and (folder / ".git").is_file():
        where = os.fsdecode(common).rstrip("\n")
        _run(Path("/"), f"--git-dir={where}", "worktree", "remove", "--force", str(folder))
    shutil.rmtree(folder, ignore_errors=True)


def _add_worktree(origin: Path, into: Path, head: str) -> Path | None:
    """Make the folder a worktree without files, and set its `.git` aside; `None` if it can't be."""
    if not os.path.lexists(origin / ".git"):  # a folder in a repository is not all of it
        return None
    if _run(origin, "worktree", "add", "--detach", "--no-checkout", str(into), head) is None:
        return None
    aside = into.with_name(f".{into.name}.git")
    os.rename(into / ".git", aside)
    return aside


def _put_back(aside: Path, into: Path) -> None:
    try:
        os.rename(aside, into / ".git")
    except OSError as error:
        raise RestoreError(str(into), f"git can't be put there: {error.strerror}") from error


def _set_index(into: Path, git: GitState, index: bytes | None) -> None:
    if index is None:
        _run(into, "read-tree", git.head or "HEAD")
    else:
        _run(into, "update-index", "-z", "--index-info", given=index)


def _copy_environments(origin: Path, into: Path) -> None:
    for inside in _environments(origin):
        target = into / inside
        if target.parent.is_dir() and not os.path.lexists(target):
            command = ["cp", "-a", "--reflink=auto", "--", str(origin / inside), str(target)]
            subprocess.run(command, capture_output=True, check=False)


def _environments(origin: Path) -> Iterator[Path]:
    for at, folders, _ in os.walk(origin):
        for name in sorted(ENVIRONMENTS.intersection(folders)):
            yield Path(at, name).relative_to(origin)
        folders[:] = [each for each in folders if each not in ENVIRONMENTS and each != ".git"]


def _run(folder: Path, *words: str, given: bytes | None = None) -> bytes | None:
    """What git says; `None` where it isn't there or refuses."""
    git = shutil.which("git")
    if git is None:
        return None
    command: Sequence[str] = [git, *_GIT, *words]
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=git_environment(),
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
