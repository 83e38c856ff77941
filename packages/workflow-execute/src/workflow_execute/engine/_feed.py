"""The events of one running thread, for any number of readers, each at its own pace."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator

import anyio
import msgspec

from workflow_protocol import Event

MAX_EVENTS = 1000
MAX_CHARS = 4_000_000


class EventsMissed(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=True):
    """So many events came and went before this reader asked for them."""

    count: int
    """How many."""


class Feed:
    """Keeps the latest events of a run, and lets each reader go through them.

    The oldest are dropped where there are too many: a slow or late reader takes no memory, is told
    how many it has missed, and goes on with the oldest that is left.

    Args:
        max_events: how many are kept.
        max_chars: how much text they have together; the latest is kept however long it is.
    """

    def __init__(self, *, max_events: int = MAX_EVENTS, max_chars: int = MAX_CHARS) -> None:
        self._max_events = max_events
        self._max_chars = max_chars
        self._kept: deque[tuple[Event, int]] = deque()
        self._chars = 0
        self._dropped = 0
        self._closed = False
        self._changed = anyio.Event()

    def put(self, event: Event) -> None:
        """Add an event."""
        chars = sum(len(each) for each in msgspec.structs.astuple(event) if isinstance(each, str))
        self._kept.append((event, chars))
        self._chars += chars
        while len(self._kept) > self._max_events or (
            self._chars > self._max_chars and len(self._kept) > 1
        ):
            self._chars -= self._kept.popleft()[1]
            self._dropped += 1
        self._wake()

    def close(self) -> None:
        """There is nothing to come."""
        self._closed = True
        self._wake()

    async def read(self) -> AsyncGenerator[Event | EventsMissed]:
        """Give what is kept and what comes, until the feed is closed."""
        at = 0
        while True:
            if at < self._dropped:
                missed, at = self._dropped - at, self._dropped
                yield EventsMissed(count=missed)
            elif at < self._dropped + len(self._kept):
                at += 1
                yield self._kept[at - 1 - self._dropped][0]
            elif self._closed:
                return
            else:
                await self._changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
