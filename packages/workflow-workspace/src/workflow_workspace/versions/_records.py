"""How a version is stored: a node `files`, nodes `tree`, and contents.

`files` refers to the root's tree and to what git has in its index. A `tree` is one folder: its
payload is a list of entries sorted by name, which name the tree's refs by their number. A content
is a file's bytes, or a part of them.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from workflow_cas import Node, Stored, StoreFormat, node
from workflow_protocol import Hash

Kind = Literal["file", "link", "folder", "left_out"]

Reason = Literal[
    "secret name", "private key", "cloud credentials", "configured key", "too large", "not a file",
    "unreadable", "too deep",
]  # fmt: skip
"""Why something is left out: its name is one of those that secrets have; it holds a private key,
a key of a cloud's interface, or the value of a configured key; it is larger than files may be; it
is a socket, FIFO or device; it may not be read; it lies in too many folders."""


_NO_NAMES = frozenset({"", ".", ".."})


class VersionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """Something in a folder, as a version has it."""

    kind: Kind
    """`left_out` is what is there, but not kept."""
    mode: int = 0
    """The permissions of a file or folder."""
    size: int = 0
    """Of a file, in bytes."""
    parts: tuple[Hash, ...] = ()
    """Of a file its contents in order; of a folder its tree."""
    target: str = ""
    """Where a link leads, as `os.readlink` gives it."""
    reason: Reason | None = None
    """Why it is left out."""
    changed: bool = False
    """The file was being written while it was read, so that it may be of two moments."""


class GitState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What git said of a folder when a version was taken."""

    head: str | None = None
    """The commit that is checked out; `None` before the first one."""
    branch: str | None = None
    """Its branch; `None` if no branch is checked out."""
    index: Hash | None = None
    """A content: the index as `git ls-files --stage -z` lists it, which `git update-index -z
    --index-info` takes."""


class VersionRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a version is, beside its files."""

    root: Hash
    """The tree of the folder itself."""
    files: int
    """How many files and links there are."""
    bytes: int
    """How many bytes the files have together."""
    git: GitState | None = None
    """What git said of the folder; `None` where it is in no repository."""


class _Wire(msgspec.Struct, frozen=True, array_like=True):
    name: str
    kind: Kind
    mode: int = 0
    size: int = 0
    parts: tuple[int, ...] = ()
    target: str = ""
    reason: Reason | None = None
    changed: bool = False


def tree_node(entries: Mapping[str, VersionEntry]) -> Stored:
    """The object of a folder's entries."""
    refs: dict[Hash, int] = {}
    wires: list[_Wire] = []
    for name in sorted(entries):
        entry = entries[name]
        numbers = tuple([refs.setdefault(part, len(refs)) for part in entry.parts])
        wires.append(
            _Wire(
                _to_text(name),
                entry.kind,
                entry.mode,
                entry.size,
                numbers,
                _to_text(entry.target),
                entry.reason,
                entry.changed,
            )
        )
    return node("tree", wires, refs)


def read_tree(tree: Node) -> dict[str, VersionEntry]:
    """The entries of a folder, by name.

    Raises:
        StoreFormat: the node is no tree, or has names that no files have.
    """
    if tree.type != "tree":
        raise StoreFormat(f"node {tree.hash} is a {tree.type!r} and no 'tree' of a folder")
    refs = tree.refs
    entries: dict[str, VersionEntry] = {}
    try:
        for wire in tree.read(list[_Wire]):
            name = _to_name(wire.name)
            if name in _NO_NAMES or "/" in name or "\0" in name:
                raise ValueError(f"{name!r} can't be the name of a file")
            entries[name] = VersionEntry(
                kind=wire.kind,
                mode=wire.mode,
                size=wire.size,
                parts=tuple([refs[number] for number in wire.parts]),
                target=_to_name(wire.target),
                reason=wire.reason,
                changed=wire.changed,
            )
    except (ValueError, IndexError) as error:  # it may be from another machine
        raise StoreFormat(
            f"the tree {tree.hash} is none that a folder can have: {error}"
        ) from error
    return entries


def version_node(record: VersionRecord) -> Stored:
    """The object of a version."""
    index = record.git.index if record.git else None
    refs: Sequence[Hash] = [record.root] if index is None else [record.root, index]
    return node("files", record, refs)


def read_version(version: Node) -> VersionRecord:
    """What a version is.

    Raises:
        StoreFormat: the node is no version.
    """
    if version.type != "files":
        raise StoreFormat(f"node {version.hash} is a {version.type!r} and no version of files")
    return version.read(VersionRecord)


def _to_text(name: str) -> str:
    """Names are bytes: what isn't UTF-8 is kept as base64 after a null, which no name has."""
    if name.isascii():
        return name
    try:
        name.encode()
    except UnicodeEncodeError:
        return "\0" + base64.b64encode(os.fsencode(name)).decode()
    return name


def _to_name(text: str) -> str:
    return os.fsdecode(base64.b64decode(text[1:])) if text.startswith("\0") else text
