"""What `opencode run --format json` writes."""

from __future__ import annotations

import msgspec

from workflow_agent_cli.agents._reading import Reading, decode, micros
from workflow_protocol import Event, ToolFinished, ToolStarted, Usage


class _Cache(msgspec.Struct):
    write: int = 0
    read: int = 0


class _Tokens(msgspec.Struct):
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: _Cache = msgspec.field(default_factory=_Cache)


class _State(msgspec.Struct):
    status: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")
    output: str = ""
    error: str = ""


class _Part(msgspec.Struct):
    text: str = ""
    tool: str = ""
    callID: str = ""
    state: _State | None = None
    reason: str = ""
    tokens: _Tokens | None = None
    cost: float = 0.0


class _Data(msgspec.Struct):
    message: str = ""
    statusCode: int | None = None


class _Error(msgspec.Struct):
    name: str = ""
    data: _Data = msgspec.field(default_factory=_Data)


class _Line(msgspec.Struct):
    type: str = ""
    sessionID: str = ""
    part: _Part | None = None
    error: _Error | None = None


_line = msgspec.json.Decoder(_Line)


def read_opencode(line: bytes, reading: Reading) -> tuple[Event, ...]:
    """Take in a line. The work is done with a step that ends for another reason than a tool."""
    found = decode(_line, line)
    if found is None:
        return ()
    reading.session_id = reading.session_id or found.sessionID
    if found.error is not None:
        reading.finished = True
        reading.failure = found.error.data.message or found.error.name or "it says only: error"
        reading.status = found.error.data.statusCode
    part = found.part
    if part is None:
        return ()
    match found.type:
        case "text":
            reading.text = part.text
        case "step_finish":
            reading.finished = part.reason != "tool-calls"
            if part.tokens is not None:
                reading.usage = _usage_sum(reading.usage, part.tokens, part.cost)
        case "tool_use" if part.state is not None:
            ok = part.state.status == "completed"
            arguments = bytes(part.state.input).decode("utf-8", "replace")
            summary = part.state.output if ok else part.state.error
            return (
                ToolStarted(name=part.tool, arguments=arguments, call_id=part.callID),
                ToolFinished(name=part.tool, ok=ok, summary=summary, call_id=part.callID),
            )
        case _:
            pass
    return ()


def _usage_sum(before: Usage | None, tokens: _Tokens, cost: float) -> Usage:
    """The sum of the steps. A cost of 0 is that of a model without a known price."""
    step = Usage(
        input_tokens=tokens.input + tokens.cache.read + tokens.cache.write,
        cached_tokens=tokens.cache.read,
        output_tokens=tokens.output + tokens.reasoning,
        calls=1,
        cost_micros=micros(cost) if cost > 0 else None,
    )
    return step if before is None else msgspec.structs.replace(before + step, calls=1)
