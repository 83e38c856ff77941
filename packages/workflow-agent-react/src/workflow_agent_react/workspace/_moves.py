"""Moving and deleting files of a workspace."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections.abc import Callable
from functools import cache

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace._files import RealPath
from workflow_agent_react.workspace._names import actual_path, printable
from workflow_agent_react.workspace._paths import told_to_the_model
from workflow_agent_react.workspace._workspace import NotRegular, Place, Workspace
from workflow_protocol import current_work

_NOREPLACE = 1  # RENAME_NOREPLACE, linux/fs.h
_NOT_KNOWN = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}


def move_file(workspace: Workspace, path: str, to: str) -> str:
    """Give a file or a link another place or name. Folders on the way there are made.

    A link is moved itself, not what it leads to.

    Raises:
        ToolError: there is no such file, or something is in the new place. Nothing changed then,
            but for new folders.
    """
    path, to = actual_path(workspace, path), actual_path(workspace, to)
    old, new = RealPath(workspace, path), RealPath(workspace, to)
    with (
        told_to_the_model(workspace, path),
        workspace.place(path, follow=False, check=old.check) as source,
    ):
        _refuse_other_kinds(source, path, "give the paths of its files, one call each")
        with (
            told_to_the_model(workspace, to),
            workspace.place(
                to.rstrip("/") or to, make_folders=True, follow=False, check=new.check
            ) as target,
        ):
            _rename(source, target, path, to)
        current_work().touched(old.path)
        current_work().touched(new.path)
    return f"moved {printable(old.path)} to {printable(new.path)}"


def delete_file(workspace: Workspace, path: str) -> str:
    """Delete a file, a link or an empty folder. Of a link, what it leads to stays.

    Raises:
        ToolError: there is none, or the folder isn't empty. Nothing changed then.
    """
    path = actual_path(workspace, path)
    real = RealPath(workspace, path)
    asked = path.rstrip("/") or path
    with (
        told_to_the_model(workspace, path),
        workspace.place(asked, follow=False, check=real.check) as place,
    ):
        mode = os.stat(place.name, dir_fd=place.folder_fd, follow_symlinks=False).st_mode
        if stat.S_ISDIR(mode):
            _remove_empty(place, path)
        elif path.endswith("/"):
            raise NotADirectoryError
        else:
            _refuse_other_kinds(place, path, "")
            os.unlink(place.name, dir_fd=place.folder_fd)
        current_work().touched(real.path)
    what = "the empty folder " if stat.S_ISDIR(mode) else ""
    return f"deleted {what}{printable(real.path)}"


def _remove_empty(place: Place, path: str) -> None:
    try:
        os.rmdir(place.name, dir_fd=place.folder_fd)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        raise ToolError(
            f"{path!r} is a folder that isn't empty; delete what list_files shows in it first"
        ) from None


def _refuse_other_kinds(place: Place, path: str, instead: str) -> None:
    mode = os.stat(place.name, dir_fd=place.folder_fd, follow_symlinks=False).st_mode
    if stat.S_ISDIR(mode):
        raise ToolError(f"{path!r} is a folder; {instead}")
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
        raise NotRegular(place.name)


def _refuse_taken(target: Place, to: str, name: str) -> None:
    try:
        mode = os.stat(target.name, dir_fd=target.folder_fd, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        inside = f"{to.rstrip('/')}/{name}"
        raise ToolError(f"{to!r} is a folder; give the whole new path, such as {inside!r}")
    raise ToolError(f"there is {to!r} already; choose another name, or delete that one first")


def _rename(source: Place, target: Place, path: str, to: str) -> None:
    """Rename, and never replace: what comes to the new place meanwhile stays."""
    _refuse_taken(target, to, source.name)
    try:
        _rename_if_free(source, target)
    except FileExistsError:
        _refuse_taken(target, to, source.name)
        raise
    except FileNotFoundError:
        raise ToolError(f"{path!r} is gone meanwhile; look with list_files") from None


def _rename_if_free(source: Place, target: Place) -> None:
    libc = _renameat2()
    if libc is not None:
        names = os.fsencode(source.name), os.fsencode(target.name)
        if not libc(source.folder_fd, names[0], target.folder_fd, names[1], _NOREPLACE):
            return
        number = ctypes.get_errno()
        if number not in _NOT_KNOWN:
            raise OSError(number, os.strerror(number), target.name)
    # In two steps where the system hasn't one: a crash between leaves both names of the one file.
    folders = {"src_dir_fd": source.folder_fd, "dst_dir_fd": target.folder_fd}
    os.link(source.name, target.name, **folders, follow_symlinks=False)
    os.unlink(source.name, dir_fd=source.folder_fd)


@cache
def _renameat2() -> Callable[[int, bytes, int, bytes, int], int] | None:
    if sys.platform != "linux":
        return None
    try:
        found = ctypes.CDLL(None, use_errno=True).renameat2  # glibc 2.28, musl 1.2.6
    except AttributeError:
        return None
    found.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return found
