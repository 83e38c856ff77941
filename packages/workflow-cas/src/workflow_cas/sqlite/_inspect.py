"""Looking at a whole SQLite store: verification and garbage collection.

Both take long on a large store; they call `checkpoint` now and then, which may raise to stop them.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from typing import Any

from workflow_cas._errors import StoreCorrupt
from workflow_cas._gc import reachable
from workflow_cas._store import GcReport, Problem, ProblemKind, VerifyReport
from workflow_cas.sqlite._rows import KINDS, KindNumber, fetch, unpack
from workflow_protocol import Hash

_CHUNK = 256
_NODE = """
SELECT kind, size, CASE kind WHEN 0 THEN x'' ELSE data END FROM name JOIN object USING (id)
WHERE hash = ?
"""


def check_pages(connection: sqlite3.Connection) -> None:
    """Refuse a file whose pages are damaged: a page of refs that reads as empty frees everything.

    Raises:
        StoreCorrupt: says what is wrong first.
    """
    ((message,),) = fetch(connection, list[tuple[str]], "PRAGMA quick_check(1)")
    if message != "ok":
        raise StoreCorrupt(f"the file is damaged, so nothing was collected: {message}")


def collect(
    connection: sqlite3.Connection,
    checkpoint: Callable[[], None],
    *,
    keep_newer_than_s: float,
    dry_run: bool,
) -> GcReport:
    """Remove what neither a ref nor a recent object reaches. The caller holds a transaction.

    Raises:
        StoreCorrupt: an object that must be followed is damaged or gone.
    """

    def links(hash: Hash) -> tuple[Hash, ...]:
        checkpoint()
        rows = fetch(connection, list[tuple[KindNumber, int, bytes]], _NODE, bytes.fromhex(hash))
        if not rows:
            raise StoreCorrupt(f"object {hash} is missing, but something refers to it", hash=hash)
        ((kind, size, data),) = rows
        if KINDS[kind] == "content":
            return ()
        if (stored := unpack(hash, "node", size, data)) is None:
            raise StoreCorrupt(f"object {hash} is damaged", hash=hash)
        return stored.refs

    cutoff_ms = (time.time() - keep_newer_than_s) * 1000
    query = "SELECT id, length(data), written_ms FROM object"
    rows = fetch(connection, list[tuple[int, int, int]], query)
    sizes = {id: size for id, size, _ in rows}
    recent = {id for id, _, written_ms in rows if written_ms > cutoff_ms}
    names = fetch(connection, list[tuple[bytes, int]], "SELECT hash, id FROM name ORDER BY hash")
    refs = fetch(connection, list[tuple[bytes]], "SELECT hash FROM ref")
    roots = [hash for hash, id in names if id in recent] + [hash for (hash,) in refs]
    live = reachable((Hash(hash.hex()) for hash in roots), links)
    garbage = [(hash, id) for hash, id in names if hash.hex() not in live]
    if not dry_run:
        connection.executemany("DELETE FROM name WHERE hash = ? AND id = ?", garbage)
        connection.executemany("DELETE FROM object WHERE id = ?", [(id,) for _, id in garbage])
    return GcReport(
        kept=len(live),
        removed=tuple(Hash(hash.hex()) for hash, _ in garbage),
        removed_bytes=sum(sizes.get(id, 0) for _, id in garbage),
        dry_run=dry_run,
    )


def verify(
    connection: sqlite3.Connection, checkpoint: Callable[[], None], *, has_entries: bool = True
) -> VerifyReport:
    """Check pages, objects, links, refs and entries. The caller holds a transaction.

    Damage hides what it hits and nothing else: where a range of objects can't be read, each is
    tried alone, and the names tell which ones are lost.
    """
    return _Verification(connection).run(checkpoint, has_entries=has_entries)


class _Verification:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.problems: list[Problem] = []
        self.names: dict[int, Hash] = {}
        self.intact: set[Hash] = set()
        self.links: list[tuple[str, Hash]] = []
        self.bytes = 0

    def run(self, checkpoint: Callable[[], None], *, has_entries: bool) -> VerifyReport:
        for (message,) in self.rows("the file", "PRAGMA integrity_check(1000)"):
            if message != "ok":
                self.add("damaged", "the file", message)
        checkpoint()
        for hash, id in self.rows("the names", "SELECT hash, id FROM name ORDER BY hash"):
            if isinstance(hash, bytes) and isinstance(id, int):
                self.names[id] = Hash(hash.hex())
            else:
                self.add("damaged", "the names", f"{hash!r} is the name of number {id!r}")
        ids = sorted(self.names)
        for start in range(0, len(ids), _CHUNK):
            checkpoint()
            self.check_objects(ids[start : start + _CHUNK])
        for (id,) in self.rows("the objects", "SELECT id FROM object ORDER BY id"):
            if id not in self.names:
                self.add("unreadable", f"object number {id}", "its hash is missing")
        refs = dict(self.rows("the refs", "SELECT name, hash FROM ref ORDER BY name"))
        for name, hash in refs.items():
            target = hash.hex() if isinstance(hash, bytes) else repr(hash)
            self.links.append((f"ref {name}", Hash(target)))
        self.check_links()
        entries = self.check_entries(refs.keys()) if has_entries else 0
        return VerifyReport(
            objects=len(self.names),
            refs=len(refs),
            bytes=self.bytes,
            entries=entries,
            problems=tuple(self.problems),
        )

    def add(self, kind: ProblemKind, place: str, message: str) -> None:
        self.problems.append(Problem(kind=kind, place=place, message=message))

    def rows(self, place: str, query: str) -> Iterator[Any]:
        """The rows of a query; where damage stops an ordered one, also those from the other end."""
        try:
            yield from self.connection.execute(query)
        except sqlite3.DatabaseError as error:
            self.add("unreadable", place, str(error))
            if "ORDER BY" in query:
                with suppress(sqlite3.DatabaseError):
                    yield from self.connection.execute(f"{query} DESC")

    def check_objects(self, ids: list[int]) -> None:
        waiting = dict.fromkeys(ids)
        query = "SELECT id, kind, size, data FROM object WHERE id BETWEEN ? AND ?"
        try:
            for id, kind, size, data in self.connection.execute(query, (ids[0], ids[-1])):
                self.check_object(id, kind, size, data)
                waiting.pop(id, None)
        except sqlite3.DatabaseError:
            for id in waiting:
                self.check_object_alone(id)

    def check_object_alone(self, id: int) -> None:
        query = "SELECT id, kind, size, data FROM object WHERE id = ?"
        try:
            for row in self.connection.execute(query, (id,)):
                self.check_object(*row)
        except sqlite3.DatabaseError as error:
            self.add("unreadable", self.names[id], str(error))

    def check_object(self, id: int, kind: object, size: object, data: object) -> None:
        name = self.names.get(id)
        if name is None:
            return  # reported with those whose name is lost
        stored = None
        if isinstance(data, bytes) and isinstance(size, int) and kind in {0, 1}:
            stored = unpack(name, KINDS[int(kind == 1)], size, data)
        if stored is None:
            self.add("damaged", name, "its data is not what was written")
        else:
            self.intact.add(name)
            self.bytes += len(stored.data)
            self.links += [(name, ref) for ref in stored.refs]

    def check_entries(self, refs: Collection[str]) -> int:
        """Compare entries with the refs that they are of, and with their labels."""
        entries: dict[str, set[str]] = {}
        for ref, labels in self.rows("the entries", "SELECT ref, labels FROM entry ORDER BY ref"):
            entries[ref] = set(str(labels).split("\n")) - {""}
            if ref not in refs:
                self.add("dangling", f"entry {ref}", "there is no ref of this name")
        found: dict[str, set[str]] = {}
        for label, ref in self.rows("the labels", "SELECT label, ref FROM label ORDER BY label"):
            found.setdefault(ref, set()).add(label)
        for ref in sorted(entries.keys() | found.keys()):
            if (has := entries.get(ref, set())) != (is_under := found.get(ref, set())):
                self.add(
                    "damaged",
                    f"entry {ref}",
                    f"it has the labels {sorted(has, key=str)} and is found under "
                    f"{sorted(is_under, key=str)}",
                )
        return len(entries)

    def check_links(self) -> None:
        known = set(self.names.values())
        listed = {problem.place for problem in self.problems}
        for hash in sorted(known - self.intact - listed):
            self.add("unreadable", hash, "its hash is listed, but its data is missing")
        for place, hash in self.links:
            if hash not in known:
                self.add("dangling", place, f"it refers to {hash}, which is not stored")
