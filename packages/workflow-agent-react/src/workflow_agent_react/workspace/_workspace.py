"""Opening what lies in a workspace, so that no path, link or race leads out of it.

Nothing is checked first and opened later: a path is opened relative to a descriptor of the
workspace, and what was opened is what is used. `openat2(RESOLVE_BENEATH)` does that in the kernel
(Linux 5.6). Where it is missing, or a link is absolute but may point inside, the path is walked
component by component, each opened relative to the one before and never through a link: links are
read and their parts walked the same way. Both give the same results.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from pathlib import Path
from types import TracebackType

import msgspec

from workflow_agent_react._errors import OutsideWorkspace, ToolError

_MAX_LINKS = 40  # as in the kernel (path_resolution(7))
_RACES = 8
# O_NONBLOCK: opening a FIFO that nobody writes to would wait for ever.
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class NotRegular(OSError):
    """The path names a FIFO, socket or device."""


class Place(msgspec.Struct, frozen=True):
    """Where a name is, or would be: a folder that stays open, and the name in it."""

    folder_fd: int
    name: str

    def read(self, *, max_bytes: int) -> tuple[bytes, os.stat_result]:
        """The bytes of the regular file in this place, as `Workspace.read`, and its state."""
        with _not_regular(self.name):
            fd = os.open(self.name, _READ | os.O_NOFOLLOW, dir_fd=self.folder_fd)
        return _read(fd, self.name, max_bytes)


class Workspace:
    """A workspace folder, open. Close it, or use it as a context manager.

    Paths are relative to the workspace, with `/`; an absolute path is taken when it names
    something in the workspace. Methods raise `OutsideWorkspace` for what leads out, and the
    `OSError` of the system for everything else.

    Args:
        root: the folder.
        kernel: resolve by `openat2` where the kernel has it.

    Raises:
        ToolError: there is no such folder.
    """

    def __init__(self, root: Path, *, kernel: bool = True) -> None:
        self.root = root.absolute()
        self._kernel = kernel
        try:
            self._fd = os.open(self.root, _FOLDER)
        except OSError as error:
            raise ToolError(f"the workspace folder can't be opened: {error.strerror}") from error
        self._bases = {tuple(_parts(os.fspath(self.root))), tuple(_parts(os.path.realpath(root)))}

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the folder."""
        os.close(self._fd)

    def relative(self, path: str) -> str:
        """The path as it is shown: relative, normalised where no link can change the meaning.

        Raises:
            OutsideWorkspace: it is absolute and not in the workspace.
        """
        return "/".join(part for part in self._parts_inside(path, path) if part != ".") or "."

    def open_folder(self, path: str) -> int:
        """Open a folder and return the descriptor, which the caller closes."""
        return self._open(path, _FOLDER)

    def read(self, path: str, *, max_bytes: int) -> bytes:
        """The bytes of a regular file, at most `max_bytes + 1` of them: one more says "too big".

        Raises:
            NotRegular: it is a FIFO, socket or device.
            IsADirectoryError: it is a folder.
        """
        with _not_regular(path):
            fd = self._open(path, _READ)
        return _read(fd, path, max_bytes)[0]

    @contextmanager
    def place(
        self,
        path: str,
        *,
        make_folders: bool = False,
        follow: bool = True,
        check: Callable[[Sequence[str]], None] = lambda names: None,
    ) -> Generator[Place]:
        """Where the file of this path is, or would be, with all links followed.

        Args:
            make_folders: make the folders that are missing on the way.
            follow: if not, a link at the end of the path is what is meant itself.
            check: is called with the names from the workspace to each part of the path, before it
                is opened or made; what it raises goes to the caller.

        Raises:
            IsADirectoryError: the path names the workspace itself.
        """
        with ExitStack() as folders:
            place = self._walk(path, folders, make_folders=make_folders, follow=follow, check=check)
            if place.name == ".":
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            yield place

    def _open(self, path: str, flags: int) -> int:
        parts = self._parts_inside(path, path)
        if self._kernel and _openat2() is not None:
            try:
                return _open_beneath(self._fd, "/".join(parts) or ".", flags)
            except OSError as error:
                # EXDEV: it leads out, or a link is absolute and may lead back in.
                # EAGAIN: somebody renames folders meanwhile. The walk knows better in both.
                if error.errno not in {errno.EXDEV, errno.EAGAIN, errno.ENOSYS, errno.EPERM}:
                    raise
        for _ in range(_RACES):
            with ExitStack() as folders:
                place = self._walk(path, folders)
                try:
                    return os.open(place.name, flags | os.O_NOFOLLOW, dir_fd=place.folder_fd)
                except OSError as error:
                    if not _swapped(error, place):
                        raise
        raise OSError(errno.EAGAIN, "it keeps changing", path)

    def _walk(
        self,
        path: str,
        folders: ExitStack,
        *,
        make_folders: bool = False,
        follow: bool = True,
        check: Callable[[Sequence[str]], None] = lambda names: None,
    ) -> Place:
        pending = deque(self._parts_inside(path, path))
        inner: list[int] = []
        names: list[str] = []
        links = 0
        while pending:
            part = pending.popleft()
            here = inner[-1] if inner else self._fd
            if part == ".":
                continue
            if part == "..":
                if not inner:
                    raise OutsideWorkspace(path)
                inner.pop()  # closed with the others at the end
                names.pop()
                continue
            target = _link_target(here, part) if follow or pending else None
            if target is None:
                check([*names, part])
                if not pending:
                    return Place(here, part)
                try:
                    fd = _enter(here, part, make=make_folders)
                except OSError as error:
                    if not _swapped(error, Place(here, part)):
                        raise
                    pending.appendleft(part)
                    links += 1
                else:
                    folders.callback(os.close, fd)
                    inner.append(fd)
                    names.append(part)
            else:
                links += 1
                if target.startswith("/"):
                    inner.clear()
                    names.clear()
                pending.extendleft(reversed(self._parts_inside(target, path)))
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return Place(inner[-1] if inner else self._fd, ".")

    def _parts_inside(self, path: str, asked: str) -> list[str]:
        """The components below the workspace; `..` is left to the walk, which knows the links."""
        try:
            os.fsencode(path)
        except UnicodeEncodeError as error:
            raise ToolError(f"{path!r} can't be a path: {error.reason}") from None
        if "\0" in path:
            raise ToolError(f"{path!r} can't be a path: it contains a null character")
        parts = _parts(path)
        if not path.startswith("/"):
            return parts
        for base in self._bases:
            if tuple(parts[: len(base)]) == base:
                return parts[len(base) :]
        raise OutsideWorkspace(asked)


@contextmanager
def _not_regular(path: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENXIO, errno.ENODEV}:  # a socket, a device without a driver
            raise NotRegular(error.errno, "not a regular file", path) from None
        raise


def _read(fd: int, path: str, max_bytes: int) -> tuple[bytes, os.stat_result]:
    state = os.fstat(fd)
    if stat.S_ISDIR(state.st_mode):
        os.close(fd)
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    with open(fd, "rb") as file:
        if not stat.S_ISREG(state.st_mode):
            raise NotRegular(errno.EINVAL, "not a regular file", path)
        return file.read(max_bytes + 1), state


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in {"", "."}]
    # A slash at the end asks for a folder, and so does "."; "x/." must not open a file x.
    return [*parts, "."] if parts and path.endswith(("/", "/.")) else parts


def _link_target(folder_fd: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=folder_fd)
    except OSError as error:
        if error.errno in {errno.EINVAL, errno.ENOENT}:
            return None
        raise


def _enter(folder_fd: int, name: str, *, make: bool) -> int:
    try:
        return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder_fd)
    except FileNotFoundError:
        if not make:
            raise
    with suppress(FileExistsError):  # another call made it
        os.mkdir(name, dir_fd=folder_fd)
    return os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=folder_fd)


def _swapped(error: OSError, place: Place) -> bool:
    """Whether opening failed because something took the place meanwhile; then look again."""
    if error.errno == errno.ENOTDIR:  # what O_DIRECTORY says of links too
        try:
            mode = os.stat(place.name, dir_fd=place.folder_fd, follow_symlinks=False).st_mode
        except FileNotFoundError:
            return True
        return stat.S_ISLNK(mode) or stat.S_ISDIR(mode)
    return error.errno in {errno.ELOOP, errno.EMLINK}  # what O_NOFOLLOW says of links


class _OpenHow(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    )


_SYS_OPENAT2 = 437  # one number on all architectures but alpha
_RESOLVE = 0x08 | 0x02  # RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS, linux/openat2.h


@cache
def _openat2() -> ctypes.CDLL | None:
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def _open_beneath(folder_fd: int, path: str, flags: int) -> int:
    libc = _openat2()
    assert libc is not None
    how = _OpenHow(flags, 0, _RESOLVE)
    fd = libc.syscall(
        ctypes.c_long(_SYS_OPENAT2),
        ctypes.c_int(folder_fd),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.byref(how),
        ctypes.c_size_t(ctypes.sizeof(how)),
    )
    if fd < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)
    return fd
