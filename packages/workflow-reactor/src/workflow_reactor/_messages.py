"""Chat messages. Each is encoded once; a request joins the bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from workflow_protocol import Usage

_encode = msgspec.json.Encoder().encode

EMPTY = "(empty)"
"""Stands where a message would be blank, which some endpoints refuse."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NOT_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")

Finish = Literal["stop", "tool_calls", "length", "refused", "error", "other"]

_BROKE_OFF: dict[Finish, str] = {
    "length": "was cut off at the output limit",
    "refused": "was stopped by a content filter, or is a refusal",
    "error": "broke off with an error of the provider",
}


class Message(msgspec.Struct, frozen=True):
    """One message of a conversation as the provider gets it."""

    role: Literal["system", "user", "assistant", "tool"]
    """Who speaks."""
    json: bytes
    """The encoded message, exactly as it stands in each request."""
    call_ids: tuple[str, ...] = ()
    """The ids of its tool calls."""

    @property
    def data(self) -> dict[str, Any]:
        """The message decoded: for people and tests, not for the loop."""
        return msgspec.json.decode(self.json)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that the model asked for."""

    id: str
    """What the call and its result are sent back with: the provider's own id, where it is unique in
    the conversation and the endpoint takes it; else one of ours, the same on each replay."""
    name: str
    """Of the tool."""
    arguments: str
    """A JSON object as text: always valid, `{}` where `fault` says why it isn't the model's."""
    fault: str = ""
    """What is wrong with the arguments, in words for the model. Such a call is never executed."""
    raw_arguments: str = ""
    """What the model wrote, where it differs from `arguments`."""
    strict: bool = False
    """The schema went out in its strict form: null for an optional key means that it is absent."""
    provider_id: str = ""
    """As the provider gave it; empty if it gave none."""
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False, repr=False)
    """What else the provider put on the call, such as a signature: it goes back unchanged."""
    function_extra: Mapping[str, Any] = field(
        default_factory=dict[str, Any], compare=False, repr=False
    )
    """… and on its `function`."""


class AssistantMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A model's reply, whatever shape it came in."""

    text: str
    """What it says beside its calls; empty if nothing."""
    tool_calls: tuple[ToolCall, ...] = ()
    """In the order in which the model wrote them."""
    finish: Finish = "stop"
    """Why the reply ended."""
    usage: Usage = Usage()
    """The tokens that it took."""
    reasoning: str = ""
    """What the model thought aloud, where the endpoint tells."""
    message: Message
    """What is sent back as the assistant's turn: valid for the strictest endpoint."""
    raw: bytes
    """The body of the provider's reply as it came. The journal records it."""
    model: str = ""
    """The name of the model that replied, where the reply tells one."""

    @property
    def broke_off(self) -> str:
        """Why the reply did not come to its end, such as `was cut off at the output limit`; empty
        where it did. The text of a reply that broke off is no result."""
        return _BROKE_OFF.get(self.finish, "")


def system(text: str) -> Message:
    """The system message."""
    return Message("system", _encode({"role": "system", "content": replace_surrogates(text)}))


def user(text: str) -> Message:
    """A user message."""
    return Message("user", _encode({"role": "user", "content": replace_surrogates(text)}))


def tool_result(call: ToolCall, text: str) -> Message:
    """The answer to one native tool call."""
    content = replace_surrogates(text) if text.strip() else EMPTY
    return Message("tool", _encode({"role": "tool", "tool_call_id": call.id, "content": content}))


def assistant(text: str, tool_calls: Sequence[ToolCall] = (), /, **extra: Any) -> Message:
    """An assistant turn: text, calls, or both. `extra` holds provider fields to echo.

    It is valid for the strictest endpoint: content is null only beside calls and is never blank,
    names are of the characters that a tool's name may have.
    """
    text = replace_surrogates(text) if text.strip() else ""
    data: dict[str, Any] = {"role": "assistant", "content": text or EMPTY}
    if tool_calls:
        data["content"] = text or None
        data["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {
                    "name": _valid_name(call.name),
                    "arguments": call.arguments,
                    **call.function_extra,
                },
                **call.extra,
            }
            for call in tool_calls
        ]
    ids = tuple([call.id for call in tool_calls])
    return Message("assistant", _encode(data | extra), ids)


def _valid_name(name: str) -> str:
    return name if _NAME.fullmatch(name) else (_NOT_IN_NAME.sub("_", name)[:64] or "unnamed")


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which no UTF-8 message can carry, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
