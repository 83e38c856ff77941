"""A thread file as a store that can only be read: to check, to replay and to import it."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO

import anyio
from anyio import to_thread

from workflow_cas import (
    AmbiguousHash,
    Entry,
    GcReport,
    Node,
    ObjectMissing,
    RefMove,
    Store,
    StoreCorrupt,
    Stored,
    StoreReadOnly,
    VerifyReport,
    restore,
)
from workflow_execute._errors import ThreadFileError
from workflow_execute.exchange._check import NotAThread, check_threads
from workflow_execute.exchange._format import KINDS, Header, ThreadRefs
from workflow_execute.exchange._reader import FileReader, Place
from workflow_execute.threads._summary import thread_ref
from workflow_protocol import Hash, ThreadId

_MIN_PREFIX = 4


@asynccontextmanager
async def open_thread_file(path: Path) -> AsyncGenerator[ThreadFile]:
    """Open what `export_thread` wrote, verify all of it, and close it.

    Every byte is read once and hashed, and every record is decoded. What remains in memory is the
    place of each object, some 300 bytes for each.

    Raises:
        ThreadFileError: it is no thread file, not whole, or of a newer version.
        OSError: it can't be read.
    """
    file = await to_thread.run_sync(_open, path)
    with file:
        opened = ThreadFile(path, file)
        await opened.load()
        yield opened


def _open(path: Path) -> IO[bytes]:
    """Open a regular file, and never wait for somebody who writes a pipe."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ThreadFileError(path, "this is not a regular file; write it to the disk first")
    return os.fdopen(descriptor, "rb")


class ThreadFile(Store):
    """The threads of one file. Made by `open_thread_file`.

    It is a store that can't be written, so that whatever reads threads, such as `read_thread` and
    `Engine.replay`, reads them here too.
    """

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.path = path
        self._file = file
        self._places: dict[Hash, Place] = {}
        self._refs: dict[str, Hash] = {}
        self._entries: list[Entry] = []
        self.threads: tuple[ThreadRefs, ...] = ()
        """The thread that the file is about, then those that it started."""
        self.has_bundle = False
        """Whether it brings the code of its workflow."""

    @property
    def thread_id(self) -> ThreadId:
        """The thread that the file is about."""
        return ThreadId(self.threads[0].id)

    @property
    def hashes(self) -> Iterator[Hash]:
        """Its objects, each after those that it refers to."""
        return iter(self._places)

    @property
    def size(self) -> int:
        """The bytes of the data of its objects."""
        return sum(each.size for each in self._places.values())

    async def load(self) -> None:
        """Read all of the file, and make sure that it is whole and what it says.

        Raises:
            ThreadFileError: it isn't.
        """
        header = await to_thread.run_sync(self._scan)
        self.threads = header.threads
        self._refs = {
            thread_ref(thread.id, what): hash
            for thread in header.threads
            for what, hash in thread.targets.items()
        }
        try:
            checked = await check_threads(self, header.threads, objects=len(self._places))
        except NotAThread as error:
            raise ThreadFileError(self.path, str(error)) from error
        self._entries = [each.entry for each in checked]
        self.has_bundle = any(each.bundle is not None for each in checked)

    def _scan(self) -> Header:
        reader = FileReader(self.path, self._file)
        header = reader.header()
        needed_by_none: set[Hash] = set()
        for _ in range(header.objects):
            stored, place = reader.object()
            if stored.hash in self._places:
                reader.refuse(f"its object {stored.hash} is there twice")
            for ref in stored.refs:
                if ref not in self._places:
                    reader.refuse(f"its object {stored.hash} needs {ref}, which is not before it")
            self._places[stored.hash] = place
            needed_by_none.difference_update(stored.refs)
            needed_by_none.add(stored.hash)
        reader.end()
        for thread in header.threads:
            for what, hash in thread.targets.items():
                if hash not in self._places:
                    reader.refuse(
                        f"the {what} of its thread {thread.id} is missing: {hash[:100]!r}"
                    )
                needed_by_none.discard(hash)
        if needed_by_none:
            reader.refuse(f"no thread needs its object {min(needed_by_none)}")
        if header.bytes != self.size:
            reader.refuse(f"it has {self.size} bytes of data, and should have {header.bytes}")
        return header

    async def get(self, hash: Hash) -> Stored:
        return (await self.get_many([hash]))[0]

    async def get_many(self, hashes: Sequence[Hash]) -> list[Stored]:
        return await to_thread.run_sync(lambda: [self._get(hash) for hash in hashes])

    async def chain(self, last: Hash, ends: Callable[[Node], bool]) -> list[Node]:
        def follow() -> list[Node]:
            nodes = [self._get(last).as_node()]
            while not ends(nodes[-1]) and nodes[-1].refs:
                nodes.append(self._get(nodes[-1].refs[0]).as_node())
            return nodes

        return await to_thread.run_sync(follow)

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        raise StoreReadOnly("a thread file can't be written; import it first", path=self.path)

    async def ref(self, name: str) -> Hash | None:
        return self._refs.get(name)

    async def refs(self, prefix: str = "") -> dict[str, Hash]:
        return {name: self._refs[name] for name in sorted(self._refs) if name.startswith(prefix)}

    async def entries(
        self,
        *,
        labels: Sequence[str] = (),
        any_of: Sequence[str] | None = None,
        first: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        found = [
            each
            for each in sorted(self._entries, key=lambda entry: entry.ref, reverse=True)
            if set(labels) <= set(each.labels)
            and (any_of is None or not set(any_of).isdisjoint(each.labels))
            and (first is None or each.ref >= first)
            and (before is None or each.ref < before)
        ]
        return found[:limit]

    async def find(self, prefix: str) -> Hash:
        digits = prefix.lower()
        found = [hash for hash in self._places if hash.startswith(digits)]
        if len(digits) < _MIN_PREFIX or not found:
            raise ObjectMissing(prefix)
        if len(found) > 1:
            raise AmbiguousHash(prefix, sorted(found)[:10])
        return found[0]

    @asynccontextmanager
    async def watch(self, prefix: str = "") -> AsyncGenerator[AsyncIterator[RefMove]]:
        async def nothing_moves() -> AsyncIterator[RefMove]:
            await anyio.sleep_forever()
            yield RefMove("", None, None)

        yield nothing_moves()

    async def verify(self) -> VerifyReport:
        for hash in self._places:
            await self.get(hash)
        return VerifyReport(
            objects=len(self._places),
            refs=len(self._refs),
            bytes=self.size,
            entries=len(self._entries),
        )

    async def collect_garbage(self, *, keep_newer_than_s: float, dry_run: bool = False) -> GcReport:
        raise StoreReadOnly("a thread file has no garbage", path=self.path)

    def _get(self, hash: Hash) -> Stored:
        if (place := self._places.get(hash)) is None:
            raise ObjectMissing(hash, "the thread file has not got it")
        stored = restore(hash, KINDS[place.kind], self._read(place))
        if stored is None:
            raise StoreCorrupt(f"object {hash} has changed since the file was opened", hash=hash)
        return stored

    def _read(self, place: Place) -> bytes:
        """Read where an object is; several threads may do so at once."""
        return os.pread(self._file.fileno(), place.size, place.offset)
