"""JSON-RPC messages as they come, made fit for a reader that refuses what it doesn't expect."""

from __future__ import annotations

import json
from typing import Any, cast

from workflow_protocol import JsonObject

ODD_RESULT = "workflow_odd_result"
"""The key under which a result stands that is no object, as it has to be."""
SHOWN_CHARS = 200


class NotAMessage(ValueError):
    """What came is no JSON-RPC message; the text says what it is instead."""


def read_message(data: bytes | str) -> JsonObject:
    """A message whose result is an object, whatever it was, and whose error has code and message.

    Raises:
        NotAMessage: it isn't one.
    """
    try:
        value: object = json.loads(data)  # takes NaN, as servers in Python write it
        if "\\ud" in (data if isinstance(data, str) else data.decode("utf-8", "replace")).lower():
            # Halves of surrogate pairs, which neither a record nor a request can carry.
            whole = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
            value = json.loads(whole)
    except (ValueError, RecursionError):
        raise NotAMessage(beginning(data)) from None
    if not isinstance(value, dict):
        raise NotAMessage(beginning(data))
    message = cast("JsonObject", value)
    if "result" not in message and "error" not in message and "method" not in message:
        raise NotAMessage(beginning(data))
    message["jsonrpc"] = "2.0"
    if message.get("error") is not None:
        return {"jsonrpc": "2.0", "id": message.get("id"), "error": _error(message["error"])}
    if "result" in message:
        result: Any = message["result"]
        if not isinstance(result, dict):
            result = {ODD_RESULT: result}
        return {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
    message.pop("error", None)
    return message


def _error(value: object) -> JsonObject:
    given = cast("JsonObject", value) if isinstance(value, dict) else {"message": value}
    code, words = given.get("code"), given.get("message")
    return {
        "code": code if isinstance(code, int) and not isinstance(code, bool) else 0,
        "message": words if isinstance(words, str) else as_json(words),
        **({"data": given["data"]} if "data" in given else {}),
    }


def as_json(value: object) -> str:
    """A value as JSON."""
    return json.dumps(value, ensure_ascii=False)


def beginning(data: bytes | str) -> str:
    """The beginning of what came, on one line, for a message."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    words = " ".join(text.split())
    return words if len(words) <= SHOWN_CHARS else f"{words[:SHOWN_CHARS]}…"
