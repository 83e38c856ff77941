"""Taking the versions of one folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.from_thread
import msgspec
from anyio import to_thread

from workflow_cas import ObjectMissing, Store, Stored
from workflow_protocol import Hash
from workflow_workspace._errors import NotVersioned
from workflow_workspace.versions._git import GitOfFolder
from workflow_workspace.versions._known import (
    KnownFiles,
    load_known,
    new_known,
    save_known,
)
from workflow_workspace.versions._named_paths import merged, wanted_names
from workflow_workspace.versions._options import Choice, Versioned
from workflow_workspace.versions._records import VersionRecord, version_node
from workflow_workspace.versions._rules import TooManyRules
from workflow_workspace.versions._scan import LookAtAll, Scan, Wanted
from workflow_workspace.versions._trees import KeptFiles, read_all_trees

_BATCH_OBJECTS = 500
_BATCH_BYTES = 4 * 1024 * 1024
_SAVED_FROM = 50
"""So many files have to be read before the cache is written again."""
_RECENT = 4
"""Versions of which all is known: those of threads that take turns in a folder."""
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
        self._git = GitOfFolder(folder, self._choice)
        self._recent: dict[Hash, KnownFiles] = {}
        """What was known as of the last versions, the newest last."""
        self._order = anyio.Lock()
        self._read_since_saved = 0

    @property
    def left_out(self) -> tuple[str, ...]:
        """Some paths that the last version leaves out, other than what `.gitignore` names."""
        found = [
            f"{path}/{name}" if path else name
            for path, folder in (self._latest.folders if self._latest else {}).items()
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
            stored = _StoredHashes(kept, known if is_stored else None)
            if not is_stored:
                known = known.without_contents(stored)

            def had(path: str) -> bool:
                if kept is not None:
                    return path in kept.paths
                return base is not None and known.has(path)

            wanted = None
            if paths is not None and known.version == base:
                wanted = wanted_names(paths, self.folder)
            batch = _Batch(self._store)
            scanned = await to_thread.run_sync(self._scan, known, wanted, had, stored, batch)
            version = version_node(scanned.record)
            if batch.committed:  # who else begins in this folder needn't read as much again
                await self._store.commit([*batch.waiting, version])
                batch.waiting.clear()
            await self._remember(scanned, version.hash)
            objects = () if version.hash == base else (*batch.waiting, version)
            return Version(version.hash, objects)

    async def _remember(self, scanned: _Scanned, version: Hash) -> None:
        scanned.known.version = version
        self.is_new = False
        self._recent.pop(version, None)
        self._recent[version] = scanned.known
        if len(self._recent) > _RECENT:
            del self._recent[next(iter(self._recent))]
        self._read_since_saved += scanned.read
        if self._cache is not None and self._read_since_saved >= _SAVED_FROM:
            self._read_since_saved = 0
            await to_thread.run_sync(save_known, self._cache, scanned.known)

    async def _what_is_known(self, base: Hash | None) -> tuple[KnownFiles, bool]:
        """What is known of the folder, and whether the version that has it is stored."""
        if base is not None and base in self._recent:
            return self._recent[base], True
        known = self._latest
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

    @property
    def _latest(self) -> KnownFiles | None:
        return next(reversed(self._recent.values()), None)

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
        had: Callable[[str], bool],
        stored: _StoredHashes,
        batch: _Batch,
    ) -> _Scanned:
        git = self._git.look()

        def scan(*, measure: bool = False) -> Scan:
            return Scan(
                known,
                self._choice,
                was_kept=lambda path: had(path) or git.tracks(path),
                stored=stored,
                put=batch.put,
                enough=self._enough,
                measure=measure,
            )

        with self._opened() as fd:
            if not known.folders:
                scan(measure=True).root(fd, None)  # too large is told before anything is stored
            try:
                reading = scan()
                root = reading.root(fd, wanted)
                folders = reading.folders if wanted is None else merged(known, reading.folders)
            except LookAtAll:
                reading = scan()
                root = reading.root(fd, None)
                folders = reading.folders
        files = sum(each.files for each in folders.values())
        size = sum(each.size for each in folders.values())
        self._enough(files, size)
        state = git.state(known, stored, batch.put)
        taken = msgspec.structs.replace(known, folders=folders, git=state, index=git.index_key)
        record = VersionRecord(root=root, files=files, bytes=size, git=state)
        return _Scanned(taken, record, reading.read)

    @contextmanager
    def _opened(self) -> Generator[int]:
        fd = -1
        try:
            fd = os.open(self.folder, _FOLDER)
            yield fd
        except OSError as error:
            raise NotVersioned(self.folder, f"it can't be read: {error.strerror}") from error
        except TooManyRules:
            raise NotVersioned(self.folder, "its .gitignore takes too long; shorten it") from None
        finally:
            if fd >= 0:
                os.close(fd)

    def _enough(self, files: int, size: int) -> None:
        anyio.from_thread.check_cancelled()
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


class _StoredHashes(Container[Hash]):
    """The objects that are stored for sure; those of files are put together when first needed."""

    def __init__(self, kept: KeptFiles | None, known: KnownFiles | None) -> None:
        self._kept = frozenset[Hash]() if kept is None else kept.hashes
        self._known = known
        self._few = frozenset[Hash]() if known is None else frozenset(known.trees_and_index())
        self._all: frozenset[Hash] | None = None

    def __contains__(self, hash: object) -> bool:
        if hash in self._few or hash in self._kept:
            return True
        if self._all is None:
            self._all = frozenset() if self._known is None else frozenset(self._known.hashes())
        return hash in self._all


class _Scanned(msgspec.Struct, frozen=True):
    """What one scan gave."""

    known: KnownFiles
    record: VersionRecord
    read: int
    """Files that were read."""


class _Batch:
    """New objects: committed when they are many, else left to go with the record."""

    def __init__(self, store: Store) -> None:
        self.waiting: list[Stored] = []
        self.committed = False
        """Whether some had to be committed already."""
        self._bytes = 0
        self._store = store

    def put(self, made: Stored) -> None:
        """Called in the thread that scans."""
        self.waiting.append(made)
        self._bytes += len(made.data)
        if len(self.waiting) >= _BATCH_OBJECTS or self._bytes >= _BATCH_BYTES:
            anyio.from_thread.run(self._store.commit, tuple(self.waiting))
            self.waiting.clear()
            self.committed = True
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
