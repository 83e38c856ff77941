"""Finds where two inputs differ when one of them isn't there any more.

Of each request the journal keeps a digest, its size and a fingerprint: hashes of a few blocks of
the bytes that it has beyond the request before. 20 characters tell which fifth differs first.
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import NamedTuple, cast

import msgspec

BLOCKS = 5
_BLOCK_BYTES = 3
OVERLAP = 512
"""How far before the end of the last request the fingerprint begins: a request's end (options)
stands after what the next one adds."""
_SHOWN = 200
_HEX = re.compile(r"[0-9a-f]{64}")


class Difference(NamedTuple):
    """Where an input first differs from what was recorded."""

    at: int
    """Bytes from the beginning; the difference begins in the next `within` bytes."""
    within: int
    """How many bytes the place is known to. 1 is exact."""
    now: str
    """The beginning of what stands there now."""
    recorded: str | None = None
    """What stood there, where it is known."""

    def __str__(self) -> str:
        end = "" if self.within <= 1 else f" to {self.at + self.within}"
        before = "" if self.recorded is None else f"; before it was {self.recorded!r}"
        return f"the first difference is at byte {self.at}{end}: now it is {self.now!r}{before}"


def short_digest(digest: str) -> str:
    """What a record keeps of a digest: 96 bits of it."""
    if not digest:
        return ""
    whole = bytes.fromhex(digest) if _HEX.fullmatch(digest) else digest.encode()
    if len(whole) != 32:
        whole = hashlib.sha256(whole).digest()
    return base64.b64encode(whole[:12]).decode()


def fingerprint(data: bytes, start: int) -> str:
    """Hash the blocks of the bytes from `start` on."""
    blocks = _blocks(start, len(data))
    hashes = [hashlib.sha256(data[at : at + size]).digest()[:_BLOCK_BYTES] for at, size in blocks]
    return base64.b64encode(b"".join(hashes)).decode()


def fingerprint_start(previous_size: int) -> int:
    """Where the fingerprint of a request begins, after one of that size."""
    return max(0, previous_size - OVERLAP)


def find_difference(now: bytes, *, size: int, recorded: str, start: int) -> Difference | None:
    """Compare bytes with the fingerprint of others; `None` if it can't tell them apart."""
    hashes = base64.b64decode(recorded)
    for number, (at, length) in enumerate(_blocks(start, size)):
        part = now[at : at + length]
        kept = hashes[number * _BLOCK_BYTES : (number + 1) * _BLOCK_BYTES]
        if hashlib.sha256(part).digest()[:_BLOCK_BYTES] != kept:
            return Difference(at, length, _text(now[at:]))
    if len(now) > size:
        return Difference(size, 1, _text(now[size:]))
    return None


def compare(recorded: bytes, now: bytes) -> Difference | None:
    """Find the first difference of two inputs that are both there."""
    if recorded == now:
        return None
    low, high = 0, min(len(recorded), len(now))
    while low < high:  # the prefixes of length `low` are equal, those beyond `high` are not
        middle = (low + high + 1) // 2
        if recorded[low:middle] == now[low:middle]:
            low = middle
        else:
            high = middle - 1
    begin = max(0, low - 20)
    return Difference(low, 1, _text(now[begin:]), _text(recorded[begin:]))


def is_same_but_for_order(one: str, other: str) -> bool:
    """Whether two JSON texts have the same in them, lists in any order, as sets are written."""
    try:
        return in_any_order(msgspec.json.decode(one)) == in_any_order(msgspec.json.decode(other))
    except (msgspec.DecodeError, RecursionError):
        return False


def in_any_order(value: object) -> str:
    """A value in words, with its lists sorted."""
    if isinstance(value, dict):
        entries = cast("dict[str, object]", value).items()
        return "{" + ",".join(f"{key!r}:{in_any_order(each)}" for key, each in entries) + "}"
    if isinstance(value, list):
        return "[" + ",".join(sorted(map(in_any_order, cast("list[object]", value)))) + "]"
    return repr(value)


def _blocks(start: int, end: int) -> list[tuple[int, int]]:
    length = -(-(end - start) // BLOCKS)
    return [(at, min(length, end - at)) for at in range(start, end, length)] if length > 0 else []


def _text(data: bytes) -> str:
    return data[:_SHOWN].decode(errors="replace")
