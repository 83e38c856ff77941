"""What a running thread does now: a small file beside its lock, which any process may read.

The owner writes it over at each begin and end of a model call or tool, with one write of some
hundred bytes that nothing waits for: no commit, no sync. It is of use while the lock is held;
whatever a dead owner left is known by the lock, which is free.
"""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from workflow_execute.owners._locks import is_owned, now_file
from workflow_protocol import ThreadId

_TRIES = 5


class Doing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call at work, or a wait before a request is sent again."""

    what: Literal["model", "tool", "wait"]
    """A model call, a tool call, or a wait before a retry."""
    key: str
    """The journal's key of the call."""
    since_ms: int
    """When it began, in ms since 1970."""
    name: str = ""
    """The tool's; for a wait its reason."""
    round: int = 0
    """The round of the turn that it belongs to, counted from 0."""
    until_ms: int = 0
    """When a wait is over."""


class ThreadNow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a thread does now, and what it has taken of its limits. Times are in ms since 1970."""

    thread: ThreadId
    """The thread."""
    workflow: str
    """The name that it was started under."""
    pid: int
    """The process that runs it."""
    since_ms: int
    """When this run of the thread began."""
    at_ms: int
    """When this was written."""
    role: str = ""
    """The role at work; empty between steps."""
    step: int = 0
    """The step at work, counted from 0."""
    role_since_ms: int = 0
    """When the role began or went on."""
    round: int = 0
    """The round of the turn's latest model call, counted from 0."""
    max_rounds: int = 0
    """How many rounds the turn may have; 0 where it has no such limit."""
    doing: tuple[Doing, ...] = ()
    """What is at work, oldest first; nothing while the role's own code runs."""
    tokens: int = 0
    """What is spent of the limits, together with child threads and earlier runs."""
    cost_micros: int = 0
    """The same in millionths of the currency of the price table."""
    max_tokens: int | None = None
    """The limits that hold for it; `None` for none."""
    max_cost: float | None = None
    """In the currency of the price table."""
    max_seconds: float | None = None
    """Of all its runs together."""
    max_steps: int | None = None
    """Of the thread."""
    ran_before_ms: int = 0
    """How long earlier runs took."""
    child_ids: tuple[ThreadId, ...] = ()
    """The child threads that run."""
    children: tuple[ThreadNow, ...] = ()
    """What those do, as `read_now` finds it."""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ThreadNow).decode


def write_now(file: int, now: ThreadNow) -> None:
    """Write it over what a file has, so that a reader knows a half-written one.

    Raises:
        OSError: it can't be written.
    """
    data = _encode(now)
    os.pwrite(file, b"%08x%08x%b" % (zlib.crc32(data), len(data), data), 0)


def read_now(locks: Path, thread_id: ThreadId) -> ThreadNow | None:
    """Say what a thread does now, and its running child threads with it.

    Any process may ask, and nothing is written.

    Args:
        locks: the engine's folder of locks.
        thread_id: the thread.

    Returns:
        `None` where nobody runs it, or only a thread of it is run alone.
    """
    return _read(locks, thread_id, frozenset())


def _read(locks: Path, thread_id: ThreadId, above: frozenset[ThreadId]) -> ThreadNow | None:
    if thread_id in above or not is_owned(locks, thread_id):
        return None
    now = _read_file(now_file(locks, thread_id))
    if now is None or not now.child_ids:
        return now
    found = (_read(locks, each, above | {thread_id}) for each in now.child_ids)
    return msgspec.structs.replace(now, children=tuple(_present(found)))


def _present(found: Iterable[ThreadNow | None]) -> list[ThreadNow]:
    return [each for each in found if each is not None]


def _read_file(path: Path) -> ThreadNow | None:
    """Read what was written, whole: a write may come in between."""
    for _ in range(_TRIES):
        try:
            data = path.read_bytes()
        except OSError:
            return None
        try:
            size = int(data[8:16], 16)
            written = data[16 : 16 + size]
            if zlib.crc32(written) == int(data[:8], 16):
                return _decode(written)
        except (ValueError, msgspec.MsgspecError):
            pass
        time.sleep(0.001)
    return None
