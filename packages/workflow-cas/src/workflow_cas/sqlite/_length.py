"""Whether a SQLite file has all the pages that it should have.

SQLite reads what is missing of its end as zeros, so that a table there looks empty, and writes on.
It notices only whole pages, and none where there is a log. The layout of the log:
https://www.sqlite.org/fileformat2.html#the_write_ahead_log.
"""

from __future__ import annotations

import sqlite3
import struct
from collections.abc import Generator
from pathlib import Path

from workflow_cas._errors import StoreCorrupt

_HEADER_BYTES = 100
_LOG_HEADER_BYTES = 32
_FRAME_HEADER_BYTES = 24


def needs_check(path: Path, page_bytes: int) -> bool:
    """Whether SQLite might not notice that the end of the file is missing.

    The file isn't opened: closing it would drop SQLite's locks of this process.

    Raises:
        StoreCorrupt: it is shorter than the header of a database.
    """
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return False
    if 0 < size < _HEADER_BYTES:
        raise StoreCorrupt(
            f"the file is damaged: it has {size} bytes, less than the header of a database",
            path=path,
        )
    if _size(_beside(path, "-journal")):  # an unfinished transaction, which SQLite undoes first
        return False
    return size > 0 and (size % page_bytes > 0 or _size(_beside(path, "-wal")) > 0)


def check_length(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file whose end is missing, as a copy that was broken off leaves it.

    Pages that stand in the log may be missing: a crash while they are moved into the file leaves
    it like this.

    Args:
        connection: reads the file, in a transaction, so that nobody begins the log anew meanwhile.

    Raises:
        StoreCorrupt: it ends inside a page, or before its last one.
    """
    ((page_bytes,),) = connection.execute("PRAGMA page_size")
    ((pages,),) = connection.execute("PRAGMA page_count")
    whole, rest = divmod(path.stat().st_size, page_bytes)
    if rest == 0 and whole >= pages:
        return
    logged = _logged_pages(_beside(path, "-wal"), page_bytes)
    if logged and logged.issuperset(range(whole + 1, pages + 1)):
        return
    end = f" and {rest} bytes of another" if rest else ""
    raise StoreCorrupt(
        f"the end of the file is missing: it has {whole} of {pages} pages{end}", path=path
    )


def _logged_pages(path: Path, page_bytes: int) -> set[int]:
    """The numbers of the pages in the log whose commits are complete."""
    committed, pending = set[int](), set[int]()
    for number, ends_commit in _frames(path, page_bytes):
        pending.add(number)
        if ends_commit:
            committed |= pending
            pending.clear()
    return committed


def _frames(path: Path, page_bytes: int) -> Generator[tuple[int, bool]]:
    """The page of each whole frame, and whether it is the last of a commit.

    Frames of an earlier use of the log have other salts. Checksums are left to SQLite, which has
    counted the pages by them: they take a second for a log of 16 MB.
    """
    try:
        log = path.open("rb", buffering=0)
    except FileNotFoundError:
        return
    with log:
        salts = log.read(_LOG_HEADER_BYTES)[16:24]
        step = _FRAME_HEADER_BYTES + page_bytes
        for end in range(_LOG_HEADER_BYTES + step, path.stat().st_size + 1, step):
            log.seek(end - step)
            header = log.read(_FRAME_HEADER_BYTES)
            number, pages_after = struct.unpack_from(">II", header)
            if header[8:16] != salts:
                return
            yield number, pages_after > 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
