"""What git has of a folder while versions of it are taken; git is started only for a new index."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container
from pathlib import Path

from workflow_cas import Stored, content
from workflow_protocol import Hash
from workflow_workspace.git._state import CheckedOut, checked_out, staged
from workflow_workspace.versions._known import KnownFiles, StatKey, is_clean, stat_key
from workflow_workspace.versions._options import Choice
from workflow_workspace.versions._records import GitState


class GitOfFolder:
    """Reads what is checked out, and which paths git has in its index."""

    def __init__(self, folder: Path, choice: Choice) -> None:
        self._folder = os.fspath(folder)
        self._choice = choice
        self._read_of: StatKey | None = None
        self._listed = b""
        self._paths: frozenset[str] | None = None

    def look(self) -> GitNow:
        """What git says now: asked once a scan."""
        found = checked_out(self._folder)
        key, is_steady = (None, False) if found is None else _key_of(found.index_file)
        return GitNow(self, found, key, is_steady=is_steady)

    def listed(self, key: StatKey, *, is_steady: bool) -> bytes:
        """The index; asked for again unless it is the file that was read."""
        if self._read_of != key:
            self._listed = staged(self._folder) or b""
            self._paths = None
            self._read_of = key if is_steady else None
        return self._listed

    def paths(self, key: StatKey, *, is_steady: bool) -> frozenset[str]:
        """What is in the index, and the folders of it."""
        listed = self.listed(key, is_steady=is_steady)
        if self._paths is None:
            self._paths = _paths_of(listed)
        return self._paths

    def keeps(self, state: GitState) -> GitState:
        """Without what holds the value of a configured key."""
        is_secret = state.branch is not None and self._choice.holds_secret(state.branch.encode())
        return GitState(head=state.head, index=state.index) if is_secret else state

    def content_of(self, listed: bytes) -> Stored | None:
        """The index as an object; `None` where there is none, or it may not be kept."""
        return None if not listed or self._choice.holds_secret(listed) else content(listed)


class GitNow:
    """What git says during one scan."""

    def __init__(
        self, git: GitOfFolder, found: CheckedOut | None, key: StatKey | None, *, is_steady: bool
    ) -> None:
        self._git = git
        self._found = found
        self._key = key
        self._is_steady = is_steady
        self._tracked: frozenset[str] | None = None

    @property
    def index_key(self) -> StatKey | None:
        """By what the index is known; `None` if it may be written again without showing it."""
        return self._key if self._is_steady else None

    def tracks(self, path: str) -> bool:
        """Whether git has this file or folder in its index."""
        if self._tracked is None:
            key = self._key
            none = frozenset[str]()
            self._tracked = none if key is None else self._git.paths(key, is_steady=self._is_steady)
        return path in self._tracked

    def state(
        self, known: KnownFiles, stored: Container[Hash], put: Callable[[Stored], None]
    ) -> GitState | None:
        """What a version has of it. `put` gets the index, if it isn't stored."""
        if self._found is None:
            return None
        index = known.git.index if known.git is not None else None
        is_known = self._key is not None and self._key == known.index
        if not is_known or index is None or index not in stored:
            listed = b""
            if self._key is not None:
                listed = self._git.listed(self._key, is_steady=self._is_steady)
            made = self._git.content_of(listed)
            index = None if made is None else made.hash
            if made is not None and made.hash not in stored:
                put(made)
        found = self._found
        return self._git.keeps(GitState(head=found.head, branch=found.branch, index=index))


def _key_of(file: str) -> tuple[StatKey | None, bool]:
    read_at_ns = time.time_ns()
    try:
        key = stat_key(os.stat(file))
    except OSError:
        return None, False
    return key, is_clean(key, read_at_ns)


def _paths_of(listed: bytes) -> frozenset[str]:
    paths: set[str] = set()
    for line in os.fsdecode(listed).split("\0"):
        path = line.partition("\t")[2]
        while path and path not in paths:
            paths.add(path)
            path = path.rpartition("/")[0]
    return frozenset(paths)
