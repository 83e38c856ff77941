"""The table of what a sandbox sees where, and the words of bubblewrap for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

FROM_FILE = "{fd}"
"""Stands for the descriptor of a file that bubblewrap copies."""


class _Entry(NamedTuple):
    words: tuple[str, ...]
    file: Path | None


class Mounts:
    """What is where. A path has one entry, the last; what lies deeper is mounted later."""

    def __init__(self, entries: dict[str, _Entry] | None = None) -> None:
        self._entries = dict(entries or {})

    def copy(self) -> Mounts:
        """A table of its own with the same entries."""
        return Mounts(self._entries)

    def put(self, path: str, *words: str, file: Path | None = None) -> None:
        """Say how bubblewrap makes a path. It reads `file` from the descriptor `FROM_FILE`."""
        self._entries[path] = _Entry(words, file)

    def bind(self, path: str, *, writable: bool) -> None:
        """Show what is there. What the table says of paths inside is not needed then."""
        inside = path.rstrip("/") + "/"
        for other in [other for other in self._entries if other.startswith(inside)]:
            del self._entries[other]
        self.put(path, "--bind" if writable else "--ro-bind", path, path)

    def nearest(self, path: str) -> str | None:
        """The nearest folder above a path that the table has."""
        return next((each for each in map(str, Path(path).parents) if each in self._entries), None)

    def __iter__(self) -> Iterator[str]:
        """The paths that the table has."""
        return iter(self._entries)

    def __contains__(self, path: str) -> bool:
        """Whether the table itself has a path."""
        return path in self._entries

    def is_writable(self, path: str) -> bool:
        """Whether the table binds this very path for writing."""
        return path in self._entries and self._entries[path].words[0] == "--bind"

    def shows(self, path: str) -> bool:
        """Whether a path of the machine is seen, by itself or in a folder that is."""
        above = (path, *map(str, Path(path).parents))
        entry = next((self._entries[each] for each in above if each in self._entries), None)
        return entry is not None and entry.words[0] in {"--bind", "--ro-bind"}

    def open(self) -> tuple[list[str], list[int]]:
        """The words for all of it, and the descriptors in them, which the caller closes."""
        fds: list[int] = []
        words: list[str] = []
        for path in sorted(self._entries, key=lambda path: path.split("/")):
            entry = self._entries[path]
            if entry.file is not None:
                try:
                    fds.append(os.open(entry.file, os.O_RDONLY | os.O_CLOEXEC))
                except OSError:
                    continue  # it went, or can't be read
            words += [str(fds[-1]) if word == FROM_FILE else word for word in entry.words]
        return words, fds
