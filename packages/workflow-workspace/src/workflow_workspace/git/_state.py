"""What is checked out in a folder: commit, branch and index. No configured program is run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess

import msgspec

from workflow_workspace.git._places import enclosing_repository, git_folder_of

_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_MAX_BYTES = 64 * 1024 * 1024
_TIMEOUT_S = 60


class CheckedOut(msgspec.Struct, frozen=True):
    """The commit and branch, and where the index is."""

    head: str | None
    branch: str | None
    index_file: str


def checked_out(folder: str) -> CheckedOut | None:
    """What is checked out, in this folder or the repository that it lies in; `None` if none is."""
    top = folder if os.path.lexists(os.path.join(folder, ".git")) else enclosing_repository(folder)
    git = git_folder_of(top) if top is not None else None
    if git is None:
        return None
    said = _text(os.path.join(git, "HEAD"))
    if said is None:
        return None
    index = os.path.join(git, "index")
    if not said.startswith("ref:"):
        return CheckedOut(said if _COMMIT.fullmatch(said) else None, None, index)
    ref = said.removeprefix("ref:").strip()
    common = os.path.join(git, _text(os.path.join(git, "commondir")) or ".")
    return CheckedOut(_commit_of(common, ref), ref.removeprefix("refs/heads/"), index)


def staged(folder: str) -> bytes | None:
    """The index as `git ls-files --stage -z` lists it, of what is in this folder.

    `None` where git isn't there, or doesn't trust the repository.
    """
    git = shutil.which("git")
    if git is None:
        return None
    command = [git, "-c", "core.fsmonitor=false", "ls-files", "--stage", "-z"]
    try:
        listed = subprocess.run(
            command,
            cwd=folder,
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return listed.stdout if listed.returncode == 0 else None


def git_environment() -> dict[str, str]:
    """The environment for git, which speaks of the folder that it runs in and fetches nothing."""
    ours = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return {**ours, "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1"}


def _commit_of(common: str, ref: str) -> str | None:
    """Where a ref is; read as git keeps it, for starting git takes longer than all the rest."""
    loose = _text(os.path.join(common, ref))
    if loose is not None and _COMMIT.fullmatch(loose):
        return loose
    packed = _text(os.path.join(common, "packed-refs")) or ""
    found = re.search(rf"^([0-9a-f]{{40,64}}) {re.escape(ref)}$", packed, re.MULTILINE)
    return found[1] if found else None


def _text(file: str) -> str | None:
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:
            return opened.read(_MAX_BYTES).strip()
    except OSError:
        return None
