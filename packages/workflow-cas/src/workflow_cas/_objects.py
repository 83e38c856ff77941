"""Objects: immutable bytes, named by a hash that covers what they are and what they hold."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Literal, TypeVar

import msgspec

from workflow_cas._errors import StoreFormat
from workflow_protocol import Hash

T = TypeVar("T")

Kind = Literal["content", "node"]

_HASH = re.compile(r"[0-9a-f]{64}")


class Stored(msgspec.Struct, frozen=True):
    """An object as it is stored. Made by `content` and `node`, or given by `Store.get`."""

    hash: Hash
    """SHA-256 of the data."""
    kind: Kind
    """A content, which is any bytes, or a node, which is JSON with refs."""
    data: bytes
    """The bytes."""
    refs: tuple[Hash, ...] = ()
    """The objects that this one needs. Contents have none."""

    def text(self) -> str:
        """The data as text.

        Raises:
            UnicodeDecodeError: it is not UTF-8.
        """
        return self.data.decode()

    def as_node(self) -> Node:
        """Read the data as a node.

        Raises:
            StoreFormat: it is a content, whatever its text looks like.
        """
        if self.kind != "node":
            raise StoreFormat(f"object {self.hash} is a {self.kind}; read it with `.data`")
        wire = _node_decoder.decode(self.data)
        return Node(hash=self.hash, type=wire.type, payload=wire.payload, refs=self.refs)


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A node whose payload is not decoded yet."""

    hash: Hash
    """SHA-256 of its bytes."""
    type: str
    """What the payload is, such as `state`."""
    payload: msgspec.Raw
    """JSON, as it is stored."""
    refs: tuple[Hash, ...]
    """The objects that it needs."""

    def read(self, type: type[T]) -> T:
        """Decode the payload.

        Raises:
            StoreFormat: the payload isn't of that type.
        """
        try:
            return msgspec.json.decode(self.payload, type=type)
        except msgspec.ValidationError as error:
            raise StoreFormat(
                f"the payload of node {self.hash} of type {self.type!r} is not what this "
                f"version reads as {type!r}: {error}"
            ) from error


class RefMove(msgspec.Struct, frozen=True):
    """Move a ref from `old` to `new`; also what `Store.watch` reports."""

    name: str
    """Of the ref."""
    old: Hash | None
    """Where it must be now; `None` says that it must not exist."""
    new: Hash | None
    """Where it goes; `None` deletes it. The same as `old` only checks."""


class _Wire(msgspec.Struct, frozen=True, kw_only=True):
    type: str
    payload: msgspec.Raw
    refs: tuple[Hash, ...]


class _Links(msgspec.Struct, frozen=True):
    refs: tuple[Hash, ...]


_encoder = msgspec.json.Encoder(order="sorted")
_node_decoder = msgspec.json.Decoder(_Wire)
_links_decoder = msgspec.json.Decoder(_Links)


def content(data: bytes | str) -> Stored:
    """Make an object of raw bytes, or of text as UTF-8. Text that looks like a node is just text.

    Raises:
        ValueError: the text has lone surrogates, which UTF-8 can't hold.
    """
    data = data.encode() if isinstance(data, str) else bytes(data)
    return Stored(hash_of("content", data), "content", data)


def node(type: str, payload: object, refs: Iterable[Hash] = ()) -> Stored:
    """Make a node: canonical JSON `{"payload","refs","type"}`, so that equal values hash equally.

    Canonical is: keys sorted at every depth, no white space, UTF-8. A `msgspec.Raw` inside the
    payload goes in as it is; NaN and infinities become null.

    Args:
        payload: whatever msgspec encodes as JSON, with text as keys.
        refs: every object that the payload mentions, in an order that means something to you;
            repeated ones are dropped.

    Raises:
        TypeError: msgspec can't encode the payload.
        ValueError: text with lone surrogates, or a ref that is not a full hash.
    """
    unique = tuple(dict.fromkeys(refs))
    for ref in unique:
        if not is_hash(ref):
            raise ValueError(f"{ref!r} is not a hash of 64 lower-case hex digits")
    data = _encoder.encode({"payload": payload, "refs": unique, "type": type})
    return Stored(hash_of("node", data), "node", data, unique)


def hash_of(kind: Kind, data: bytes) -> Hash:
    """The name of an object: SHA-256 over `<kind> <length>`, a zero byte and the data."""
    digest = hashlib.sha256(b"%s %d\0" % (kind.encode(), len(data)))
    digest.update(data)
    return Hash(digest.hexdigest())


def is_hash(text: str) -> bool:
    """Whether the text has the form of a full hash."""
    return _HASH.fullmatch(text) is not None


def restore(hash: Hash, kind: Kind, data: bytes) -> Stored | None:
    """Make an object of stored bytes; `None` if they are no such object, or not of this hash."""
    if hash_of(kind, data) != hash:
        return None
    try:
        refs = _links_decoder.decode(data).refs if kind == "node" else ()
    except (msgspec.MsgspecError, RecursionError):  # `node` makes none that is nested so deep
        return None
    return Stored(hash, kind, data, refs)
