"""Repositories inside another one that stand in its index, as submodules do.

`git status` goes into those and does what their configuration says, which a command may have
written.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import lru_cache

from workflow_workspace.git._places import git_folder_of

_IS_LINK = b"\0\0\xe0\0"  # mode 160000 in an entry of the index (gitformat-index(5))
_IS_SPLIT = b"link"  # most entries are in another file
_TIMEOUT_S = 20


def linked_repositories(top: str) -> tuple[str, ...]:
    """Where other repositories are, by the index of this one. Read again when it has changed."""
    index = os.path.join(git_folder_of(top) or "", "index")
    try:
        state = os.stat(index)
    except OSError:
        return ()
    # A command can set the time of writing, but not that of the last change.
    stamp = (state.st_ctime_ns, state.st_mtime_ns, state.st_size, state.st_ino)
    return _read(top, index, stamp)


def set_aside(top: str, link: str) -> str | None:
    """Rename the `.git` of a linked repository, unless the way there leads elsewhere.

    Returns:
        Its new name; nothing if there is none, or it stays.
    """
    git = os.path.join(top, link, ".git")
    folder = os.path.dirname(git)
    if not os.path.lexists(git) or os.path.realpath(folder) != folder:
        return None
    number = next(n for n in range(1, 1_000_000) if not os.path.lexists(f"{git}-unused-{n}"))
    try:
        os.rename(git, f"{git}-unused-{number}")
    except OSError:
        return None
    return f"{git}-unused-{number}"


@lru_cache(maxsize=64)
def _read(top: str, index: str, stamp: tuple[int, ...]) -> tuple[str, ...]:
    del stamp
    git = shutil.which("git")
    try:
        with open(index, "rb") as file:
            data = file.read()
        if git is None or (_IS_LINK not in data and _IS_SPLIT not in data):
            return ()
        # Lists the index alone: no program, no hook and no other repository is asked.
        listed = subprocess.run(
            [git, "-c", "core.fsmonitor=false", "ls-files", "--stage", "-z"],
            cwd=top,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    entries = (entry.partition("\t") for entry in os.fsdecode(listed).split("\0"))
    return tuple(path for mode, _, path in entries if mode.startswith("160000 "))
