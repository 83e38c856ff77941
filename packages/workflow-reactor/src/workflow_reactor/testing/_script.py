"""Scripts of replies: what a test model or server answers, in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec

from workflow_reactor._errors import ReactorError

Request = dict[str, Any]
Reply = bytes | Callable[[Request], bytes]
Other = TypeVar("Other")


class ScriptExhausted(ReactorError):
    """A scripted model was asked more often than it has replies."""


def say(
    text: str | None,
    *calls: Mapping[str, Any],
    finish: str = "",
    usage: tuple[int, int] | None = (10, 5),
    **message: Any,
) -> bytes:
    """Make a reply: text, calls or both.

    Args:
        text: the content.
        calls: what `function` makes.
        finish: `finish_reason`; by default what the reply calls for.
        usage: input and output tokens; `None` leaves usage out.
        message: more fields of the message.
    """
    body: dict[str, Any] = {"role": "assistant", "content": text, **message}
    if calls:
        body["tool_calls"] = list(calls)
    reason = finish or ("tool_calls" if calls else "stop")
    data: dict[str, Any] = {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [{"index": 0, "message": body, "finish_reason": reason}],
    }
    if usage is not None:
        tokens_in, tokens_out = usage
        data["usage"] = {
            "prompt_tokens": tokens_in,
            "completion_tokens": tokens_out,
            "total_tokens": tokens_in + tokens_out,
        }
    return msgspec.json.encode(data)


def function(name: str, arguments: object = None, *, id: str = "k1", **kwargs: Any) -> Request:
    """Make one native tool call. `arguments` go in as they are, `kwargs` as a JSON object."""
    given = json.dumps(kwargs) if arguments is None else arguments
    return {"id": id, "type": "function", "function": {"name": name, "arguments": given}}


def call(name: str, **arguments: Any) -> bytes:
    """Make a reply with one native tool call."""
    return say(None, function(name, **arguments))


def turn(name: str, **arguments: Any) -> bytes:
    """Make a reply in the json dialect."""
    return say(json.dumps({"tool": name, "args": arguments}))


class Script(Generic[Other]):
    """Replies in order, and the requests that they answered."""

    def __init__(self, replies: Sequence[Reply | Other]) -> None:
        self._replies = list(replies)
        self.requests: list[Request] = []

    def answer(self, request: Request) -> bytes | Other:
        """Take the next reply.

        Raises:
            ScriptExhausted: there is none.
        """
        self.requests.append(request)
        number = len(self.requests)
        if number > len(self._replies):
            raise ScriptExhausted(f"request {number} came, but the script has {number - 1} replies")
        reply = self._replies[number - 1]
        if isinstance(reply, bytes) or not callable(reply):
            return reply
        return cast("Callable[[Request], bytes]", reply)(request)
