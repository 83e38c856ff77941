"""The SQLite file: how it is made, and the connections to it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Literal

from workflow_cas._errors import StoreError, StoreReadOnly
from workflow_cas.sqlite._length import check_length, needs_check
from workflow_cas.sqlite._schema import (
    FORMAT,
    MIGRATES_FROM,
    check_format,
    create_all_tables,
    found_format,
    table_names,
    transaction,
    unreadable_format,
)
from workflow_cas.sqlite._sqlite_errors import out_of_descriptors, primary_code, typed_errors

Durability = Literal["full", "normal"]

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
        self,
        path: Path,
        *,
        durability: Durability,
        read_only: bool,
        busy_timeout_s: float,
        format: int = FORMAT,
    ) -> None:
        self.path = path.resolve()  # SQLite puts its other files beside the real one
        self.read_only = read_only
        self._durability = durability
        self._format = format
        self._busy_timeout_s = busy_timeout_s
        self._writer: sqlite3.Connection | None = None
        self._readers: list[sqlite3.Connection] = []
        self._closed = False

    def open(self) -> None:
        """Make sure that the file is a store of ours, making it if it may be made."""
        with typed_errors(self.path):
            _check_length(self.path, self._busy_timeout_s)
            if not self.read_only:
                _prepare(self.path, busy_timeout_s=self._busy_timeout_s)
                self._writer = self._connect(write=True)
            else:
                _check_exists(self.path)
                with closing(self._connect(write=False)) as connection:
                    check_format(connection, self.path, self._format)

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


def read_format(path: Path, busy_timeout_s: float) -> int:
    """The format of a store that this version reads or can carry over.

    Raises:
        StoreFormat: it has another, or another program made it.
        StoreCorrupt: it is no database, or its end is missing.
        StoreError: there is no such file.
    """
    with typed_errors(path):
        _check_exists(path)
        _check_length(path, busy_timeout_s)
        with closing(_connect_read_only(path, busy_timeout_s)) as connection:
            found = found_format(connection, path)
    if found not in {FORMAT, *MIGRATES_FROM}:
        raise unreadable_format(found, path)
    assert found is not None
    return found


def connect_alone(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """Open a connection that keeps all others out, of this and of other processes.

    Raises:
        StoreBusy: there are others.
        StoreReadOnly: the file can't be written.
    """
    _check_writable(path)
    with typed_errors(path):
        pragmas = ("locking_mode=EXCLUSIVE", "synchronous=FULL", "fullfsync=ON")
        connection = _connect(path, "mode=rw", busy_timeout_s, *pragmas)
        try:
            with transaction(connection):
                pass  # a file without a log is locked by this
        except BaseException:
            connection.close()
            raise
    return connection


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
        table_names(connection)  # SQLite reads the file only now
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
    _check_writable(path)
    pages = f"page_size={_PAGE_BYTES}"  # counts while the file is empty
    with closing(_connect(path, "mode=rw", busy_timeout_s, pages)) as connection:
        if not table_names(connection):
            create_all_tables(connection)
        check_format(connection, path, FORMAT)
        _use_wal(connection, time.monotonic() + busy_timeout_s)


def _check_exists(path: Path) -> None:
    if not path.exists():
        raise StoreError("there is no such file; check the path", path=path)


def _check_writable(path: Path) -> None:
    if not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise StoreReadOnly(
            "it can't be written; mend its permissions or open it with read_only=True", path=path
        )


def _check_length(path: Path, busy_timeout_s: float) -> None:
    """Refuse a file whose end is missing, before anything writes to it.

    Raises:
        StoreCorrupt: it is.
    """
    if needs_check(path, _PAGE_BYTES):
        connection = _connect_read_only(path, busy_timeout_s)
        with closing(connection), transaction(connection, write=False):
            table_names(connection)  # the transaction begins only now
            check_length(connection, path)


def _create_file(path: Path) -> None:
    """Create an empty file that only its owner can read; SQLite gives its others the same mode.

    An existing file isn't opened: closing it would drop SQLite's locks of this process.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return


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
