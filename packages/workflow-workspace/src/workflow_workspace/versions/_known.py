"""What is known of a folder's files since they were read: git's index calls that the stat cache.

A file is not read again while its size, times, inode and mode are those that it had, if they were
older than the reading by more than a tick of the file system's clock. One that was written in the
same tick could have been written again without showing it ("racily clean", racy-git in git's
documentation).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Container, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from workflow_protocol import Hash
from workflow_workspace.versions._records import GitState, VersionEntry

_FORMAT = 1
_TICK_NS = 50_000_000
"""More than the kernel's clock for files moves at once (4 or 10 ms)."""
_COARSE_TICK_NS = 2_100_000_000
"""Of file systems that keep whole seconds, or two (FAT)."""

StatKey = tuple[int, int, int, int, int]


class KnownItem(msgspec.Struct, array_like=True):
    """One name in a folder."""

    key: StatKey
    """Mode, size, time of writing, time of change, inode."""
    entry: VersionEntry | None
    """What a version has of it; `None` where that is nothing."""
    ignored: bool = False
    """Whether `.gitignore` names it."""
    clean: bool = True
    """Whether the same `key` again says that nothing was written."""

    def needs_only(self, stored: Container[Hash]) -> bool:
        """Whether the contents of a file are stored."""
        entry = self.entry
        return entry is None or entry.kind != "file" or all(part in stored for part in entry.parts)


class KnownFolder(msgspec.Struct, array_like=True):
    """A folder whose items are known."""

    rules: bytes
    """The same while no `.gitignore` from the top down to here has changed."""
    items: dict[str, KnownItem]
    tree: Hash
    files: int
    """In this folder itself, links too."""
    size: int
    """Of the files in it, in bytes."""


class KnownFiles(msgspec.Struct, array_like=True):
    """All that is known of a folder, as one version has it."""

    format: int
    place: tuple[int, int]
    """Device and inode of the folder itself."""
    options: bytes
    version: Hash
    folders: dict[str, KnownFolder]
    """By path; that of the folder itself is empty."""
    git: GitState | None = None
    index: StatKey | None = None
    """Of the file of git's index, when `git` was read."""

    def hashes(self) -> Iterator[Hash]:
        """All objects of the version, its own aside."""
        for folder in self.folders.values():
            yield folder.tree
            for item in folder.items.values():
                if item.entry is not None:
                    yield from item.entry.parts
        if self.git is not None and self.git.index is not None:
            yield self.git.index

    def trees_and_index(self) -> Iterator[Hash]:
        """The objects of the version that are no contents of files."""
        yield from [folder.tree for folder in self.folders.values()]
        if self.git is not None and self.git.index is not None:
            yield self.git.index

    def has(self, path: str) -> bool:
        """Whether the version keeps something under this path."""
        folder, _, name = path.rpartition("/")
        found = self.folders.get(folder)
        item = found.items.get(name) if found is not None else None
        return item is not None and item.entry is not None

    def without_contents(self, stored: Container[Hash]) -> KnownFiles:
        """The same without files whose contents may not be stored: they have to be read again."""
        folders: dict[str, KnownFolder] = {}
        for path, folder in self.folders.items():
            items = {name: item for name, item in folder.items.items() if item.needs_only(stored)}
            folders[path] = msgspec.structs.replace(folder, items=items)
        return msgspec.structs.replace(self, folders=folders)


def new_known(place: tuple[int, int], options: bytes) -> KnownFiles:
    """Nothing is known yet."""
    return KnownFiles(_FORMAT, place, options, Hash(""), {})


def stat_key(state: os.stat_result) -> StatKey:
    """What a file's bytes are known by."""
    return (
        state.st_mode,
        state.st_size,
        state.st_mtime_ns,
        state.st_ctime_ns,
        state.st_ino,
    )


def is_clean(key: StatKey, read_at_ns: int) -> bool:
    """Whether what is written after the reading began will show in the key."""
    changed_ns = max(key[2], key[3])
    tick_ns = _TICK_NS if key[3] % 1_000_000_000 else _COARSE_TICK_NS
    return changed_ns + tick_ns < read_at_ns


def load_known(file: Path, place: tuple[int, int], options: bytes) -> KnownFiles | None:
    """What an earlier process has known; `None` if nothing, or of another folder or options."""
    try:
        known = msgspec.msgpack.decode(file.read_bytes(), type=KnownFiles)
    except (OSError, msgspec.MsgspecError):
        return None
    is_ours = (known.format, known.place, known.options) == (_FORMAT, place, options)
    return known if is_ours else None


def save_known(file: Path, known: KnownFiles) -> None:
    """Keep it for the next process. A disk that can't is no fault: files are read again then."""
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd, temporary = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".tmp")
        try:
            with open(fd, "wb") as opened:
                opened.write(msgspec.msgpack.encode(known))
            os.replace(temporary, file)
        except BaseException:
            os.unlink(temporary)
            raise
