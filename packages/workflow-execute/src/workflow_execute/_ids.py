"""Thread ids: ULIDs (github.com/ulid/spec), which sort by the time they were made."""

from __future__ import annotations

import secrets
import time

from workflow_protocol import ThreadId

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_thread_id() -> ThreadId:
    """Make a ULID: 48 bits of Unix milliseconds and 80 random bits, in 26 Crockford digits."""
    value = time.time_ns() // 1_000_000 << 80 | secrets.randbits(80)
    return ThreadId("".join(_CROCKFORD[value >> shift & 31] for shift in range(125, -1, -5)))


def now_ms() -> int:
    """The time in Unix milliseconds."""
    return time.time_ns() // 1_000_000
