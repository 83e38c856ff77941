"""Carries a file of an older format over into the present one: as a whole or not at all.

The file is changed in one transaction, by a connection that has it for itself, so that a death at
any instant leaves the old format or the new one. A file put in the place of the old one would not
be as safe: a process that has the old one open would go on writing a log under the name that the
new one has then (https://www.sqlite.org/howtocorrupt.html, 2.4).
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import from_thread, to_thread

from workflow_cas._entries import Entry
from workflow_cas._errors import StoreBusy, StoreCorrupt
from workflow_cas._store import Problem, Store
from workflow_cas.sqlite._database import Connections, connect_alone, read_format
from workflow_cas.sqlite._entry_rows import put_entry
from workflow_cas.sqlite._inspect import verify
from workflow_cas.sqlite._schema import ENTRY_TABLES, FORMAT, create_tables, transaction
from workflow_cas.sqlite._sqlite import SqliteStore
from workflow_cas.sqlite._sqlite_errors import typed_errors

MakeEntries = Callable[[Store], Awaitable[Iterable[Entry]]]
"""Makes all entries of a store, which is open to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationReport:
    """What `migrate_store` did, or would do in a dry run."""

    from_format: int
    """What the file had; the present one, if there was nothing to do."""
    to_format: int
    """What it has now."""
    entries: int
    """How many were made."""
    problems: tuple[Problem, ...]
    """Damage that the file had before, and has now."""
    kept: Path | None
    """Where the old file is: whole, verified, and to be deleted by whoever likes. `None` where
    nothing was done."""


async def migrate_store(
    path: Path, make_entries: MakeEntries, *, dry_run: bool = False, busy_timeout_s: float = 5.0
) -> MigrationReport:
    """Carry a store of an older format over, and keep the old file beside it.

    All of the store is verified before the change is committed. It may be repeated, also after a
    death in the middle; a store that has the present format is left alone. For a while the disk
    has to hold the file twice.

    Args:
        path: the file.
        make_entries: formats before 3 have none.
        dry_run: do all of it except the last step.
        busy_timeout_s: how long to wait for whoever has the file open.

    Raises:
        StoreBusy: somebody has it open.
        StoreFormat: this version doesn't know the format, or can't carry it over.
        StoreCorrupt: the file can't be read, or what came out is not what went in.
        StoreFull: there is no room for both.
        StoreReadOnly: the file or its folder can't be written.
        StoreError: there is no such file.
    """
    path = Path(await anyio.Path(path).resolve())
    before = await to_thread.run_sync(read_format, path, busy_timeout_s)
    if before == FORMAT:
        return MigrationReport(
            from_format=FORMAT, to_format=FORMAT, entries=0, problems=(), kept=None
        )
    connection = await to_thread.run_sync(_connect_alone, path, busy_timeout_s)
    with closing(connection), typed_errors(path):
        kept = path.with_name(f"{path.name}.format-{before}{'-dry-run' if dry_run else ''}")
        problems = await to_thread.run_sync(_copy, connection, kept)
        try:
            entries = list(await _entries_of(kept, before, make_entries))
            await to_thread.run_sync(_convert, connection, entries, problems, dry_run)
        finally:
            if dry_run:
                kept.unlink(missing_ok=True)
    return MigrationReport(
        from_format=before,
        to_format=FORMAT,
        entries=len(entries),
        problems=problems,
        kept=None if dry_run else kept,
    )


def _connect_alone(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    try:
        return connect_alone(path, busy_timeout_s)
    except StoreBusy as error:
        raise StoreBusy(
            "another process has it open, so nothing was changed; wait until it has ended, or stop "
            "what runs, then try again",
            path=path,
        ) from error


def _copy(connection: sqlite3.Connection, kept: Path) -> tuple[Problem, ...]:
    """Copy the whole file, durably, and return what damage there is in the copy."""
    part = kept.with_name(kept.name + ".part")
    with typed_errors(kept):
        try:
            part.unlink(missing_ok=True)
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            with closing(sqlite3.connect(part, isolation_level=None)) as copy:
                connection.backup(copy, pages=1000, progress=_check_cancelled)
                copy.execute(
                    "PRAGMA journal_mode=DELETE"
                ).fetchone()  # it is one file, without a log
                problems = verify(copy, from_thread.check_cancelled, has_entries=False).problems
            _sync(part)
            part.replace(kept)
            _sync(kept.parent)
        finally:
            part.unlink(missing_ok=True)
    return problems


def _check_cancelled(status: int, remaining: int, total: int) -> None:
    from_thread.check_cancelled()


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


async def _entries_of(kept: Path, format: int, make_entries: MakeEntries) -> Iterable[Entry]:
    """The entries, made from the copy: the file itself is open to one connection only."""
    connections = Connections(
        kept, durability="full", read_only=True, busy_timeout_s=5.0, format=format
    )
    await to_thread.run_sync(connections.open)
    store = SqliteStore(connections)
    try:
        return await make_entries(store)
    finally:
        with anyio.CancelScope(shield=True):
            await store.close()


def _convert(
    connection: sqlite3.Connection,
    entries: Iterable[Entry],
    problems_before: tuple[Problem, ...],
    dry_run: bool,
) -> None:
    with transaction(connection, commit=not dry_run):
        create_tables(connection, ENTRY_TABLES)
        for entry in entries:
            put_entry(connection, entry)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'format'", (str(FORMAT),))
        report = verify(connection, from_thread.check_cancelled)
        if new := set(report.problems).difference(problems_before):
            found = "; ".join(f"{each.place}: {each.message}" for each in list(new)[:3])
            raise StoreCorrupt(f"what came out is damaged, so nothing was changed: {found}")
