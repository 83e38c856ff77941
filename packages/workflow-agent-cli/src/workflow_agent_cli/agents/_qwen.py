"""What `qwen --output-format stream-json` writes: claude's lines with a sense of their own."""

from __future__ import annotations

import re

import msgspec

from workflow_agent_cli.agents._claude import read_claude
from workflow_agent_cli.agents._reading import Reading
from workflow_protocol import Event

_ERROR = re.compile(r"\[API Error: (?:(\d{3})\b)?.*\]", re.DOTALL)


def read_qwen(line: bytes, reading: Reading) -> tuple[Event, ...]:
    """Take in a line. A refusal of the provider is a success in all but its text."""
    before = reading.finished
    events = read_claude(line, reading)
    if reading.finished and not before:
        _find_provider_error(reading)
    return events


def _find_provider_error(reading: Reading) -> None:
    error = _ERROR.fullmatch(reading.text)
    if error is not None:
        reading.failure, reading.text = reading.text, ""
        reading.status = int(error[1]) if error[1] else None
    used = reading.usage
    if used is not None:  # where claude counts what the cache held apart, this has it in its input
        tokens = used.input_tokens - used.cached_tokens
        reading.usage = msgspec.structs.replace(used, input_tokens=tokens)
