"""The store in one SQLite file: a writer that groups commits, and readers that never wait."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, closing, nullcontext
from pathlib import Path
from typing import NamedTuple, TypeVar

import anyio
from anyio import from_thread, to_thread

from workflow_cas._entries import Entry, check_entries
from workflow_cas._errors import StoreError
from workflow_cas._objects import Node, RefMove, Stored
from workflow_cas._store import (
    GcReport,
    Store,
    VerifyReport,
    check_moves,
    check_prefix,
    ref_changes,
    single_match,
)
from workflow_cas.sqlite._database import Connections, Durability
from workflow_cas.sqlite._entry_rows import find_entries
from workflow_cas.sqlite._inspect import check_pages, collect, verify
from workflow_cas.sqlite._rows import (
    data_version,
    find,
    read_chain,
    read_object,
    read_ref,
    read_refs,
)
from workflow_cas.sqlite._sqlite_errors import typed_errors
from workflow_cas.sqlite._writer import Writer
from workflow_protocol import Hash

T = TypeVar("T")

_READERS = 4
_POLL_S = 0.25


@asynccontextmanager
async def open_store(
    path: str | Path,
    *,
    durability: Durability = "full",
    read_only: bool = False,
    busy_timeout_s: float = 5.0,
) -> AsyncGenerator[SqliteStore]:
    """Open the store in this file, which is made if it doesn't exist (mode 0600), and close it.

    Example:
        ```python
        async with open_store("threads.sqlite3") as store:
            engine = Engine(store)
            threads = await list_threads(store)
        ```

    Args:
        path: the file. SQLite keeps two more beside it while it is open, `-wal` and `-shm`. A store
            in memory is a `MemoryStore`.
        durability: `full` survives the loss of power after each commit; `normal` survives the
            death of the process, and after a loss of power may miss the latest commits.
        read_only: write nothing. Also works on a medium that can't be written.
        busy_timeout_s: how long a commit waits for another process that is writing.

    Raises:
        StoreFormat: a newer version or another program wrote the file.
        StoreCorrupt: it is no SQLite database, or its first pages are damaged.
        StoreReadOnly: it can't be written, and `read_only` is false.
        StoreBusy: another process kept it locked.
        StoreFull: there is no room to create it.
        StoreError: `read_only` is true and there is no such file, or it is `:memory:`.
    """
    if str(path) == ":memory:":  # SQLite's own word, and no file that anybody wants
        raise StoreError("a store in memory is a MemoryStore(); name a file to open_store")
    connections = Connections(
        Path(path), durability=durability, read_only=read_only, busy_timeout_s=busy_timeout_s
    )
    await to_thread.run_sync(connections.open)
    store = SqliteStore(connections)
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.close()


class _RefState(NamedTuple):
    """What a watcher saw last; `version` tells SQLite's states of the file apart."""

    version: int
    refs: dict[str, Hash]


class SqliteStore(Store):
    """Made by `open_store`. Any number of tasks of one event loop may use it at once."""

    def __init__(self, connections: Connections) -> None:
        self.path = connections.path
        self._connections = connections
        self._writer = Writer(connections, self._tell_watchers)
        # Threads of its own: a store must go on while tools keep the shared ones busy.
        self._read_threads = anyio.CapacityLimiter(_READERS)
        self._watchers: set[anyio.Event] = set()

    async def close(self) -> None:
        """Write what waits and close the file."""
        await self._writer.close()
        await to_thread.run_sync(self._connections.close)

    async def get(self, hash: Hash) -> Stored:
        return (await self.get_many([hash]))[0]

    async def get_many(self, hashes: Sequence[Hash]) -> list[Stored]:
        def read(connection: sqlite3.Connection) -> list[Stored]:
            return [read_object(connection, hash) for hash in hashes]

        return await self._read(read)

    async def chain(self, last: Hash, ends: Callable[[Node], bool]) -> list[Node]:
        return await self._read(lambda connection: read_chain(connection, last, ends))

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        check_moves(moves)
        check_entries(entries, moves)
        await self._writer.commit(objects, moves, entries)

    async def ref(self, name: str) -> Hash | None:
        return await self._read(lambda connection: read_ref(connection, name))

    async def refs(self, prefix: str = "") -> dict[str, Hash]:
        return await self._read(lambda connection: read_refs(connection, prefix))

    async def entries(
        self,
        *,
        labels: Sequence[str] = (),
        any_of: Sequence[str] | None = None,
        first: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        return await self._read(
            lambda connection: find_entries(
                connection, labels=labels, any_of=any_of, first=first, before=before, limit=limit
            )
        )

    async def find(self, prefix: str) -> Hash:
        digits = check_prefix(prefix)
        return single_match(prefix, await self._read(lambda connection: find(connection, digits)))

    @asynccontextmanager
    async def watch(self, prefix: str = "") -> AsyncGenerator[AsyncIterator[RefMove]]:
        connection = await to_thread.run_sync(self._connections.another)
        with closing(connection):
            state = await self._read_ref_state(connection, prefix, None)
            async with aclosing(self._changes(connection, prefix, state)) as changes:
                yield changes

    async def verify(self) -> VerifyReport:
        def run() -> VerifyReport:
            with self._connections.session() as connection:
                return verify(connection, from_thread.check_cancelled)

        return await to_thread.run_sync(run, limiter=self._read_threads)

    async def collect_garbage(self, *, keep_newer_than_s: float, dry_run: bool = False) -> GcReport:
        def run() -> GcReport:
            with self._connections.session() as connection:
                check_pages(connection)
            # One transaction: nobody can write between the marking and the removal.
            with (
                nullcontext() if dry_run else self._writer.transaction_lock,
                self._connections.session(write=not dry_run) as connection,
            ):
                return collect(
                    connection,
                    from_thread.check_cancelled,
                    keep_newer_than_s=keep_newer_than_s,
                    dry_run=dry_run,
                )

        return await to_thread.run_sync(run, limiter=self._read_threads)

    async def _read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        def run() -> T:
            with self._connections.reader() as connection:
                return query(connection)

        return await to_thread.run_sync(run, limiter=self._read_threads)

    def _tell_watchers(self) -> None:
        for watcher in self._watchers:
            watcher.set()

    async def _changes(
        self, connection: sqlite3.Connection, prefix: str, state: _RefState
    ) -> AsyncGenerator[RefMove]:
        while True:
            moved = anyio.Event()
            self._watchers.add(moved)
            try:
                before, state = state, await self._read_ref_state(connection, prefix, state)
                for change in ref_changes(before.refs, state.refs):
                    yield change
                with anyio.move_on_after(_POLL_S):
                    await moved.wait()
            finally:
                self._watchers.discard(moved)

    async def _read_ref_state(
        self, connection: sqlite3.Connection, prefix: str, last: _RefState | None
    ) -> _RefState:
        def look() -> _RefState:
            with typed_errors(self.path):
                version = data_version(connection)
                if last is not None and version == last.version:
                    return last
                return _RefState(version, read_refs(connection, prefix))

        return await to_thread.run_sync(look, limiter=self._read_threads)
