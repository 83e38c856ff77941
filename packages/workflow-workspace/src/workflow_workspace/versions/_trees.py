"""Reading versions from a store: their entries, what differs between two, and as a diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from workflow_cas import Store
from workflow_protocol import Hash
from workflow_workspace.versions._records import (
    VersionEntry,
    VersionRecord,
    read_tree,
    read_version,
)

MAX_DIFFED_BYTES = 4 * 1024 * 1024
"""Larger files are told as changed, without their lines."""
_SNIFFED_BYTES = 8_000  # as git looks for a null


class KeptFiles(msgspec.Struct, frozen=True):
    """All paths and objects of a version."""

    paths: Mapping[str, VersionEntry]
    hashes: frozenset[Hash]


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """One path that differs between two versions."""

    path: str
    """Relative to the folder, with `/`; bytes that aren't UTF-8 are surrogates (`os.fsencode`)."""
    kind: Literal["added", "deleted", "changed"]
    """What happened to it."""
    before: VersionEntry | None
    """What was there; `None` for what was added."""
    after: VersionEntry | None
    """What is there; `None` for what was deleted."""

    @property
    def is_mere_folder(self) -> bool:
        """Whether it is only a folder, which came or went for the files in it."""
        kinds = {entry.kind for entry in (self.before, self.after) if entry is not None}
        return kinds == {"folder"}


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """A change as lines."""

    text: str
    """In the unified format of `diff -u` and git, with a line for what it can't show."""
    added: int
    """Lines that were added."""
    deleted: int
    """Lines that were deleted."""
    binary: bool = False
    """The contents are no text, or too large to be compared."""


async def version_record(store: Store, version: Hash) -> VersionRecord:
    """What a version is, beside its files.

    Raises:
        StoreError: it is missing or damaged, or no version.
    """
    return read_version((await store.get(version)).as_node())


async def read_files(store: Store, version: Hash) -> dict[str, VersionEntry]:
    """Everything that a version has, by path: folders, files, links, and what is left out.

    Raises:
        StoreError: the version or a part of it is missing or damaged.
    """
    return dict((await read_all_trees(store, version)).paths)


async def read_all_trees(store: Store, version: Hash) -> KeptFiles:
    """All paths of a version and the objects that hold them, read level by level."""
    record = await version_record(store, version)
    paths: dict[str, VersionEntry] = {}
    hashes: set[Hash] = {record.root}
    if record.git is not None and record.git.index is not None:
        hashes.add(record.git.index)
    level = [("", record.root)]
    while level:
        trees = await store.get_many([tree for _, tree in level])
        deeper: list[tuple[str, Hash]] = []
        for (prefix, _), tree in zip(level, trees, strict=True):
            for name, entry in read_tree(tree.as_node()).items():
                path = prefix + name
                paths[path] = entry
                hashes.update(entry.parts)
                if entry.kind == "folder":
                    deeper.append((f"{path}/", entry.parts[0]))
        level = deeper
    return KeptFiles(paths, frozenset(hashes))


async def compare(store: Store, old: Hash | None, new: Hash) -> list[FileChange]:
    """What differs between two versions, sorted by path. Equal folders aren't read.

    Args:
        store: has both.
        old: the version before; `None` is an empty folder.
        new: the version after.

    Raises:
        StoreError: a version or a part of it is missing or damaged.
    """
    before = (await version_record(store, old)).root if old is not None else None
    after = (await version_record(store, new)).root
    changes: list[FileChange] = []
    pairs: list[tuple[str, Hash | None, Hash | None]] = [("", before, after)]
    while pairs:
        prefix, left, right = pairs.pop()
        if left == right:
            continue
        entries = await _tree(store, left), await _tree(store, right)
        for name in sorted(entries[0].keys() | entries[1].keys()):
            was, now = entries[0].get(name), entries[1].get(name)
            if was == now:
                continue
            path = prefix + name
            pairs.append((f"{path}/", _tree_of(was), _tree_of(now)))
            if was is None or now is None or not _same_folder(was, now):
                changes.append(_change(path, was, now))
    return sorted(changes, key=lambda change: change.path)


async def diff(store: Store, change: FileChange) -> FileDiff:
    """A change as the lines of a unified diff.

    Raises:
        StoreError: a content is missing or damaged.
    """
    old = await _lines(store, change.before)
    new = await _lines(store, change.after)
    header = _header(change)
    if old is None or new is None:
        return FileDiff(text=f"{header}(not compared)\n", added=0, deleted=0, binary=True)
    names = [_side("a", change.path, change.before), _side("b", change.path, change.after)]
    lines = list(difflib.unified_diff(old, new, names[0], names[1]))
    body = "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines)
    hunks = lines[2:]
    return FileDiff(
        text=header + body,
        added=sum(line.startswith("+") for line in hunks),
        deleted=sum(line.startswith("-") for line in hunks),
    )


_NO_NEWLINE = "\\ No newline at end of file\n"


async def read_content(store: Store, entry: VersionEntry) -> bytes:
    """All bytes of a file.

    Raises:
        StoreError: a part is missing or damaged.
    """
    return b"".join(part.data for part in await store.get_many(entry.parts))


async def _lines(store: Store, entry: VersionEntry | None) -> list[str] | None:
    """The lines of a file, or where a link leads; `None` if it can't be shown as lines."""
    if entry is None or entry.kind == "folder":
        return []
    if entry.kind == "link":
        return [entry.target]
    if entry.kind == "left_out" or entry.size > MAX_DIFFED_BYTES:
        return None
    data = await read_content(store, entry)
    if b"\0" in data[:_SNIFFED_BYTES]:
        return None
    return list(_split(data.decode("utf-8", "replace")))


def _split(text: str) -> Iterator[str]:
    """By line feeds only: `str.splitlines` also ends lines where editors don't."""
    at = 0
    while (end := text.find("\n", at)) >= 0:
        yield text[at : end + 1]
        at = end + 1
    if at < len(text):
        yield text[at:]


def _header(change: FileChange) -> str:
    lines = [f"{change.kind} {change.path}"]
    was, now = change.before, change.after
    if was is not None and now is not None and was.kind != now.kind:
        lines.append(f"{was.kind} is a {now.kind}")
    elif was is not None and now is not None and was.mode != now.mode:
        lines.append(f"mode {was.mode:o} is {now.mode:o}")
    for entry in (now,):
        if entry is not None and entry.kind == "left_out":
            lines.append(f"left out: {entry.reason}")
    return "".join(f"{_on_one_line(line)}\n" for line in lines)


def _side(letter: str, path: str, entry: VersionEntry | None) -> str:
    return "/dev/null" if entry is None else f"{letter}/{_on_one_line(path)}"


def _on_one_line(text: str) -> str:
    """A name may hold line ends, which would make lines of a diff, and what is no UTF-8."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


async def _tree(store: Store, tree: Hash | None) -> Mapping[str, VersionEntry]:
    return {} if tree is None else read_tree((await store.get(tree)).as_node())


def _tree_of(entry: VersionEntry | None) -> Hash | None:
    return entry.parts[0] if entry is not None and entry.kind == "folder" else None


def _same_folder(was: VersionEntry, now: VersionEntry) -> bool:
    """Whether only what is in a folder differs."""
    return was.kind == now.kind == "folder" and was.mode == now.mode


def _change(path: str, was: VersionEntry | None, now: VersionEntry | None) -> FileChange:
    kind: Literal["added", "deleted", "changed"] = "changed"
    if was is None:
        kind = "added"
    elif now is None:
        kind = "deleted"
    return FileChange(path=path, kind=kind, before=was, after=now)
