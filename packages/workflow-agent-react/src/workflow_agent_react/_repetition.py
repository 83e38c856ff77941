"""Notices a model that goes in circles: the same calls with the same results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal

from workflow_agent_react.dialects._dialect import Turn
from workflow_protocol import Effect
from workflow_reactor import ToolCall, ToolDefinition, ToolResult

RepetitionVerdict = Literal["fine", "tell", "stop"]

REPEAT_LIMIT = 3
"""Seeing the same thing this often is told to the model; once more ends the role."""


class RepetitionDetector:
    """Counts what was seen. A new effect on the world makes old results worth asking for again."""

    def __init__(self, tools: Mapping[str, ToolDefinition]) -> None:
        self._tools = tools
        self._seen: dict[tuple[str, str, str], int] = {}
        self._has_warned = False

    def count_turn(
        self, turn: Turn, results: Sequence[tuple[ToolCall, ToolResult]]
    ) -> RepetitionVerdict:
        """Count a turn: its calls, or a reply without any. The worst of them is the verdict."""
        if not turn.calls:
            return self._count_call("", "", turn.message.json.decode(), changes_things=False)
        warned_before = self._has_warned
        verdicts: set[RepetitionVerdict] = {"fine"}
        for call, result in results:
            tool = self._tools.get(call.name)
            if tool is None or not tool.pollable:
                changes = tool is not None and tool.effect is not Effect.READ
                arguments = call.raw_arguments if call.fault else canonical(call.arguments)
                verdicts.add(
                    self._count_call(call.name, arguments, result.text, changes_things=changes)
                )
        worst = max(verdicts, key=["fine", "tell", "stop"].index)
        # Nobody who wasn't told has gone on: four equal calls may stand in one reply.
        return worst if warned_before or worst == "fine" else "tell"

    def _count_call(
        self, name: str, arguments: str, result: str, *, changes_things: bool
    ) -> RepetitionVerdict:
        """Count one call with its result, or (without a name) one reply without a call.

        Args:
            name: the tool.
            arguments: in canonical form, so that spacing and key order don't hide a repetition.
            result: what came of it.
            changes_things: the call is not a mere read.
        """
        key = (name, arguments, result)
        count = self._seen.get(key, 0) + 1
        if count == 1 and changes_things:
            self._seen.clear()
        self._seen[key] = count
        if count < REPEAT_LIMIT:
            return "fine"
        if not self._has_warned:
            self._has_warned = True
            return "tell"
        return "stop" if count > REPEAT_LIMIT else "fine"


def canonical(arguments: str) -> str:
    """Arguments with sorted keys and no spacing, to compare calls by."""
    return json.dumps(json.loads(arguments), sort_keys=True, separators=(",", ":"))
