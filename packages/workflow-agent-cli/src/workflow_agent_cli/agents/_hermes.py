"""What `hermes -z --usage-file` writes: its words on standard output, and all else in a file."""

from __future__ import annotations

import re

import msgspec

from workflow_agent_cli.agents._reading import Reading, decode, micros
from workflow_protocol import Usage

_STATUS = re.compile(r"\bHTTP (\d{3})\b")


class _Report(msgspec.Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    estimated_cost_usd: float | None = None
    cost_status: str | None = None
    session_id: str | None = None
    completed: bool | None = None
    failed: bool | None = None
    failure: str | None = None


_report = msgspec.json.Decoder(_Report)


def read_hermes(report: bytes, reading: Reading) -> None:
    """Take in the report. It alone tells a failure: hermes then prints it and exits with 0."""
    found = decode(_report, report)
    if found is None:
        return
    reading.finished = True
    reading.session_id = found.session_id or ""
    if found.failed or found.completed is False:
        reading.failure = found.failure or reading.text or "it did not complete its work"
        status = _STATUS.search(reading.failure)
        reading.status = int(status[1]) if status else None
    reading.usage = _usage(found)


def _usage(found: _Report) -> Usage | None:
    unknown = found.cost_status in {None, "unknown"}  # the cost is 0 then
    if found.input_tokens is None or found.output_tokens is None:
        return None
    cached = found.cache_read_tokens or 0
    return Usage(
        input_tokens=found.input_tokens + cached + (found.cache_write_tokens or 0),
        cached_tokens=cached,
        output_tokens=found.output_tokens,
        calls=1,
        cost_micros=None if unknown else micros(found.estimated_cost_usd),
    )
