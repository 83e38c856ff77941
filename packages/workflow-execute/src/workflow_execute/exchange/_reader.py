"""Reads the bytes of a thread file in order, and trusts none of them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

import msgspec

from workflow_cas import Stored, restore
from workflow_execute._errors import ThreadFileError
from workflow_execute.exchange._format import (
    DIGEST_BYTES,
    FORMAT,
    HEADER_SIZE,
    KINDS,
    MAGIC,
    MAX_HEADER_BYTES,
    OBJECT,
    Header,
    HeaderStart,
    is_thread_id,
)
from workflow_protocol import Hash


class Place(NamedTuple):
    """Where the data of an object is in the file."""

    kind: int
    offset: int
    size: int


class FileReader:
    """One pass over a file from its beginning. No more is read at once than the file has left."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._left = os.fstat(file.fileno()).st_size
        self._offset = 0
        self._digest = hashlib.sha256()
        file.seek(0)

    def refuse(self, reason: str) -> NoReturn:
        """Say what is wrong with the file."""
        raise ThreadFileError(self._path, reason)

    def header(self) -> Header:
        """Read what comes before the objects."""
        magic = self._file.read(len(MAGIC))
        if magic != MAGIC:
            if magic and MAGIC.startswith(magic):
                self._refuse_as_cut()
            self.refuse("this is not a thread file; `uwf thread export` makes one")
        self._took(magic)
        (size,) = HEADER_SIZE.unpack(self._read(HEADER_SIZE.size))
        if size > MAX_HEADER_BYTES:
            self.refuse(f"its header has {size} bytes, more than the {MAX_HEADER_BYTES} allowed")
        data = self._read(size)
        try:
            start = msgspec.json.decode(data, type=HeaderStart)
            if start.kind != "thread":
                self.refuse(f"it holds a {start.kind!r}, not a thread")
            if start.format > FORMAT:
                self.refuse(
                    f"it has format {start.format} and this version reads up to {FORMAT}; "
                    "upgrade the packages"
                )
            header = msgspec.json.decode(data, type=Header)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            self.refuse(f"its header can't be read: {error}")
        self._check_threads(header)
        return header

    def object(self) -> tuple[Stored, Place]:
        """Read the next object."""
        start: tuple[int, int, bytes] = OBJECT.unpack(self._read(OBJECT.size))
        kind, size, digest = start
        if kind >= len(KINDS):
            self.refuse(f"it has an object of the unknown kind {kind}")
        place = Place(kind, self._offset, size)
        hash = Hash(digest.hex())
        stored = restore(hash, KINDS[kind], self._read(size))
        if stored is None:
            self.refuse(f"the bytes of its object {hash} are not those of this hash")
        return stored, place

    def end(self) -> None:
        """Make sure that the file ends here, and is as a whole what was written."""
        digest = self._digest.digest()
        if self._read(DIGEST_BYTES) != digest:
            self.refuse("its bytes are not those of its digest")
        if self._left:
            self.refuse(f"it goes on for {self._left} bytes after its end")

    def _check_threads(self, header: Header) -> None:
        ids = [thread.id for thread in header.threads]
        for each in ids:
            if not is_thread_id(each):
                self.refuse(f"{each[:100]!r} can't be the id of a thread")
        if not ids or len(set(ids)) < len(ids):
            self.refuse("its header names no thread, or one of them twice")

    def _read(self, size: int) -> bytes:
        if size > self._left:
            self._refuse_as_cut()
        data = self._file.read(size)
        if len(data) < size:
            self._refuse_as_cut()
        self._took(data)
        return data

    def _took(self, data: bytes) -> None:
        self._left -= len(data)
        self._offset += len(data)
        self._digest.update(data)

    def _refuse_as_cut(self) -> NoReturn:
        self.refuse("it ends too early; copy it again, in binary mode")
