"""What `claude -p --output-format stream-json --verbose` writes."""

from __future__ import annotations

import msgspec

from workflow_agent_cli.agents._reading import Reading, decode, micros
from workflow_protocol import Event, ToolFinished, ToolStarted, Usage


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int = 0
    output_tokens: int = 0


class _Line(msgspec.Struct):
    type: str = ""
    subtype: str = ""
    session_id: str = ""
    message: msgspec.Raw = msgspec.Raw(b"null")
    is_error: bool = False
    api_error_status: int | None = None
    result: str | None = None
    errors: list[str] = []
    usage: _Usage | None = None
    total_cost_usd: float | None = None


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    tool_use_id: str = ""
    is_error: bool | None = None
    content: msgspec.Raw = msgspec.Raw(b'""')


class _Message(msgspec.Struct):
    content: list[_Block] | str = ""


_line = msgspec.json.Decoder(_Line)
_message = msgspec.json.Decoder(_Message)


def read_claude(line: bytes, reading: Reading) -> tuple[Event, ...]:
    """Take in a line. What counts is `is_error`: a failure has the subtype `success` too."""
    found = decode(_line, line)
    if found is None:
        return ()
    reading.session_id = reading.session_id or found.session_id
    if found.type == "result":
        _read_result(found, reading)
        return ()
    if found.type not in {"assistant", "user"}:
        return ()
    message = decode(_message, bytes(found.message))
    blocks = message.content if message is not None else ""
    return () if isinstance(blocks, str) else _blocks(blocks, reading)


def _read_result(found: _Line, reading: Reading) -> None:
    reading.finished = True
    reading.status = found.api_error_status
    if found.is_error or found.subtype != "success":
        words = found.result or "; ".join(found.errors) or reading.complaint
        reading.failure = words or found.subtype.replace("_", " ")
    else:
        reading.text = found.result or ""
    if found.usage is None:
        return
    used = found.usage
    cached = used.cache_read_input_tokens
    reading.usage = Usage(
        input_tokens=used.input_tokens + used.cache_creation_input_tokens + cached,
        cached_tokens=cached,
        output_tokens=used.output_tokens,
        calls=1,
        cost_micros=micros(found.total_cost_usd),
    )


def _blocks(blocks: list[_Block], reading: Reading) -> tuple[Event, ...]:
    events: list[Event] = []
    for block in blocks:
        if block.type == "text" and block.text:
            reading.text = block.text
        elif block.type == "tool_use":
            reading.tools[block.id] = block.name
            events.append(
                ToolStarted(name=block.name, arguments=_text(block.input), call_id=block.id)
            )
        elif block.type == "tool_result":
            name = reading.tools.pop(block.tool_use_id, "tool")
            summary = _text(block.content)
            events.append(
                ToolFinished(
                    name=name, ok=not block.is_error, summary=summary, call_id=block.tool_use_id
                )
            )
    return tuple(events)


def _text(raw: msgspec.Raw) -> str:
    return bytes(raw).decode("utf-8", "replace")
