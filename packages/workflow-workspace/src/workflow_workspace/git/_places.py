"""Which files of a repository a command may write, and which would make git run something.

Git runs what its configuration and its hooks say, whoever wrote them, also on `git status`. So
those are unwritable for commands and tools, with all that says where they are. They are looked up
by name: nothing here walks through a workspace, and no git is run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

import msgspec

CONTROL_FILES = (
    "config",
    "config.worktree",
    "commondir",
    "gitdir",
    "objects/info/alternates",
    "objects/info/http-alternates",
)
"""What says what git runs and where a repository has its parts, in a folder of git."""

HOOKS = "hooks"
GIT_FOLDER = ("HEAD", "objects", "refs")
"""What a folder has that git takes for one of its own, with or without the name `.git`."""

WORKTREE_FILES = ("commondir", "gitdir", "config.worktree")
"""The same in `worktrees/NAME`, what a linked worktree has of its own."""

_WRITTEN = {
    *("objects", "refs", "logs", "packed-refs", "info", "rr-cache", "lfs", "gc.log", "gc.pid"),
    "worktrees",
}
"""What git writes in the folder that a worktree shares with others."""

_MAX_MODULES = 200
_MAX_FOLDERS = 5_000
_NOT_ENTERED = {".git", "node_modules", ".venv"}
_MAX_BYTES = 100_000
# Commands can write such a file: spaces are taken once, and never across lines.
WORKTREE = re.compile(r"^[^\S\n]*+worktree[^\S\n]*+=[^\S\n]*+(\S.*)$", re.MULTILINE | re.IGNORECASE)


class GitPlaces(msgspec.Struct, frozen=True):
    """What a command may do with the parts of a repository. All paths are real ones."""

    writable: list[str] = []
    """Folders outside of the workspace that git writes to."""
    readable: list[str] = []
    """The `.git` files of other worktrees: git takes one without for deleted."""
    read_only: list[str] = []
    """What it may read and not change."""
    absent: list[str] = []
    """What isn't there and must not come: removed when a command has made it."""
    tops: list[str] = []
    """Where the repositories have their files."""


def find_git_places(top: str, root: str, places: GitPlaces) -> None:
    """Add the places of the repository whose files begin in a folder, if there is one.

    Args:
        top: the folder, or a repository without files (a bare one).
        root: what a command can write to anyway; `top` is in it.
    """
    git = os.path.join(top, ".git")
    places.tops.append(top)
    if os.path.islink(git):
        return  # a link can't be held in place
    if os.path.isdir(git):
        _add_folder(git, root, places)
    elif os.path.isfile(git):
        places.read_only.append(git)
        _add_pointed_to(top, root, places)
    elif is_git_folder(top):
        _add_folder(top, root, places)


def is_git_folder(path: str) -> bool:
    """Whether git takes a folder for one of its own (is_git_directory in its setup.c)."""
    return all(os.path.lexists(os.path.join(path, name)) for name in GIT_FOLDER)


def git_folder_of(top: str) -> str | None:
    """Where git keeps what belongs to the files of this folder."""
    git = os.path.join(top, ".git")
    return git if os.path.isdir(git) else _path_in(git, "gitdir:")


@lru_cache(maxsize=64)
def nested_repositories(root: str) -> tuple[str, ...]:
    """The folders below this one that are repositories. Looked for once, so not on each command."""
    found: list[str] = []
    for number, (path, folders, files) in enumerate(os.walk(root)):
        if ".git" in folders or ".git" in files or is_git_folder(path):
            found.append(path)
        folders[:] = [name for name in folders if name not in _NOT_ENTERED]
        if number >= _MAX_FOLDERS or len(found) >= _MAX_MODULES:
            break
    return tuple(path for path in found if path != root)


def enclosing_repository(folder: str) -> str | None:
    """The nearest folder above this one that has a `.git`."""
    parents = Path(folder).parents
    return next((os.fspath(top) for top in parents if os.path.lexists(top / ".git")), None)


def _add_folder(git: str, root: str, places: GitPlaces) -> None:
    _hold(git, CONTROL_FILES, places)
    hooks = os.path.join(git, HOOKS)
    with suppress(OSError):
        os.makedirs(hooks, exist_ok=True)  # so that it can be held as it is: empty
    _hold(git, [HOOKS], places)
    for worktree in _listed(os.path.join(git, "worktrees")):
        file = _path_in(os.path.join(worktree, "gitdir"))
        if file is None or _path_in(file, "gitdir:") != worktree:
            places.read_only.append(worktree)
            continue
        _hold(worktree, WORKTREE_FILES, places)
        if not _is_in(file, root):
            places.readable.append(file)
    for module in _modules(os.path.join(git, "modules"), [_MAX_MODULES]):
        _add_folder(module, root, places)
        top = _work_tree(module)
        if top is not None and os.path.isfile(os.path.join(top, ".git")):
            places.read_only.append(os.path.join(top, ".git"))


def _hold(folder: str, names: Sequence[str], places: GitPlaces) -> None:
    for name in names:
        path = os.path.join(folder, name)
        if os.path.realpath(os.path.dirname(path)) != os.path.dirname(path):
            continue  # a folder was replaced by a link, which leads elsewhere
        if os.path.islink(path):
            path = os.path.realpath(path)
        (places.read_only if os.path.lexists(path) else places.absent).append(path)


def _listed(folder: str) -> list[str]:
    try:
        return [os.path.join(folder, name) for name in sorted(os.listdir(folder))]
    except OSError:
        return []


def _modules(folder: str, budget: list[int]) -> Iterator[str]:
    """The folders of submodules; a name may have slashes in it."""
    for path in _listed(folder):
        if budget[0] <= 0 or not os.path.isdir(path) or os.path.islink(path):
            continue
        budget[0] -= 1
        if os.path.exists(os.path.join(path, "HEAD")):
            yield path
        else:
            yield from _modules(path, budget)


def _add_pointed_to(top: str, root: str, places: GitPlaces) -> None:
    """Add where a `.git` file leads, if what is there says that it belongs to this folder.

    Else a command could write such a file to see any repository of this machine.
    """
    folder = _path_in(os.path.join(top, ".git"), "gitdir:")
    if folder is None:
        return
    common = _path_in(os.path.join(folder, "commondir"))
    if common is not None:
        is_ours = _path_in(os.path.join(folder, "gitdir")) == os.path.join(top, ".git")
        is_there = os.path.dirname(folder) == os.path.join(common, "worktrees")
        if is_ours and is_there and not _is_in(common, root):
            _add_worktree(top, folder, common, places)
    elif _is_in(folder, root):
        _add_folder(folder, root, places)
    elif _work_tree(folder) == top:  # of a submodule
        places.writable.append(folder)
        _add_folder(folder, root, places)


def _is_in(path: str, root: str) -> bool:
    return path.startswith(root.rstrip("/") + "/")


def _add_worktree(top: str, folder: str, common: str, places: GitPlaces) -> None:
    places.writable.extend([common, folder])
    _add_folder(common, top, places)
    kept = [path for path in _listed(common) if os.path.basename(path) not in _WRITTEN]
    places.read_only.extend(path for path in kept if not path.endswith(".lock"))


def _work_tree(git: str) -> str | None:
    """Where the files of a submodule are, by the configuration in its folder."""
    found = WORKTREE.search(_text(os.path.join(git, "config")))
    if found is None:
        return None
    value = re.sub(r"\\(.)", r"\1", found[1].rstrip().strip('"'))
    return os.path.realpath(os.path.join(git, value))


def _path_in(file: str, word: str = "") -> str | None:
    """The path that a file of git holds, perhaps after a word."""
    line = _text(file).rstrip("\n")
    if not line.startswith(word) or not line[len(word) :].strip():
        return None
    return os.path.realpath(os.path.join(os.path.dirname(file), line[len(word) :].strip()))


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read(_MAX_BYTES)
    except OSError:
        return ""
