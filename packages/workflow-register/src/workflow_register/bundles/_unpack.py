"""Bundles as real files: one read-only folder for each, proved to be whole before it is used."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from workflow_cas import content
from workflow_protocol import Hash
from workflow_register._files import locked, read_regular
from workflow_register.bundles._archive import Bundle

_PARTIAL = ".partial-"
"""How folders begin that are being written, or that a killed process has left."""
_CACHE = "__pycache__"
"""What Python writes beside a module that it imports from a file, read-only folder or not."""
LOCK_TIMEOUT_S = 60.0


def unpack(bundle: Bundle, folder: Path) -> Path:
    """Return the folder that has a bundle's files, and nothing else, below this one.

    It is written beside and renamed, so it is there as a whole or not at all. One that was there
    is compared with the bundle, byte for byte; one that somebody changed is replaced. A whole one
    stays in its place, for others may be reading it: only the caches of Python in it are deleted.
    Files and folders are read-only. One process at a time writes; the others wait for it.

    Args:
        folder: where bundles are unpacked, each under the hash of its stored object.

    Raises:
        OSError: the folder can't be written, or another process wrote there for a minute.
    """
    path = folder / content(bundle.data).hash
    files = {**bundle.sources, **bundle.files}
    if not _is_whole(path, files):
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder, timeout_s=LOCK_TIMEOUT_S):
            if not _is_whole(path, files):
                _replace(path, files)
    with suppress(OSError):
        os.utime(path)  # what was used lately is kept by `remove_unpacked`
    return path


def remove_unpacked(
    folder: Path, *, keep: frozenset[Hash], keep_newer_than_s: float, dry_run: bool = False
) -> list[str]:
    """Delete the unpacked bundles that nobody needs, and what killed processes left behind.

    Args:
        keep: the stored objects that there are; their folders stay.
        keep_newer_than_s: what was used in these last seconds stays, for somebody may be at it.
        dry_run: only say what it would be.

    Returns:
        The names of the folders.
    """
    removed: list[str] = []
    try:
        entries = _entries(folder)
    except OSError:
        return removed
    for entry in entries:
        with suppress(FileNotFoundError):  # another process was quicker
            used_s = entry.stat(follow_symlinks=False).st_mtime
            if entry.name in keep or time.time() - used_s < keep_newer_than_s:
                continue
            if not dry_run:
                _remove(Path(entry.path), folder)
            removed.append(entry.name)
    return removed


def _replace(path: Path, files: Mapping[str, bytes]) -> None:
    """Put a new folder in the place of whatever is there. Only between two renames is none."""
    partial = Path(tempfile.mkdtemp(prefix=_PARTIAL, dir=path.parent))
    old = partial.with_name(f"{partial.name}-old")
    try:
        _write(partial, files)
        with suppress(FileNotFoundError):
            os.rename(path, old)
        os.rename(partial, path)
    finally:
        _delete(partial)
        _delete(old)


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.chmod(path, 0o444)
    for below, _, _ in os.walk(folder, topdown=False):
        os.chmod(below, 0o755 if Path(below) == folder else 0o555)


def _is_whole(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Whether a folder has exactly these files: no link, no other file, no other byte.

    Caches of Python are deleted on the way. Kept, they could be other code than the bundle's.
    """
    folders = {"", *(part for name in files for part in _folders_of(name))}
    waiting, found = [""], 0
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return False
        while waiting:
            below = waiting.pop()
            for entry in _entries(folder / below):
                name = f"{below}/{entry.name}" if below else entry.name
                if entry.is_dir(follow_symlinks=False):
                    if name in folders:
                        waiting.append(name)
                    elif entry.name == _CACHE:
                        _remove(Path(entry.path), folder.parent)
                    else:
                        return False
                elif not _is_file(entry, files.get(name)):
                    return False
                else:
                    found += 1
    except OSError:
        return False
    return found == len(files)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: entry.name)


def _is_file(entry: os.DirEntry[str], data: bytes | None) -> bool:
    if data is None or not entry.is_file(follow_symlinks=False):
        return False
    found = entry.stat(follow_symlinks=False)
    if found.st_size != len(data) or found.st_mode & 0o222:
        return False
    return read_regular(Path(entry.path), len(data) + 1) == data


def _folders_of(name: str) -> list[str]:
    parts = name.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


def _remove(path: Path, folder: Path) -> None:
    """Take something out of sight at once, then delete it."""
    aside = folder / f"{_PARTIAL}{os.getpid()}-{time.monotonic_ns()}"
    try:
        os.rename(path, aside)
    except FileNotFoundError:
        return
    _delete(aside)


def _delete(path: Path) -> None:
    """Delete a folder that is read-only, or whatever stands in its place."""
    with suppress(OSError):
        if path.is_symlink() or not path.is_dir():
            path.unlink()
            return
    for below, names, _ in os.walk(path):
        for each in (below, *(os.path.join(below, name) for name in names)):
            if not os.path.islink(each):
                with suppress(OSError):
                    os.chmod(each, 0o700)
    shutil.rmtree(path, ignore_errors=True)
