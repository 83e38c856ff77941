"""The rows of a SQLite store: reading and writing objects and refs."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable
from typing import Literal, TypeVar

import msgspec

from workflow_cas._errors import ObjectMissing, StoreCorrupt
from workflow_cas._objects import Kind, Node, Stored, is_hash, restore
from workflow_cas._store import MAX_CANDIDATES
from workflow_protocol import Hash

T = TypeVar("T")

KINDS: tuple[Kind, ...] = ("content", "node")
"""By their number in the `kind` column."""

KindNumber = Literal[0, 1]

PACKED_FROM = 256
"""Bytes from which on an object is deflated, if that makes it shorter: text becomes half as long or
less."""
_DEFLATE = (4, zlib.DEFLATED, 13, 6)
"""Level, method, window and memory. Clearing zlib's usual 256 kB takes most of the time: 100
microseconds for 1 kB of text, against 10."""

_GET = "SELECT kind, size, data FROM name JOIN object USING (id) WHERE hash = ?"
# A stored object that is written again counts as written now, so that a collector in another
# process leaves it alone. Setting `data` too mends a damaged one; equal pages aren't rewritten.
_PUT = """
INSERT INTO object (id, kind, written_ms, size, data) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    kind = excluded.kind, written_ms = max(written_ms, excluded.written_ms), size = excluded.size,
    data = excluded.data
"""


def fetch(
    connection: sqlite3.Connection, rows: type[T], query: str, *parameters: bytes | str | int
) -> T:
    """Return all rows of a query as this type, such as `list[tuple[bytes, int]]`.

    Raises:
        msgspec.ValidationError: they are of other types, as damage may make them.
    """
    return msgspec.convert(connection.execute(query, parameters).fetchall(), rows)


def object_id(connection: sqlite3.Connection, hash: bytes) -> int | None:
    rows = fetch(connection, list[tuple[int]], "SELECT id FROM name WHERE hash = ?", hash)
    return rows[0][0] if rows else None


def put_object(connection: sqlite3.Connection, stored: Stored, packed: bytes, now_ms: int) -> None:
    hash = bytes.fromhex(stored.hash)
    id = object_id(connection, hash)
    values = (id, KINDS.index(stored.kind), now_ms, len(stored.data), packed)
    put = connection.execute(_PUT, values)
    if id is None:
        connection.execute("INSERT INTO name (hash, id) VALUES (?, ?)", (hash, put.lastrowid))


def pack(data: bytes) -> bytes:
    """What is kept of an object's bytes: deflated, if that is shorter."""
    if len(data) < PACKED_FROM:
        return data
    deflate = zlib.compressobj(*_DEFLATE)
    packed = deflate.compress(data) + deflate.flush()
    return packed if len(packed) < len(data) else data


def unpack(hash: Hash, kind: Kind, size: int, data: bytes) -> Stored | None:
    """The object in a row, or `None` if its bytes are not the ones that `hash` names."""
    if len(data) != size:
        try:
            data = zlib.decompressobj().decompress(data, max(1, size))  # damage must not blow it up
        except zlib.error:
            return None
    return restore(hash, kind, data)


def read_object(connection: sqlite3.Connection, hash: Hash) -> Stored:
    """Read an object and check its bytes."""
    if not is_hash(hash):
        raise ObjectMissing(hash, "a full hash has 64 hex digits; `find` completes a shorter one")
    rows = fetch(connection, list[tuple[KindNumber, int, bytes]], _GET, bytes.fromhex(hash))
    if not rows:
        raise ObjectMissing(hash)
    ((kind, size, data),) = rows
    if (stored := unpack(hash, KINDS[kind], size, data)) is None:
        raise StoreCorrupt(f"object {hash} is damaged", hash=hash)
    return stored


def read_chain(
    connection: sqlite3.Connection, last: Hash, ends: Callable[[Node], bool]
) -> list[Node]:
    """See `Store.chain`."""
    nodes = [read_object(connection, last).as_node()]
    while not ends(nodes[-1]) and nodes[-1].refs:
        nodes.append(read_object(connection, nodes[-1].refs[0]).as_node())
    return nodes


def read_ref(connection: sqlite3.Connection, name: str) -> Hash | None:
    """Where a ref is."""
    rows = fetch(connection, list[tuple[bytes]], "SELECT hash FROM ref WHERE name = ?", name)
    return Hash(rows[0][0].hex()) if rows else None


def read_refs(connection: sqlite3.Connection, prefix: str) -> dict[str, Hash]:
    """The refs under a prefix, sorted by name."""
    # Names sort by their bytes, and 0xff comes after all that UTF-8 has.
    query = "SELECT name, hash FROM ref WHERE name >= ? AND name < CAST(? AS TEXT) ORDER BY name"
    end = prefix.encode() + b"\xff"
    rows = fetch(connection, list[tuple[str, bytes]], query, prefix, end)
    return {name: Hash(hash.hex()) for name, hash in rows}


def find(connection: sqlite3.Connection, digits: str) -> list[Hash]:
    """The first few hashes that begin with these hex digits."""
    low, high = bytes.fromhex(digits.ljust(64, "0")), bytes.fromhex(digits.ljust(64, "f"))
    query = "SELECT hash FROM name WHERE hash BETWEEN ? AND ? ORDER BY hash LIMIT ?"
    rows = fetch(connection, list[tuple[bytes]], query, low, high, MAX_CANDIDATES)
    return [Hash(hash.hex()) for (hash,) in rows]


def data_version(connection: sqlite3.Connection) -> int:
    """A number that changes whenever another connection has written."""
    ((version,),) = fetch(connection, list[tuple[int]], "PRAGMA data_version")
    return version
