"""What was said, in the form that the conventions give messages. Only where it is asked for."""

from __future__ import annotations

import msgspec

from workflow_otel._conventions import sendable_text


def input_message(text: str) -> str:
    """The task, as `gen_ai.input.messages`."""
    return _encode([{"role": "user", "parts": [_text(text)]}])


def output_message(text: str, finish: str = "stop") -> str:
    """What a model or a role came to, as `gen_ai.output.messages`; empty where it said nothing."""
    if not text:
        return ""
    return _encode([{"role": "assistant", "parts": [_text(text)], "finish_reason": finish}])


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "content": sendable_text(text)}


def _encode(messages: list[dict[str, object]]) -> str:
    return msgspec.json.encode(messages).decode()
