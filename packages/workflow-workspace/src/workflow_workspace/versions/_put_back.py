"""Putting a folder that is in use back to a version: only what differs is written.

As in restoring, each path is opened by the descriptors of its folders and never through a link. A
file is written beside its place and takes it in one go.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from anyio import to_thread

from workflow_cas import Store
from workflow_protocol import Hash
from workflow_workspace._errors import RestoreError
from workflow_workspace.versions._records import VersionEntry
from workflow_workspace.versions._restore import (
    FOLDER_FLAGS,
    batches,
    check_name,
    folder_of,
    name_of,
    opened_folder,
    told,
    write_pieces,
)
from workflow_workspace.versions._trees import FileChange, compare


async def put_back(store: Store, version: Hash, present: Hash, folder: Path) -> list[str]:
    """Make the files of a folder those of a version again.

    What either version leaves out stays as it is, and so does a file that neither of them has. A
    folder that such a file is in stays, too. Where it fails, some paths may have been put back.

    Args:
        store: has both versions.
        version: the version to go back to.
        present: the folder as it is now.
        folder: which one.

    Returns:
        The paths that differ and stay as they are.

    Raises:
        RestoreError: a path can't be written, or has become a folder with files that no version
            has.
        StoreError: a part of a version is missing or damaged.
    """
    changes, stays = _to_change(await compare(store, present, version))
    fd = await to_thread.run_sync(_open, folder)
    try:
        await to_thread.run_sync(_remove, fd, changes)
        added = await to_thread.run_sync(_add_folders_and_links, fd, changes)
        files = {path: entry for path, entry in added.items() if entry.kind == "file"}
        names = {path: f".uwf-{secrets.token_hex(8)}" for path in files}
        try:
            for pieces in batches(files):
                parts = [part for piece in pieces for part in piece.parts]
                data = {each.hash: each.data for each in await store.get_many(parts)}
                await to_thread.run_sync(write_pieces, fd, files, pieces, data, names)
                whole = [piece.path for piece in pieces if piece.is_last]
                await to_thread.run_sync(_take_places, fd, whole, names)
        finally:
            await to_thread.run_sync(_remove_unfinished, fd, names)
        await to_thread.run_sync(_set_modes, fd, changes)
    finally:
        os.close(fd)
    wanted = {each.path for each in changes if each.after is not None}
    return sorted([*stays, *(wanted - added.keys())])


def _to_change(found: Sequence[FileChange]) -> tuple[list[FileChange], list[str]]:
    """What can be put back, sorted by path, and the paths that stay as they are."""
    left_out: list[str] = []
    for each in found:
        check_name(each.path)
        kinds = {entry.kind for entry in (each.before, each.after) if entry is not None}
        if "left_out" in kinds:
            left_out.append(f"{each.path}/")
    changes = [each for each in found if not f"{each.path}/".startswith(tuple(left_out))]
    kept = {each.path for each in changes}
    return changes, [each.path for each in found if each.path not in kept]


def _open(folder: Path) -> int:
    try:
        return os.open(folder, FOLDER_FLAGS)
    except OSError as error:
        raise RestoreError(str(folder), f"the folder can't be opened: {error.strerror}") from error


def _remove(root: int, changes: Sequence[FileChange]) -> None:
    """Remove what the version hasn't, what is in a folder before the folder itself."""
    for each in reversed(changes):
        if each.before is None or not _has_to_go(each.before, each.after):
            continue
        with opened_folder(root, folder_of(each.path)) as fd, told(each.path):
            if each.before.kind != "folder":
                os.unlink(name_of(each.path), dir_fd=fd)
                continue
            try:
                os.rmdir(name_of(each.path), dir_fd=fd)
            except OSError as error:
                if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
                    raise
                if each.after is not None:
                    reason = "it is a folder now, with files that no version has; move them away"
                    raise RestoreError(each.path, reason) from error


def _has_to_go(was: VersionEntry, wanted: VersionEntry | None) -> bool:
    return wanted is None or (was.kind == "folder") != (wanted.kind == "folder")


def _add_folders_and_links(root: int, changes: Sequence[FileChange]) -> dict[str, VersionEntry]:
    """Make folders, the outer ones first, and links; give all that may be written.

    Where the version has something and the present one nothing, a file that no version has may be
    in the way. It stays.
    """
    added: dict[str, VersionEntry] = {}
    blocked: list[str] = []
    for each in changes:
        wanted, name = each.after, name_of(each.path)
        if wanted is None or each.path.startswith(tuple(blocked)):
            continue
        with opened_folder(root, folder_of(each.path)) as fd, told(each.path):
            if wanted.kind == "folder":
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=fd)
                if not _is_folder(fd, name):
                    blocked.append(f"{each.path}/")
                    continue
            elif each.before is None and _is_there(fd, name):
                continue
            elif wanted.kind == "link":
                beside = f".uwf-{secrets.token_hex(8)}"
                os.symlink(wanted.target, beside, dir_fd=fd)
                os.replace(beside, name, src_dir_fd=fd, dst_dir_fd=fd)
            added[each.path] = wanted
    return added


def _is_there(fd: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _is_folder(fd: int, name: str) -> bool:
    try:
        os.close(os.open(name, FOLDER_FLAGS, dir_fd=fd))
    except NotADirectoryError:  # a file or, not being followed, a link
        return False
    return True


def _take_places(root: int, paths: Sequence[str], names: Mapping[str, str]) -> None:
    for path in paths:
        with opened_folder(root, folder_of(path)) as fd, told(path):
            os.replace(names[path], name_of(path), src_dir_fd=fd, dst_dir_fd=fd)


def _remove_unfinished(root: int, names: Mapping[str, str]) -> None:
    for path, name in names.items():
        with (
            suppress(OSError, RestoreError),
            opened_folder(root, folder_of(path)) as fd,
        ):
            os.unlink(name, dir_fd=fd)


def _set_modes(root: int, changes: Sequence[FileChange]) -> None:
    """Those of folders, the inner ones first."""
    for each in reversed(changes):
        if each.after is not None and each.after.kind == "folder":
            with suppress(RestoreError), opened_folder(root, each.path) as fd, told(each.path):
                os.fchmod(fd, each.after.mode & 0o777)
