"""Decompresses a reply piece by piece, within a limit: a few kB can stand for gigabytes.

HTTP clients decompress whole pieces at once and as often as a header says so (`gzip, gzip`). So
theirs is never used: the raw bytes are read, one coding is taken off, and no more than the limit is
ever made.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

ACCEPT_ENCODING = "gzip, deflate"
"""Of the codings in use these two are in the standard library."""

_PIECE_BYTES = 1 << 16
_MAX_MEMBERS = 1_000
"""A gzip stream may be several in a row (RFC 1952 §2.2); servers that do it have 64 kB in each."""
_GZIP, _ZLIB, _RAW = 31, 15, -15  # what zlib calls its window bits


class BadEncoding(ValueError):
    """The body isn't what its `content-encoding` says."""


class RefusedEncoding(BadEncoding):
    """It has a coding that was not asked for, or several. Asking again won't change that."""


class TooLarge(ValueError):
    """The body has more bytes than it may, before or after it is decompressed."""


if TYPE_CHECKING:

    class _Stream(Protocol):
        """What `zlib.decompressobj` makes; its type has no public name."""

        @property
        def eof(self) -> bool: ...
        @property
        def unused_data(self) -> bytes: ...
        @property
        def unconsumed_tail(self) -> bytes: ...
        def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


class Decompressor:
    """Takes a body's coding off.

    Args:
        content_encoding: the header's value; several in one are separated by commas.
        max_bytes: the most bytes that the body may have, compressed and decompressed.

    Raises:
        RefusedEncoding: more than one coding, or another than gzip, deflate and identity.
    """

    def __init__(self, content_encoding: str, max_bytes: int) -> None:
        self._coding = _coding(content_encoding)
        self._max_bytes = max_bytes
        self._raw_bytes = self._made_bytes = 0
        self._start = b""
        self._stream: _Stream | None = None
        self._members = 0

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Give what the next bytes of the body stand for, in pieces.

        Raises:
            BadEncoding: they are broken.
            TooLarge: they are too many, or would be.
        """
        self._raw_bytes += len(data)
        if self._raw_bytes > self._max_bytes:
            raise TooLarge
        if not self._coding:
            yield data
            return
        for begin in range(0, len(data), _PIECE_BYTES):
            for piece in self._decompressed(data[begin : begin + _PIECE_BYTES]):
                self._made_bytes += len(piece)
                if self._made_bytes > self._max_bytes:
                    raise TooLarge
                yield piece

    def finish(self) -> None:
        """Make sure that the end of the body was there.

        Raises:
            BadEncoding: it wasn't.
        """
        if self._start or (self._stream is not None and not self._stream.eof):
            raise BadEncoding("the compressed body ends early")

    def _decompressed(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._stream is None or self._stream.eof:
                self._start += data
                if len(self._start) < 2:  # what shows the format
                    return
                self._stream = self._next_member(self._start)
                data, self._start = self._start, b""
            yield from self._pieces(self._stream, data)
            data = self._stream.unused_data

    def _pieces(self, stream: _Stream, data: bytes) -> Iterator[bytes]:
        full = True
        while data or full:
            try:
                piece = stream.decompress(data, _PIECE_BYTES)
            except zlib.error as error:
                raise BadEncoding(f"the body is not {self._coding}: {error}") from None
            yield piece
            data = stream.unconsumed_tail
            full = len(piece) == _PIECE_BYTES and not stream.eof  # there may be more of it inside

    def _next_member(self, start: bytes) -> _Stream:
        self._members += 1
        if self._members > 1 and (self._coding != "gzip" or not start.startswith(b"\x1f\x8b")):
            raise BadEncoding("more follows after the end of the compressed body")
        if self._members > _MAX_MEMBERS:
            raise BadEncoding(f"the compressed body has more than {_MAX_MEMBERS} parts")
        if self._coding == "gzip":
            return zlib.decompressobj(_GZIP)
        return zlib.decompressobj(_ZLIB if _has_zlib_header(start) else _RAW)


def _coding(content_encoding: str) -> str:
    names = [name.strip().lower() for name in content_encoding.split(",")]
    codings = [name.removeprefix("x-") for name in names if name not in {"", "identity"}]
    if len(codings) > 1:
        raise RefusedEncoding(f"it is encoded more than once: {content_encoding[:100]!r}")
    if codings and codings[0] not in {"gzip", "deflate"}:
        raise RefusedEncoding(f"it has an encoding that was not asked for: {codings[0][:100]!r}")
    return codings[0] if codings else ""


def _has_zlib_header(start: bytes) -> bool:
    """RFC 1950 §2.2. Servers that send `deflate` without it never begin like this."""
    return start[0] & 0x0F == 8 and start[0] >> 4 <= 7 and (start[0] * 256 + start[1]) % 31 == 0
