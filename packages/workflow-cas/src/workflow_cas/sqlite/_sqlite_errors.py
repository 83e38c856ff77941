"""What the errors of SQLite and of the file system mean for a store."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from workflow_cas._errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)

TOO_FEW_DESCRIPTORS = (
    "too few file descriptors are left (EMFILE); raise the limit with `ulimit -n`, "
    "or run fewer threads at once"
)
"""What a `StoreError` says where the system lets this process open no more files."""
_FILES_OF_A_CONNECTION = 5  # the database, -wal, -shm, a journal, the directory
_MAY_BE_TOO_FEW = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY}


@contextmanager
def typed_errors(path: Path) -> Generator[None]:
    """Raise what SQLite or the file system report as the errors of this package."""
    try:
        yield
    except (sqlite3.Error, OverflowError) as error:
        # SQLite says the same of a file that can't be opened and of one that may not be.
        if primary_code(error) in _MAY_BE_TOO_FEW and out_of_descriptors():
            raise StoreError(TOO_FEW_DESCRIPTORS, path=path) from error
        raise _typed_error(error, path) from error
    except (msgspec.ValidationError, UnicodeDecodeError) as error:
        raise StoreCorrupt(f"a row is not what was written: {error}", path=path) from error
    except OSError as error:
        if error.errno in {errno.EMFILE, errno.ENFILE}:
            raise StoreError(TOO_FEW_DESCRIPTORS, path=path) from error
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise StoreFull(f"there is no room to create it: {error}", path=path) from error
        if error.errno in {errno.EACCES, errno.EPERM, errno.EROFS}:
            raise StoreReadOnly(f"it can't be created here: {error}", path=path) from error
        raise StoreError(str(error), path=path) from error


def out_of_descriptors() -> bool:
    """Whether as many files as SQLite needs at once can't be opened now."""
    opened: list[int] = []
    try:
        for _ in range(_FILES_OF_A_CONNECTION):
            opened.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        return error.errno in {errno.EMFILE, errno.ENFILE}
    finally:
        for each in opened:
            os.close(each)
    return False


def primary_code(error: Exception) -> int:
    """The SQLite result code without its details; 0 if it came from Python's own checks."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _typed_error(error: sqlite3.Error | OverflowError, path: Path) -> StoreError:
    detail = f"{error} ({getattr(error, 'sqlite_errorname', type(error).__name__)})"
    match primary_code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(
                f"another process keeps it locked, so nothing was written; try again: {detail}",
                path=path,
            )
        case sqlite3.SQLITE_FULL:
            return StoreFull(f"the disk is full, so nothing was written: {detail}", path=path)
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_CANTOPEN:
            return StoreReadOnly(f"the file or its directory can't be written: {detail}", path=path)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreCorrupt(f"the file is damaged: {detail}", path=path)
        case sqlite3.SQLITE_IOERR:
            return _typed_io_error(getattr(error, "sqlite_errorcode", 0), detail, path)
        case _:
            return StoreError(f"SQLite refused: {detail}", path=path)


def _typed_io_error(code: int, detail: str, path: Path) -> StoreError:
    # A quota (EDQUOT) or a file-size limit (EFBIG) shows as a failed write, not as SQLITE_FULL.
    if code in {sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE}:
        return StoreFull(
            f"the disk is full, or a quota or file-size limit is reached: {detail}", path=path
        )
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return StoreCorrupt(f"the end of the file is missing: {detail}", path=path)
    return StoreError(f"the disk reported an error; check the disk: {detail}", path=path)
