"""A part of a role's turn with journal keys of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar, Unpack

import msgspec

from workflow_protocol._events import Event
from workflow_protocol._journal import Answer, Journal, Question, RunOptions, recorded_result

T = TypeVar("T")


class ScopedJournal(msgspec.Struct, frozen=True):
    """Puts `<name>/` before each key, so that two loops in one turn don't share their keys."""

    inner: Journal
    """The turn's journal."""
    name: str
    """What its keys begin with."""

    async def run(
        self,
        key: str,
        perform: Callable[[], Awaitable[T]],
        **options: Unpack[RunOptions[T]],
    ) -> T:
        """See `Journal.run`."""
        return await self.inner.run(f"{self.name}/{key}", perform, **options)

    async def ask(self, key: str, question: Question) -> Answer:
        """See `Journal.ask`."""
        return await self.inner.ask(f"{self.name}/{key}", question)

    async def note(self, event: Event) -> None:
        """See `Journal.note`."""
        if event.key:
            event = msgspec.structs.replace(event, key=f"{self.name}/{event.key}")
        await self.inner.note(event)

    def recorded(self, key: str) -> bytes | None:
        """See `LastingJournal.recorded`."""
        return recorded_result(self.inner, f"{self.name}/{key}")
