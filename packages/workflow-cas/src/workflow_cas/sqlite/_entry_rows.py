"""The rows of entries and of their labels, which are found in the order of their refs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

import msgspec

from workflow_cas._entries import Entry
from workflow_cas.sqlite._rows import fetch

_PUT = """
INSERT INTO entry (ref, labels, data) VALUES (?, ?, ?)
ON CONFLICT (ref) DO UPDATE SET labels = excluded.labels, data = excluded.data
"""


def put_entry(connection: sqlite3.Connection, entry: Entry) -> None:
    """Write an entry. Labels that it has already aren't touched: most commits change none."""
    before, after = _labels_of(connection, entry.ref), set(entry.labels)
    if before != after:
        _delete_labels(connection, entry.ref, before - after)
        connection.executemany(
            "INSERT INTO label (label, ref) VALUES (?, ?)",
            [(label, entry.ref) for label in sorted(after - before)],
        )
    connection.execute(_PUT, (entry.ref, "\n".join(sorted(after)), entry.data))


def delete_entry(connection: sqlite3.Connection, ref: str) -> None:
    """Delete the entry of a ref with its labels, if it has one."""
    if labels := _labels_of(connection, ref):
        _delete_labels(connection, ref, labels)
    connection.execute("DELETE FROM entry WHERE ref = ?", (ref,))


def find_entries(
    connection: sqlite3.Connection,
    *,
    labels: Sequence[str],
    any_of: Sequence[str] | None,
    first: str | None,
    before: str | None,
    limit: int | None,
) -> list[Entry]:
    """See `Store.entries`."""
    wanted = _rarest_first(connection, dict.fromkeys(labels))
    tables = [f"label AS l{at}" for at in range(len(wanted))]
    conditions = [f"l{at}.label = ?" for at in range(len(wanted))]
    conditions += [f"l{at}.ref = l0.ref" for at in range(1, len(wanted))]
    parameters: list[str | int] = [*wanted]
    ref = "l0.ref" if wanted else "entry.ref"
    if any_of is not None:
        conditions.append(
            f"{ref} IN (SELECT ref FROM label WHERE label IN (SELECT value FROM json_each(?)))"
        )
        parameters.append(msgspec.json.encode(any_of).decode())
    for bound, sign in ((first, ">="), (before, "<")):
        if bound is not None:
            conditions.append(f"{ref} {sign} ?")
            parameters.append(bound)
    # CROSS JOIN keeps SQLite from changing the order of the tables.
    query = (
        f"SELECT entry.ref, entry.labels, entry.data FROM {' CROSS JOIN '.join([*tables, 'entry'])}"
        f"{' ON entry.ref = l0.ref' if wanted else ''}"
        f"{' WHERE ' + ' AND '.join(conditions) if conditions else ''}"
        f" ORDER BY {ref} DESC LIMIT ?"
    )
    parameters.append(-1 if limit is None else limit)
    rows = fetch(connection, list[tuple[str, str, bytes]], query, *parameters)
    return [
        Entry(ref, data, tuple(labels.split("\n")) if labels else ()) for ref, labels, data in rows
    ]


def _rarest_first(connection: sqlite3.Connection, labels: Iterable[str]) -> list[str]:
    """The labels, that which the fewest entries have at the head."""
    wanted = list(labels)
    if len(wanted) < 2:
        return wanted
    query = "SELECT count(*) FROM label WHERE label = ?"
    counts = {each: fetch(connection, list[tuple[int]], query, each)[0][0] for each in wanted}
    return sorted(wanted, key=lambda label: counts[label])


def _labels_of(connection: sqlite3.Connection, ref: str) -> set[str]:
    rows = fetch(connection, list[tuple[str]], "SELECT labels FROM entry WHERE ref = ?", ref)
    return set(rows[0][0].split("\n")) - {""} if rows else set()


def _delete_labels(connection: sqlite3.Connection, ref: str, labels: Iterable[str]) -> None:
    connection.executemany(
        "DELETE FROM label WHERE label = ? AND ref = ?", [(label, ref) for label in labels]
    )
