"""Who runs a thread: one process at a time, by a lock that the system frees when it dies."""

from __future__ import annotations

import errno
import os
from collections.abc import AsyncGenerator, Generator, Iterable
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import anyio
from filelock import FileLock, Timeout

from workflow_cas import TOO_FEW_DESCRIPTORS, StoreError
from workflow_execute._errors import ThreadBusy
from workflow_protocol import ThreadId

_RETRY_S = 0.02
_LISTED_FROM = 50
"""From so many files on, it is quicker to list the folder first than to try to open each."""
PATIENCE_S = 0.5
"""Others hold a lock for a moment too, to look whether a thread runs or to store an answer."""


@asynccontextmanager
async def owning(
    locks: Path | None, thread_id: str, *, patience_s: float = PATIENCE_S
) -> AsyncGenerator[None]:
    """Be the one that runs the thread while the block lasts.

    Raises:
        ThreadBusy: somebody else is.
        StoreError: too few file descriptors are left.
    """
    if locks is None:
        yield
        return
    with _descriptors(locks):
        await anyio.Path(locks).mkdir(parents=True, exist_ok=True)
    lock = FileLock(_lock_file(locks, thread_id), thread_local=False)
    deadline = anyio.current_time() + patience_s
    while True:
        try:
            with _descriptors(locks):
                lock.acquire(timeout=0)
            break
        except Timeout:
            if anyio.current_time() >= deadline:
                raise ThreadBusy(thread_id) from None
        await anyio.sleep(_RETRY_S)
    try:
        now_file(locks, thread_id).unlink(missing_ok=True)  # of an owner that died
        yield
    finally:
        lock.release()


def is_owned(locks: Path, thread_id: str) -> bool:
    """Whether somebody runs the thread now. To look writes nothing: the place may be read-only."""
    with _descriptors(locks):
        return _is_locked(str(_lock_file(locks, thread_id)))


def owned_among(locks: Path, thread_ids: Iterable[ThreadId]) -> set[ThreadId]:
    """Which threads somebody runs now. The folder is read once: a thread never run has no file."""
    wanted = list(thread_ids)
    if len(wanted) < _LISTED_FROM:
        return {each for each in wanted if is_owned(locks, each)}
    folder = str(locks)
    with _descriptors(locks):
        try:
            present = frozenset(os.listdir(folder))
        except FileNotFoundError:
            return set()
        files = ((each, f"{each}.lock") for each in wanted)
        return {each for each, name in files if name in present and _is_locked(f"{folder}/{name}")}


def _is_locked(path: str) -> bool:
    import fcntl  # not on every system

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextmanager
def _descriptors(locks: Path) -> Generator[None]:
    """Say it where the system has no file descriptor left."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.EMFILE, errno.ENFILE}:
            raise StoreError(TOO_FEW_DESCRIPTORS, path=locks) from error
        raise


def remove_lock_files(locks: Path | None, thread_ids: Iterable[str]) -> None:
    """Remove the lock files of threads that no longer exist; the caller owns them still."""
    if locks is not None:
        for each in thread_ids:
            now_file(locks, each).unlink(missing_ok=True)
            _lock_file(locks, each).unlink(missing_ok=True)


def now_file(locks: Path, thread_id: str) -> Path:
    """Where the owner of a thread says what it does; see `_now`."""
    return locks / f"{thread_id}.now"


def _lock_file(locks: Path, thread_id: str) -> Path:
    return locks / f"{thread_id}.lock"
