"""What the journal keeps of an agent's run."""

from __future__ import annotations

from typing import Literal

import msgspec

from workflow_protocol import Usage

RunOutcome = Literal["done", "failed", "timeout", "too_large", "not_started"]

UNKNOWN = Usage(calls=1, unknown_calls=1)


class AgentRun(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a run of an agent went. The journal keeps it, and errors carry it. It holds no keys."""

    how: RunOutcome
    """How it ended."""
    text: str = ""
    """Its final words. Where the run was stopped, the latest that it said."""
    words: str = ""
    """What went wrong, in the agent's own words."""
    stderr: str = ""
    """The beginning and the end of what it wrote there."""
    exit_code: int | None = None
    """128 + n for signal n; `None` where it was stopped."""
    status: int | None = None
    """The HTTP status that its provider refused with, where it says so."""
    session_id: str = ""
    """The agent's own id of its session; empty where it has none."""
    wall_s: float = 0.0
    """Seconds that it took."""
    usage: Usage = UNKNOWN
    """A run counts as one call, however many the agent made."""
