"""Files that are whole at any moment, one writer at a time, and readers that never wait."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

LOCK_POLL_S = 0.02


def read_regular(path: Path, max_bytes: int) -> bytes:
    """Read the first bytes of a regular file, and never wait for somebody who writes it.

    Raises:
        OSError: it can't be read, or it is a folder, a pipe or a device.
    """
    with open(path, "rb", opener=_open_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "this is not a regular file", str(path))
        return file.read(max_bytes)


def write_atomically(path: Path, data: bytes, *, mode: int) -> None:
    """Replace a file by one with these bytes: after a crash it is the old one or the new one.

    The folder is created. Readers see no half-written file, and no temporary one stays behind
    unless the process is killed in between.

    Raises:
        OSError: the folder or the file can't be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(
        dir=path.parent, prefix=f".{path.name}.", suffix=".tmp"
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.chmod(temporary, mode)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(path.parent)


@contextmanager
def locked(path: Path, *, timeout_s: float) -> Generator[None]:
    """Hold a lock against other processes and threads. The system frees it if we die.

    Args:
        path: a folder that is there, or a file, which is created.

    Raises:
        TimeoutError: somebody else held it for all of `timeout_s`.
    """
    import fcntl  # not on every system, and only writers need it

    path.parent.mkdir(parents=True, exist_ok=True)
    how = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
    descriptor = os.open(path, how | os.O_CLOEXEC, 0o600)
    try:
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline_s:
                    raise TimeoutError(f"{path} is locked by another process") from None
                time.sleep(LOCK_POLL_S)
        yield
    finally:
        os.close(descriptor)


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a pipe without waiting for its other end."""
    return os.open(path, flags | os.O_NONBLOCK)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable, where the system lets a folder be opened."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
