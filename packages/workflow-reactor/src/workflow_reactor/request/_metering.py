"""What a model call may take at most, for the limits of its thread."""

from __future__ import annotations

from collections.abc import Iterable

from workflow_protocol import Usage
from workflow_reactor._messages import Message
from workflow_reactor._provider import Profile
from workflow_reactor.request._bodies import Frame

BYTES_PER_TOKEN = 3
"""Fewer than texts have (4 in English, about 3 in Chinese), so that the estimate is high."""
ASSUMED_OUTPUT_TOKENS = 4096
"""Where the request doesn't limit the reply."""


def worst_case(frame: Frame, messages: Iterable[Message], profile: Profile) -> Usage:
    """Estimate the most tokens that a request and its reply may take."""
    size = len(frame.head) + len(frame.tail) + sum(len(each.json) + 1 for each in messages)
    return Usage(
        input_tokens=-(-size // BYTES_PER_TOKEN),
        output_tokens=profile.max_tokens or ASSUMED_OUTPUT_TOKENS,
        calls=1,
    )
