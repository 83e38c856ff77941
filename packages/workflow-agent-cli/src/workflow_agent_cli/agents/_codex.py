"""What `codex exec --json` writes."""

from __future__ import annotations

import re

import msgspec

from workflow_agent_cli.agents._reading import Reading, decode
from workflow_protocol import Event, ToolFinished, ToolStarted, Usage

_STATUS = re.compile(r"\bunexpected status (\d{3})\b")


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0


class _ErrorMessage(msgspec.Struct):
    message: str = ""


class _Item(msgspec.Struct):
    id: str = ""
    type: str = ""
    text: str = ""
    message: str = ""
    command: str = ""
    exit_code: int | None = None
    status: str = ""
    aggregated_output: str = ""


class _Line(msgspec.Struct):
    type: str = ""
    thread_id: str = ""
    item: _Item | None = None
    usage: _Usage | None = None
    message: str = ""
    error: _ErrorMessage | None = None


_line = msgspec.json.Decoder(_Line)


def read_codex(line: bytes, reading: Reading) -> tuple[Event, ...]:
    """Take in a line. An error is trouble that may pass; what ends the work is `turn.failed`."""
    found = decode(_line, line)
    if found is None:
        return ()
    reading.session_id = reading.session_id or found.thread_id
    match found.type:
        case "turn.completed":
            reading.finished = True
            # Where a session goes on this is the sum of all its turns: also of the one that was
            # interrupted, which nobody has counted.
            reading.usage = _usage(found.usage)
        case "turn.failed":
            reading.finished = True
            reading.failure = (found.error and found.error.message) or reading.complaint
            status = _STATUS.search(reading.failure)
            reading.status = int(status[1]) if status else None
        case "error":
            reading.complaint = found.message
        case "item.started" | "item.completed" if found.item is not None:
            return _item(found.item, reading, done=found.type == "item.completed")
        case _:
            pass
    return ()


def _usage(used: _Usage | None) -> Usage | None:
    if used is None:
        return None
    return Usage(
        input_tokens=used.input_tokens,
        cached_tokens=used.cached_input_tokens,
        output_tokens=used.output_tokens,
        calls=1,
    )


def _item(item: _Item, reading: Reading, *, done: bool) -> tuple[Event, ...]:
    match item.type:
        case "agent_message" if done:
            reading.text = item.text
        case "error":
            reading.complaint = item.message
        case "command_execution" if done:
            ok = item.exit_code == 0
            return (
                ToolFinished(name="shell", ok=ok, summary=item.aggregated_output, call_id=item.id),
            )
        case "command_execution":
            arguments = msgspec.json.encode({"command": item.command}).decode()
            return (ToolStarted(name="shell", arguments=arguments, call_id=item.id),)
        case "file_change" if done:
            return (ToolFinished(name="file_change", ok=item.status == "completed"),)
        case _:
            pass
    return ()
