"""Says when there are more tools than endpoints take."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from workflow_reactor import ToolDefinition

_log = logging.getLogger("workflow_agent_react")

MOST_TOOLS = 127
"""OpenAI's endpoints take 128 tools, and `resolve` is one of them."""
MOST_BYTES = 200_000
"""Some 50 000 tokens, which go out with each request."""


def warn_of_many(tools: Sequence[ToolDefinition]) -> None:
    """Put a warning into the log, where endpoints may refuse so many tools, or so long ones."""
    size = sum(len(tool.json) for tool in tools)
    if len(tools) > MOST_TOOLS or size > MOST_BYTES:
        _log.warning(
            "a role is offered %d tools of %d kB; many endpoints take 128 tools at most, and each "
            "request carries them all: choose some with .only(...)",
            len(tools),
            size // 1000,
        )
