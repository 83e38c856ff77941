"""The calls of a turn so far, for the guards that judge the next one and the tools that run it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

import msgspec

from workflow_protocol import JsonObject


class PastCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of this turn and what came of it."""

    name: str
    """Of the tool."""
    arguments: JsonObject
    """What it ran with: a person may have changed what the model wrote."""
    ok: bool
    """It ran and gave a result."""
    text: str
    """The whole result, or why it failed."""


class CallHistory(msgspec.Struct, frozen=True):
    """The calls of this turn so far, oldest first. Those that were refused or failed are in it."""

    calls: tuple[PastCall, ...] = ()
    """Oldest first."""

    def succeeded(self, name: str) -> tuple[PastCall, ...]:
        """The calls of this tool that really ran and did not fail."""
        return tuple(call for call in self.calls if call.ok and call.name == name)


history_of_turn: ContextVar[Callable[[], CallHistory]] = ContextVar(
    "history_of_turn", default=CallHistory
)
"""Gives the tool that is called the calls of the turn before this one."""
