"""The form of a thread file, so that equal threads give equal bytes on any machine.

    magic       9 bytes, with a zero and both line ends, so that nothing takes it for text
    size        4 bytes, big-endian: of the header
    header      JSON, see `Header`
    objects     each: kind (1 byte, 0 content, 1 node), size (8 bytes, big-endian), hash (32 bytes),
                data. What an object refers to comes before it.
    digest      32 bytes: SHA-256 of everything before

Nothing is compressed: the bytes would depend on the version of the library, and what is read would
not be limited by the size of the file.
"""

from __future__ import annotations

import re
import struct

import msgspec

from workflow_cas import Kind, Stored
from workflow_protocol import Hash

MAGIC = b"\x89UWF\r\n\x1a\n\0"
FORMAT = 1
"""A file of a higher one is refused. Files of all lower ones are read for good."""
KINDS: tuple[Kind, ...] = ("content", "node")
HEADER_SIZE = struct.Struct(">I")
MAX_HEADER_BYTES = 64 * 1024 * 1024
OBJECT = struct.Struct(">BQ32s")
DIGEST_BYTES = 32

_THREAD_ID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


class ThreadRefs(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A thread in the file, and where its refs are."""

    id: str
    head: Hash
    status: Hash
    turn: Hash | None = None

    @property
    def targets(self) -> dict[str, Hash]:
        """The refs that it has, by what they are called below `thread/<id>/`."""
        found = {"head": self.head, "status": self.status, "turn": self.turn}
        return {what: hash for what, hash in found.items() if hash is not None}


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What the file has. There is no time in it, and nothing of who made it."""

    kind: str
    format: int
    threads: tuple[ThreadRefs, ...]
    """The thread that it is about, then those that it started, each after the one above it."""
    objects: int
    bytes: int
    """Of the data of all objects together."""


class HeaderStart(msgspec.Struct, frozen=True, kw_only=True):
    """What every version of the header has."""

    kind: str
    format: int


def is_thread_id(text: str) -> bool:
    """Whether this is the id of a thread: no other name gets from a file into a store or a path."""
    return _THREAD_ID.fullmatch(text) is not None


def encode_start(header: Header) -> bytes:
    """What comes before the objects."""
    data = msgspec.json.encode(header)
    return MAGIC + HEADER_SIZE.pack(len(data)) + data


def encode_object(stored: Stored) -> bytes:
    """What comes before the data of an object."""
    kind = KINDS.index(stored.kind)
    return OBJECT.pack(kind, len(stored.data), bytes.fromhex(stored.hash))
