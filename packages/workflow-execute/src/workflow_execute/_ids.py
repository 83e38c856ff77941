"""Thread ids: ULIDs (github.com/ulid/spec), which sort by the time they were made."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar

from workflow_protocol import ThreadId

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


_making = threading.Lock()
_last = 0


def new_thread_id() -> ThreadId:
    """Make a ULID: 48 bits of Unix milliseconds and 80 random bits, in 26 Crockford digits.

    Those that one process makes are in order within a millisecond too, by the "monotonicity" of
    the specification: a child comes after the thread that started it.
    """
    global _last
    with _making:
        _last = value = max(_last + 1, _system_clock() << 80 | secrets.randbits(80))
    return _as_id(value)


def _as_id(value: int) -> ThreadId:
    return ThreadId("".join(_CROCKFORD[value >> shift & 31] for shift in range(125, -1, -5)))


def first_thread_id(at_ms: int) -> ThreadId:
    """The least id of those that are made at a time, in Unix milliseconds, or later."""
    return _as_id(min(max(at_ms, 0), (1 << 48) - 1) << 80)


def now_ms() -> int:
    """The time in Unix milliseconds, by the clock that is in use in this context."""
    return clock_in_use.get()()


def _system_clock() -> int:
    return time.time_ns() // 1_000_000


Clock = Callable[[], int]
clock_in_use: ContextVar[Clock] = ContextVar("clock in use", default=_system_clock)
"""Gives Unix milliseconds. `testing.FakeClock` puts itself here."""
