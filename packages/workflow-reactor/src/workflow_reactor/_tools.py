"""Tools as the model sees them and as the engine runs them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import msgspec

from workflow_protocol import Effect, JsonObject, ThreadContext
from workflow_reactor._messages import ToolCall


@dataclass(frozen=True, kw_only=True)
class ToolDefinition:
    """A tool's name, what it does, its parameters, and what running it twice would mean."""

    name: str
    description: str
    parameters: JsonObject
    """JSON Schema of the arguments; the root is an object."""
    effect: Effect = Effect.UNSAFE
    """Unless it says otherwise, a tool must not run twice."""
    timeout_s: float | None = 300.0
    """Seconds that one call may take; `None` for no limit."""
    pollable: bool = False
    """The same call with the same result is normal: no sign of going in circles."""

    @cached_property
    def json(self) -> bytes:
        """The tool as a request carries it, encoded once."""
        return msgspec.json.encode(
            {
                "type": "function",
                "function": {
                    "name": self.name,
                    "description": self.description,
                    "parameters": self.parameters,
                },
            }
        )


class ToolHandler(Protocol):
    """Runs a call of any of the tools it was given with."""

    async def __call__(self, call: ToolCall, ctx: ThreadContext) -> str:
        """Return the result for the model.

        An exception is told to the model as this call's result, and the loop goes on.
        """
        ...
