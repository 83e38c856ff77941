"""A clock that stands still until a test moves it."""

from __future__ import annotations

from contextvars import Token
from types import TracebackType

from workflow_execute._ids import Clock, clock_in_use

NEW_YEAR_2026_MS = 1_767_225_600_000


class FakeClock:
    """The time that threads record, in the context of a `with` block.

        with FakeClock(at_ms=1_767_225_600_000) as clock:
            result = await engine.start(workflow, "p")
            clock.advance(60)

    It is the time of starts, steps and records. Limits in seconds, time limits of tools and the
    order of thread ids follow the real clock.

    Args:
        at_ms: the Unix milliseconds at which it stands.
        tick_ms: how far it goes on by itself each time that it is looked at.
    """

    def __init__(self, at_ms: int = NEW_YEAR_2026_MS, *, tick_ms: int = 0) -> None:
        self.at_ms = at_ms
        self.tick_ms = tick_ms
        self._tokens: list[Token[Clock]] = []

    def __call__(self) -> int:
        """The time in Unix milliseconds."""
        now = self.at_ms
        self.at_ms += self.tick_ms
        return now

    def advance(self, seconds: float) -> None:
        """Move it forward, or back with less than 0."""
        self.at_ms += round(seconds * 1000)

    def __enter__(self) -> FakeClock:
        self._tokens.append(clock_in_use.set(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        clock_in_use.reset(self._tokens.pop())
