"""The events of an agent's tool calls, each begin with one end, whatever the agent says."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from workflow_protocol import Event, ToolFinished, ToolStarted


class CallEvents:
    """Gives the calls of one run their keys, and what is missing of their events.

    Agents name calls by ids of their own, may leave them out, tell an end alone (a change of files
    in codex), and are stopped in the middle of a call.

    Args:
        key: the journal's key of the run; those of the calls begin with it.
        round: the number of the run.
    """

    def __init__(self, key: str, round: int) -> None:
        self._key = key
        self._round = round
        self._count = 0
        self._open: dict[str, tuple[ToolStarted, float]] = {}

    def complete(self, events: Sequence[Event]) -> list[Event]:
        """The same events, and with each end that has no begin that begin."""
        told: list[Event] = []
        for event in events:
            match event:
                case ToolStarted():
                    if event.call_id not in self._open:
                        told.append(self._begin(event))
                case ToolFinished():
                    if event.call_id not in self._open:
                        told.append(
                            self._begin(
                                ToolStarted(name=event.name, arguments="{}", call_id=event.call_id)
                            )
                        )
                    told.append(self._end(event))
                case _:
                    told.append(event)
        return told

    def end(self) -> list[Event]:
        """The ends of the calls that the agent left open."""
        return [
            self._end(
                ToolFinished(name=begun.name, ok=False, error="unfinished", call_id=begun.call_id)
            )
            for begun, _ in list(self._open.values())
        ]

    def _begin(self, event: ToolStarted) -> ToolStarted:
        event = msgspec.structs.replace(
            event, key=f"{self._key}/tool/{self._count}", round=self._round
        )
        self._count += 1
        self._open[event.call_id] = event, time.monotonic()
        return event

    def _end(self, event: ToolFinished) -> ToolFinished:
        begun, began_s = self._open.pop(event.call_id)
        return msgspec.structs.replace(
            event,
            key=begun.key,
            round=self._round,
            elapsed_ms=int((time.monotonic() - began_s) * 1000),
            error=event.error or ("" if event.ok else "tool_error"),
        )
