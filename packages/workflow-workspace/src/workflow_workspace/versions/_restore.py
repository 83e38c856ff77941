"""Putting the files of a version into an empty folder.

Each folder and file is made relative to the descriptor of the folder that it goes into, and never
through a link; what a version says is not trusted.
"""

from __future__ import annotations

import os
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path

import msgspec
from anyio import to_thread

from workflow_cas import Store
from workflow_protocol import Hash
from workflow_workspace._errors import RestoreError
from workflow_workspace.versions._records import VersionEntry
from workflow_workspace.versions._trees import read_files

_BATCH_FILES = 256
_BATCH_BYTES = 8 * 1024 * 1024
_PARTS = 8
"""So many parts of a file are in memory at once."""
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MORE = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


async def restore(store: Store, version: Hash, into: Path) -> None:
    """Put the files of a version into an empty folder, which is made if it isn't there.

    What the version left out isn't there afterwards. Where it fails, some files may have been
    put there.

    Args:
        store: has the version.
        version: which one.
        into: the folder.

    Raises:
        RestoreError: the folder isn't empty or can't be written, the version has two names that
            this file system takes for one, or a name that can't be a file's.
        StoreError: a part of the version is missing or damaged.
    """
    entries = await read_files(store, version)
    for path in entries:
        check_name(path)
    fd = await to_thread.run_sync(_open_empty, into)
    try:
        await to_thread.run_sync(refuse_clashes, fd, entries)
        await to_thread.run_sync(_make_folders_and_links, fd, entries)
        for pieces in batches(entries):
            parts = [part for piece in pieces for part in piece.parts]
            data = {each.hash: each.data for each in await store.get_many(parts)}
            await to_thread.run_sync(write_pieces, fd, entries, pieces, data)
        await to_thread.run_sync(_set_modes, fd, entries)
    finally:
        os.close(fd)


def check_name(path: str) -> None:
    """Refuse what no version can have."""
    name = path.rpartition("/")[2]
    if name.casefold() == ".git":
        raise RestoreError(path, "no version has what belongs to git: it may be made to do harm")


def _open_empty(into: Path) -> int:
    try:
        with suppress(FileExistsError):
            os.mkdir(into, 0o700)
        fd = os.open(into, FOLDER_FLAGS)
    except OSError as error:
        raise RestoreError(str(into), f"the folder can't be opened: {error.strerror}") from error
    with os.scandir(fd) as listed:
        is_empty = next(listed, None) is None
    if not is_empty:
        os.close(fd)
        raise RestoreError(str(into), "the folder isn't empty; give an empty or a new one")
    return fd


def refuse_clashes(
    root: int, entries: Mapping[str, VersionEntry], make: Callable[[int, str], None] | None = None
) -> None:
    """Find names that the file system of a folder takes for one, by making those that look alike.

    Args:
        root: the folder, which is empty, and is so afterwards.
        entries: what is to be put there.
        make: makes a file, as that file system would.

    Raises:
        RestoreError: names two of them.
    """
    alike: dict[tuple[str, str], list[str]] = defaultdict(list)
    for path, entry in entries.items():
        if entry.kind != "left_out":
            alike[folder_of(path), _folded(name_of(path))].append(path)
    for paths in alike.values():
        if len(paths) > 1:
            _refuse_same(root, paths, make or _make_file)


def _refuse_same(root: int, paths: Sequence[str], make: Callable[[int, str], None]) -> None:
    made: list[str] = []
    try:
        for path in paths:
            with told(path):
                try:
                    make(root, name_of(path))
                except FileExistsError:
                    names = ", ".join(map(repr, made))
                    raise RestoreError(
                        path,
                        f"the file system there takes its name for one of {names}; "
                        "give a folder on one that tells them apart",
                    ) from None
            made.append(name_of(path))
    finally:
        for name in made:
            os.unlink(name, dir_fd=root)


def _make_file(root: int, name: str) -> None:
    os.close(os.open(name, _NEW, 0o600, dir_fd=root))


def _folded(name: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def _make_folders_and_links(root: int, entries: Mapping[str, VersionEntry]) -> None:
    kinds = {"folder", "link"}
    made = [path for path, entry in entries.items() if entry.kind in kinds]  # the outer ones first
    for folder, paths in groupby(made, folder_of):
        with opened_folder(root, folder) as fd:
            for path in paths:
                entry, name = entries[path], name_of(path)
                with told(path):
                    if entry.kind == "folder":
                        os.mkdir(name, 0o700, dir_fd=fd)
                    else:
                        os.symlink(entry.target, name, dir_fd=fd)


class Piece(msgspec.Struct, frozen=True):
    """Parts of a file that are written in one go."""

    path: str
    parts: Sequence[Hash]
    is_first: bool
    is_last: bool


def batches(entries: Mapping[str, VersionEntry]) -> Iterator[list[Piece]]:
    """All files, in pieces that fit into memory."""
    batch: list[Piece] = []
    size = 0
    for path, entry in entries.items():
        if entry.kind != "file":
            continue
        count = len(entry.parts)
        for at in range(0, count, _PARTS):
            is_last = at + _PARTS >= count
            batch.append(Piece(path, entry.parts[at : at + _PARTS], at == 0, is_last))
            size += entry.size
            if len(batch) >= _BATCH_FILES or size >= _BATCH_BYTES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def write_pieces(
    root: int,
    entries: Mapping[str, VersionEntry],
    pieces: Sequence[Piece],
    data: Mapping[Hash, bytes],
    names: Mapping[str, str] | None = None,
) -> None:
    """Write parts of files; `names` are those to write to, where they are others than theirs."""
    for folder, inside in groupby(pieces, lambda piece: folder_of(piece.path)):
        with opened_folder(root, folder) as fd:
            for piece in inside:
                flags = _NEW if piece.is_first else _MORE
                with told(piece.path):
                    name = names[piece.path] if names is not None else name_of(piece.path)
                    opened = os.open(name, flags, 0o600, dir_fd=fd)
                    with open(opened, "wb") as file:
                        for part in piece.parts:
                            file.write(data[part])
                        if piece.is_last:
                            os.fchmod(opened, entries[piece.path].mode & 0o777)


def _set_modes(root: int, entries: Mapping[str, VersionEntry]) -> None:
    """Those of folders, the inner ones first: one that can't be written or entered is one now."""
    for path, entry in reversed(list(entries.items())):
        if entry.kind == "folder":
            with opened_folder(root, path) as fd, told(path):
                os.fchmod(fd, entry.mode & 0o777)


@contextmanager
def opened_folder(root: int, folder: str) -> Generator[int]:
    """A folder below another, each one on the way opened in the one before; no link is followed."""
    fd = os.dup(root)
    try:
        with told(folder):
            for name in folder.split("/") if folder else ():
                inner = os.open(name, FOLDER_FLAGS, dir_fd=fd)
                os.close(fd)
                fd = inner
        yield fd
    finally:
        os.close(fd)


@contextmanager
def told(path: str) -> Generator[None]:
    """Name the path where something can't be written."""
    try:
        yield
    except OSError as error:
        reason = f"it can't be written: {error.strerror}"
        raise RestoreError(path, reason) from error


def folder_of(path: str) -> str:
    """The path of the folder that something is in."""
    return path.rpartition("/")[0]


def name_of(path: str) -> str:
    """The name of something in its folder."""
    return path.rpartition("/")[2]
