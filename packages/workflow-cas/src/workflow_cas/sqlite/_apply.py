"""Carrying out one commit in a SQLite store."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence

from workflow_cas._entries import Entry
from workflow_cas._errors import RefConflict, StoreError
from workflow_cas._objects import RefMove, Stored
from workflow_cas._store import missing_in_commit, needed_hashes
from workflow_cas.sqlite._entry_rows import delete_entry, put_entry
from workflow_cas.sqlite._rows import object_id, put_object, read_ref


def apply(
    connection: sqlite3.Connection,
    objects: Sequence[Stored],
    packed: Sequence[bytes],
    moves: Sequence[RefMove],
    entries: Sequence[Entry] = (),
) -> StoreError | None:
    """Check all of a commit, then write it. If it is refused, nothing of it was written.

    Args:
        packed: what `pack` makes of each object's bytes.
    """
    for move in moves:
        if (found := read_ref(connection, move.name)) != move.old:
            return RefConflict(move.name, move.old, found)
    # What a ref points to is stored: most commits need no other look.
    for hash in needed_hashes(objects, moves).difference(move.old for move in moves):
        if object_id(connection, bytes.fromhex(hash)) is None:
            return missing_in_commit(hash)
    now_ms = time.time_ns() // 1_000_000
    for stored, data in zip(objects, packed, strict=True):
        put_object(connection, stored, data, now_ms)
    for move in moves:
        if move.new is None:
            connection.execute("DELETE FROM ref WHERE name = ?", (move.name,))
            delete_entry(connection, move.name)
        elif move.new != move.old:
            connection.execute(
                "INSERT INTO ref (name, hash) VALUES (?, ?) "
                "ON CONFLICT (name) DO UPDATE SET hash = excluded.hash",
                (move.name, bytes.fromhex(move.new)),
            )
    for entry in entries:
        put_entry(connection, entry)
    return None
