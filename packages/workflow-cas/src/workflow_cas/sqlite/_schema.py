"""What is in the SQLite file: its tables, its format, and its transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from workflow_cas._errors import StoreFormat
from workflow_cas.sqlite._rows import fetch

FORMAT = 3
MIGRATES_FROM = {2}
"""The formats that `migrate_store` carries over."""
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
ENTRY_TABLES = """
CREATE TABLE entry (ref TEXT PRIMARY KEY, labels TEXT NOT NULL, data BLOB NOT NULL);
CREATE TABLE label (label TEXT, ref TEXT, PRIMARY KEY (label, ref)) WITHOUT ROWID;
"""
"""Since format 3. The `labels` of an entry are lines."""


@contextmanager
def transaction(
    connection: sqlite3.Connection, *, write: bool = True, commit: bool = True
) -> Generator[None]:
    """Commit what is done inside, or none of it. One that writes takes the lock at once."""
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
        if write and commit:
            connection.execute("COMMIT")
    finally:
        if connection.in_transaction:  # SQLite ends it by itself after some errors
            connection.execute("ROLLBACK")


def check_format(connection: sqlite3.Connection, path: Path, wanted: int) -> None:
    """Refuse what another program or another version wrote.

    Raises:
        StoreFormat: says which of them.
    """
    if (found := found_format(connection, path)) != wanted:
        raise unreadable_format(found, path)


def found_format(connection: sqlite3.Connection, path: Path) -> int | None:
    """The format that a store says it has; `None` where it says nothing that is a number.

    Raises:
        StoreFormat: it is no store.
    """
    if not {"meta", "object", "name", "ref"} <= table_names(connection):
        raise StoreFormat("this database was made by another program", path=path)
    query = "SELECT value FROM meta WHERE key = 'format'"
    found = [value for (value,) in fetch(connection, list[tuple[str]], query)]
    return int(found[0]) if found and found[0].isdecimal() else None


def unreadable_format(found: int | None, path: Path) -> StoreFormat:
    if found in MIGRATES_FROM:
        advice = "carry it over with `migrate_store`, which keeps the old file"
    elif found is None or found > FORMAT:
        advice = "upgrade the packages"
    else:
        advice = "this is too old to be carried over; open it with the version that wrote it"
    return StoreFormat(
        f"it has format {found or 'unknown'} and this version reads {FORMAT}; {advice}", path=path
    )


def table_names(connection: sqlite3.Connection) -> set[str]:
    query = "SELECT name FROM sqlite_schema WHERE type = 'table'"
    return {name for (name,) in fetch(connection, list[tuple[str]], query)}


def create_tables(connection: sqlite3.Connection, statements: str) -> None:
    """Carry out statements that end with a semicolon each, in the transaction that there is."""
    for statement in statements.split(";")[:-1]:
        connection.execute(statement)


def create_all_tables(connection: sqlite3.Connection) -> None:
    with transaction(connection):
        if not table_names(connection):  # another process may have been first
            create_tables(connection, _TABLES + ENTRY_TABLES)
            connection.execute("INSERT INTO meta VALUES ('format', ?)", (str(FORMAT),))
            connection.execute(f"PRAGMA application_id={_APPLICATION_ID}")
