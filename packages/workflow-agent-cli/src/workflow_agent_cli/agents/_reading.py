"""What is read off an agent's output while it runs, and how a line of it becomes data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from workflow_protocol import Event, Usage

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Reading:
    """What an agent has said so far. Readers fill it in, line by line."""

    text: str = ""
    """Its final words, or the latest that may be."""
    finished: bool = False
    """It said that its work is done."""
    failure: str = ""
    """It said that its work failed: its own words."""
    complaint: str = ""
    """The latest trouble that it mentioned, which may have passed."""
    status: int | None = None
    """The HTTP status that its provider refused with."""
    session_id: str = ""
    """The agent's own id of its session, by which it may go on."""
    usage: Usage | None = None
    """`None` until it says."""
    tools: dict[str, str] = field(default_factory=dict[str, str])
    """Names of the tool calls at work, by their ids."""


LineReader = Callable[[bytes, Reading], tuple[Event, ...]]
"""Takes in a line of standard output; gives what observers should hear of. It must not raise."""
ReportReader = Callable[[bytes, Reading], None]
"""Takes in the file that the agent wrote beside its output. It must not raise."""


def decode(decoder: msgspec.json.Decoder[T], line: bytes) -> T | None:
    """Decode a line; `None` if it is something else.

    Broken UTF-8 and halves of surrogate pairs, which come in when a tool's output is cut, are
    replaced.
    """
    try:
        return decoder.decode(line)
    except (msgspec.ValidationError, RecursionError):
        return None
    except (msgspec.DecodeError, UnicodeDecodeError):  # the second by older versions of msgspec
        pass
    try:
        data = json.loads(line.decode("utf-8", "replace"))
        return decoder.decode(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def micros(cost: float | None) -> int | None:
    """Millionths of a cost, rounded up; `None` if it isn't one."""
    if cost is None or not 0 <= cost < 2**32:
        return None
    return math.ceil(round(cost * 1_000_000, 3))
