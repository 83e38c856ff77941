"""Taking the versions of one folder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import anyio.from_thread
import msgspec
from anyio import to_thread

from workflow_cas import ObjectMissing, Store, Stored, content
from workflow_protocol import Hash
from workflow_workspace._errors import NotVersioned
from workflow_workspace.git._state import checked_out, staged
from workflow_workspace.versions._known import (
    KnownFiles,
    KnownFolder,
    StatKey,
    is_clean,
    load_known,
    new_known,
    save_known,
    stat_key,
)
from workflow_workspace.versions._options import Choice, Versioned
from workflow_workspace.versions._records import GitState, VersionRecord, version_node
from workflow_workspace.versions._rules import TooManyRules
from workflow_workspace.versions._scan import LookAtAll, Scan, Wanted
from workflow_workspace.versions._trees import read_all_trees

_BATCH_OBJECTS = 500
_BATCH_BYTES = 4 * 1024 * 1024
_SAVED_FROM = 50
"""So many files have to be read before the cache is written again."""
_MAX_TOLD = 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class Version(msgspec.Struct, frozen=True):
    """A version of a folder's files."""

    hash: Hash
    """What a record refers to; the same for the same files, git's state included."""
    objects: Sequence[Stored]
    """What has to be committed with the record; everything else is stored already."""


class FolderVersions:
    """Takes the versions of a folder. One object a folder and process; tasks may share it.

    Nothing is ever written into the folder, or into its repository.

    Args:
        store: gets the contents.
        folder: which one.
        options: what is kept of it.
        cache: a file for what is known of unchanged files, so that the next process needn't read
            them again; `None` to know it in memory only.
        secrets: values that no file which is kept may hold: those of keys.
    """

    def __init__(
        self,
        store: Store,
        folder: Path,
        options: Versioned | None = None,
        *,
        cache: Path | None = None,
        secrets: Sequence[bytes] = (),
    ) -> None:
        self.folder = folder
        self.is_new = True
        """Nothing was known of the folder before: neither here nor in the cache."""
        self._store = store
        self._choice = Choice(options or Versioned(), secrets)
        self._cache = cache
        self._known: KnownFiles | None = None
        self._order = anyio.Lock()
        self._read_since_saved = 0
        self._tracked: tuple[StatKey, frozenset[str]] | None = None

    @property
    def left_out(self) -> tuple[str, ...]:
        """Some paths that the last version leaves out, other than what `.gitignore` names."""
        found = [
            f"{path}/{name}" if path else name
            for path, folder in (self._known.folders if self._known else {}).items()
            for name, item in folder.items.items()
            if item.entry is not None and item.entry.kind == "left_out"
        ]
        return tuple(sorted(found)[:_MAX_TOLD])

    async def take(self, base: Hash | None, paths: Sequence[str] | None = None) -> Version:
        """The files as they are now.

        Where nothing has changed since `base`, it is `base` with no objects. Many new contents
        are committed in batches meanwhile, few are among the version's objects.

        Args:
            base: the version that the thread had before; what it has is kept, even if
                `.gitignore` names it by now. It must be stored.
            paths: only these have changed since then, relative to the folder, or absolute; `None`
                if that isn't known. It is only faster.

        Raises:
            NotVersioned: the folder is `/` or a home, too large, or can't be read.
            StoreError: the store failed.
        """
        async with self._order:
            known, is_stored = await self._what_is_known(base)
            kept = None
            if base is not None and known.version != base:
                kept = await read_all_trees(self._store, base)
            stored = set(kept.hashes) if kept is not None else set[Hash]()
            if is_stored:
                stored.update(known.hashes())
            else:
                _forget_contents(known, stored)
            batch = _Batch(self._store)

            def was_kept(path: str) -> bool:
                if kept is not None:
                    is_kept = path in kept.paths
                else:
                    is_kept = base is not None and _has(known, path)
                return is_kept or path in self._tracked_paths()

            wanted = None
            if paths is not None and base is not None and known.version == base:
                wanted = _wanted(paths, self.folder)
            taken, record, read = await to_thread.run_sync(
                self._scan, known, wanted, was_kept, stored, batch
            )
            version = version_node(record)
            taken.version = version.hash
            self._known, self.is_new = taken, False
            self._read_since_saved += read
            if self._cache is not None and self._read_since_saved >= _SAVED_FROM:
                self._read_since_saved = 0
                await to_thread.run_sync(save_known, self._cache, taken)
            objects = () if version.hash == base else (*batch.waiting, version)
            return Version(version.hash, objects)

    async def _what_is_known(self, base: Hash | None) -> tuple[KnownFiles, bool]:
        """What is known of the folder, and whether the version that has it is stored."""
        known = self._known
        if known is None:
            known = await to_thread.run_sync(self._first)
        if not known.version:
            return known, False
        if known.version == base:
            return known, True
        try:
            # Written again it counts as new, so that no collection takes what it refers to.
            await self._store.commit([await self._store.get(known.version)])
        except ObjectMissing:
            return known, False
        return known, True

    def _first(self) -> KnownFiles:
        place = _place(self.folder)
        fingerprint = self._choice.fingerprint
        known = None
        if self._cache is not None:
            known = load_known(self._cache, place, fingerprint)
        self.is_new = known is None
        if known is None:
            self._read_since_saved = _SAVED_FROM
            known = new_known(place, fingerprint)
        return known

    def _scan(
        self,
        known: KnownFiles,
        wanted: Wanted | None,
        was_kept: Callable[[str], bool],
        stored: set[Hash],
        batch: _Batch,
    ) -> tuple[KnownFiles, VersionRecord, int]:
        try:
            fd = os.open(self.folder, _FOLDER)
        except OSError as error:
            raise NotVersioned(self.folder, f"it can't be opened: {error.strerror}") from error
        try:
            scan = Scan(
                known,
                self._choice,
                was_kept=was_kept,
                stored=stored,
                put=batch.put,
                enough=self._enough,
            )
            try:
                root = scan.root(fd, wanted)
                folders = scan.folders if wanted is None else _merged(known, scan.folders)
            except LookAtAll:
                scan.folders, scan.files, scan.bytes = {}, 0, 0
                root = scan.root(fd, None)
                folders = scan.folders
        except TooManyRules:
            raise NotVersioned(self.folder, "its .gitignore takes too long; shorten it") from None
        finally:
            os.close(fd)
        files = sum(each.files for each in folders.values())
        size = sum(each.size for each in folders.values())
        self._enough(files, size)
        git, index = self._git(known, stored, batch)
        taken = KnownFiles(
            known.format, known.place, known.options, known.version, folders, git, index
        )
        return taken, VersionRecord(root=root, files=files, bytes=size, git=git), scan.read

    def _git(
        self, known: KnownFiles, stored: set[Hash], batch: _Batch
    ) -> tuple[GitState | None, StatKey | None]:
        found = checked_out(os.fspath(self.folder))
        if found is None:
            return None, None
        key, is_steady = _key_of_index(found.index_file)
        index = known.git.index if known.git is not None else None
        if key is None:
            index = None
        elif key != known.index or index is None or index not in stored:
            listed = staged(os.fspath(self.folder))
            index = None
            if listed is not None:
                made = content(listed)
                index = made.hash
                if index not in stored:
                    batch.put(made)
                self._tracked = (key, _paths_of(listed))
        return GitState(
            head=found.head, branch=found.branch, index=index
        ), key if is_steady else None

    def _tracked_paths(self) -> frozenset[str]:
        """What git has in its index, and the folders of it."""
        found = checked_out(os.fspath(self.folder))
        key = _key_of_index(found.index_file)[0] if found is not None else None
        if key is None:
            return frozenset()
        if self._tracked is None or self._tracked[0] != key:
            self._tracked = (key, _paths_of(staged(os.fspath(self.folder)) or b""))
        return self._tracked[1]

    def _enough(self, files: int, size: int) -> None:
        options = self._choice.options
        if files > options.max_files:
            what = f"it has more than {options.max_files} files"
        elif size > options.max_bytes:
            what = f"its files have more than {options.max_bytes // (1024 * 1024)} MiB"
        else:
            return
        raise NotVersioned(
            self.folder,
            f"{what}; name what needn't be kept in .gitignore or `exclude`, or raise the limit",
        )


class _Batch:
    """New objects: committed when they are many, else left to go with the record."""

    def __init__(self, store: Store) -> None:
        self.waiting: list[Stored] = []
        self._bytes = 0
        self._store = store

    def put(self, made: Stored) -> None:
        """Called in the thread that scans."""
        self.waiting.append(made)
        self._bytes += len(made.data)
        if len(self.waiting) >= _BATCH_OBJECTS or self._bytes >= _BATCH_BYTES:
            anyio.from_thread.run(self._store.commit, tuple(self.waiting))
            self.waiting.clear()
            self._bytes = 0


def _place(folder: Path) -> tuple[int, int]:
    """Which folder it is.

    Raises:
        NotVersioned: it isn't there, or one of which no versions are kept.
    """
    try:
        state = os.stat(folder)
    except OSError as error:
        raise NotVersioned(folder, f"it can't be opened: {error.strerror}") from error
    real = os.path.realpath(folder)
    home = os.path.realpath(os.path.expanduser("~"))
    if real == "/":
        raise NotVersioned(folder, "it is the whole file system; work in a folder of its own")
    if home == real or home.startswith(real + "/"):
        raise NotVersioned(folder, "it is a home; work in a folder of its own")
    return state.st_dev, state.st_ino


def _has(known: KnownFiles, path: str) -> bool:
    folder, _, name = path.rpartition("/")
    found = known.folders.get(folder)
    item = found.items.get(name) if found is not None else None
    return item is not None and item.entry is not None


def _forget_contents(known: KnownFiles, stored: set[Hash]) -> None:
    """What refers to objects that may not be stored has to be read again."""
    for folder in known.folders.values():
        for name, item in list(folder.items.items()):
            entry = item.entry
            if entry is not None and entry.kind == "file" and not stored.issuperset(entry.parts):
                del folder.items[name]


def _wanted(paths: Sequence[str], folder: Path) -> Wanted | None:
    """The paths as a tree of names; `None` where one doesn't lead into the folder plainly."""
    wanted: Wanted = {}
    for path in paths:
        inside = os.path.relpath(path, folder) if os.path.isabs(path) else path
        parts = [part for part in inside.split("/") if part not in {"", "."}]
        if not parts or ".." in parts:
            return None
        at = wanted
        for part in parts[:-1]:
            inner = at.setdefault(part, {})
            if inner is None:
                break
            at = inner
        else:
            at[parts[-1]] = None
    return wanted


def _merged(known: KnownFiles, seen: dict[str, KnownFolder]) -> dict[str, KnownFolder]:
    """All folders, after only some were looked at."""
    folders = {**known.folders, **seen}
    gone = [
        f"{path}/{name}" if path else name
        for path, folder in seen.items()
        if path in known.folders
        for name, item in known.folders[path].items.items()
        if item.entry is not None and item.entry.kind == "folder" and not _is_folder(folder, name)
    ]
    for lost in gone:
        for path in [each for each in folders if each == lost or each.startswith(lost + "/")]:
            del folders[path]
    return folders


def _is_folder(folder: KnownFolder, name: str) -> bool:
    item = folder.items.get(name)
    return item is not None and item.entry is not None and item.entry.kind == "folder"


def _key_of_index(file: str) -> tuple[StatKey | None, bool]:
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
