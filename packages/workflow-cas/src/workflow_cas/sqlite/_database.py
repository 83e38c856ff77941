"""The SQLite file: how it is made, and the connections to it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from workflow_cas._errors import StoreError, StoreFormat, StoreReadOnly
from workflow_cas.sqlite._length import check_length, needs_check
from workflow_cas.sqlite._rows import fetch
from workflow_cas.sqlite._sqlite_errors import out_of_descriptors, primary_code, typed_errors

Durability = Literal["full", "normal"]

FORMAT = 2
_APPLICATION_ID = 0x75776673  # "uwfs": lets `file` and other programs tell what this is

# A hash is 32 bytes and kept once, in `name`, which is in the order of hashes; `object` is in the
# order of writing, so that its pages are full. With small rows `WITHOUT ROWID` saves an index;
# with data in them it took 4.6 kB for a 1 kB object. `size` is that of the object; where `data` is
# shorter it is deflated, as in SQLite's own sqlar archives: `sqlar_uncompress(data, size)` of the
# sqlite3 command shows it.
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE object (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    written_ms INTEGER NOT NULL,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
);
CREATE TABLE name (hash BLOB PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE ref (name TEXT PRIMARY KEY, hash BLOB NOT NULL) WITHOUT ROWID;
"""
_PAGE_BYTES = 8192
"""SQLite doesn't split a row over two pages if it fits into one: with pages of 4 kB, rows of 1 to
4 kB, which most are, took up to twice their size."""
_WAL_LIMIT_BYTES = 16 * 1024 * 1024
_RETRY_S = 0.01


class Connections:
    """The connections to one file: one that writes, and some that read, which never wait for it.

    Called from worker threads. One thread at a time may use `writer`.
    """

    def __init__(
        self, path: Path, *, durability: Durability, read_only: bool, busy_timeout_s: float
    ) -> None:
        self.path = path.resolve()  # SQLite puts its other files beside the real one
        self.read_only = read_only
        self._durability = durability
        self._busy_timeout_s = busy_timeout_s
        self._writer: sqlite3.Connection | None = None
        self._readers: list[sqlite3.Connection] = []
        self._closed = False

    def open(self) -> None:
        """Make sure that the file is a store of ours, making it if it may be made."""
        with typed_errors(self.path):
            self._check_length()
            if not self.read_only:
                _prepare(self.path, busy_timeout_s=self._busy_timeout_s)
                self._writer = self._connect(write=True)
            elif not self.path.exists():
                raise StoreError("there is no such file; check the path", path=self.path)
            else:
                with closing(self._connect(write=False)) as connection:
                    _check_format(connection, self.path)

    def close(self) -> None:
        """Close what is not in use; what is in use is closed when it is given back."""
        self._closed = True
        while self._readers:
            self._readers.pop().close()
        if self._writer is not None:
            self._writer.close()  # the last one also moves the -wal file's content over

    @contextmanager
    def writer(self) -> Generator[sqlite3.Connection]:
        """Give the connection that writes, in a transaction that is committed at the end."""
        self.check_usable(write=True)
        assert self._writer is not None
        with typed_errors(self.path), transaction(self._writer):
            yield self._writer

    @contextmanager
    def reader(self) -> Generator[sqlite3.Connection]:
        """Lend a connection for some short queries."""
        self.check_usable()
        with typed_errors(self.path):
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = self._connect(write=False)
            try:
                yield connection
            finally:
                if self._closed:
                    connection.close()
                else:
                    self._readers.append(connection)

    def another(self, *, write: bool = False) -> sqlite3.Connection:
        """Open one more, for its user to close."""
        self.check_usable(write=write)
        with typed_errors(self.path):
            return self._connect(write=write)

    @contextmanager
    def session(self, *, write: bool = False) -> Generator[sqlite3.Connection]:
        """Give a connection of its own for a long task, in one transaction."""
        with (
            closing(self.another(write=write)) as connection,
            typed_errors(self.path),
            transaction(connection, write=write),
        ):
            yield connection

    def check_usable(self, *, write: bool = False) -> None:
        """Refuse what can't be done with this store.

        Raises:
            StoreReadOnly: it is to be written, and was opened to be read.
            StoreError: it is closed.
        """
        if self._closed:
            raise StoreError("it is closed; use it inside its `async with`", path=self.path)
        if write and self.read_only:
            raise StoreReadOnly("it was opened with read_only=True", path=self.path)

    def _check_length(self) -> None:
        """Refuse a file whose end is missing, before anything writes to it.

        Raises:
            StoreCorrupt: it is.
        """
        if needs_check(self.path, _PAGE_BYTES):
            connection = _connect_read_only(self.path, self._busy_timeout_s)
            with closing(connection), transaction(connection, write=False):
                _table_names(connection)  # the transaction begins only now
                check_length(connection, self.path)

    def _connect(self, *, write: bool) -> sqlite3.Connection:
        if self.read_only:
            return _connect_read_only(self.path, self._busy_timeout_s)
        if not write:
            return _connect(self.path, "mode=rw", self._busy_timeout_s, "query_only=ON")
        full = self._durability == "full"
        return _connect(
            self.path,
            "mode=rw",
            self._busy_timeout_s,
            f"synchronous={'FULL' if full else 'NORMAL'}",
            f"fullfsync={'ON' if full else 'OFF'}",  # macOS: fsync leaves it in the drive
            f"journal_size_limit={_WAL_LIMIT_BYTES}",
        )


@contextmanager
def transaction(connection: sqlite3.Connection, *, write: bool = True) -> Generator[None]:
    """Commit what is done inside, or none of it. One that writes takes the lock at once."""
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
        if write:
            connection.execute("COMMIT")
    finally:
        if connection.in_transaction:  # SQLite ends it by itself after some errors
            connection.execute("ROLLBACK")


def _connect(path: Path, mode: str, busy_timeout_s: float, *pragmas: str) -> sqlite3.Connection:
    """Open a connection in autocommit mode that threads may use in turn."""
    connection = sqlite3.connect(
        f"{path.as_uri()}?{mode}",
        uri=True,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        for pragma in pragmas:
            connection.execute(f"PRAGMA {pragma}")
        _table_names(connection)  # SQLite reads the file only now
    except BaseException:
        connection.close()
        raise
    return connection


def _connect_read_only(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """Open a file that may lie where nothing can be written, not even SQLite's -shm file."""
    try:
        return _connect(path, "mode=ro", busy_timeout_s)
    except sqlite3.OperationalError as error:
        if primary_code(error) not in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
            raise
        if out_of_descriptors():
            raise
        if _has_wal(path):
            raise StoreReadOnly(
                "it was not closed and its directory can't be written, so its latest commits "
                "can't be read; copy it with its -wal file to a place where you can write",
                path=path,
            ) from error
        return _connect(path, "immutable=1", busy_timeout_s)


def _prepare(path: Path, *, busy_timeout_s: float) -> None:
    """Create the file, its directory and its tables, as far as they don't exist yet."""
    _create_file(path)
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise StoreReadOnly(
            "it can't be written; mend its permissions or open it with read_only=True", path=path
        )
    pages = f"page_size={_PAGE_BYTES}"  # counts while the file is empty
    with closing(_connect(path, "mode=rw", busy_timeout_s, pages)) as connection:
        if not _table_names(connection):
            _create_tables(connection)
        _check_format(connection, path)
        _use_wal(connection, time.monotonic() + busy_timeout_s)


def _check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse what another program or a newer version wrote.

    Raises:
        StoreFormat: says which of them.
    """
    if not {"meta", "object", "name", "ref"} <= _table_names(connection):
        raise StoreFormat("this database was made by another program", path=path)
    query = "SELECT value FROM meta WHERE key = 'format'"
    found = [value for (value,) in fetch(connection, list[tuple[str]], query)]
    if found != [str(FORMAT)]:
        older = all(value.isdecimal() and int(value) < FORMAT for value in found)
        raise StoreFormat(
            f"it has format {', '.join(found)} and this version reads {FORMAT}; "
            + ("open it with the version that wrote it" if older else "upgrade the packages"),
            path=path,
        )


def _create_file(path: Path) -> None:
    """Create an empty file that only its owner can read; SQLite gives its others the same mode.

    An existing file isn't opened: closing it would drop SQLite's locks of this process.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return


def _table_names(connection: sqlite3.Connection) -> set[str]:
    query = "SELECT name FROM sqlite_schema WHERE type = 'table'"
    return {name for (name,) in fetch(connection, list[tuple[str]], query)}


def _create_tables(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        if not _table_names(connection):  # another process may have been first
            for statement in _TABLES.split(";")[:-1]:
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('format', ?)", (str(FORMAT),))
            connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")


def _use_wal(connection: sqlite3.Connection, deadline_s: float) -> None:
    """Switch the file to WAL. SQLite does not wait for its lock here, so this does."""
    while connection.execute("PRAGMA journal_mode").fetchone() != ("wal",):
        try:
            connection.execute("PRAGMA journal_mode=WAL").fetchone()
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline_s:
                raise
            time.sleep(_RETRY_S)


def _has_wal(path: Path) -> bool:
    wal = path.with_name(path.name + "-wal")
    return wal.exists() and wal.stat().st_size > 0
