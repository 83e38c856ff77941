"""Reads a provider's reply, whatever shape it came in. Pure: the same bytes give the same message.

Two things can be wrong with a body: it is no reply at all (`NotAReply`: the provider's fault,
handled by the retry layer), or the model wrote something odd (kept as text, or as a call whose
`fault` says what is wrong, handled by the loop).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any, cast

from workflow_protocol import Usage
from workflow_reactor._messages import AssistantMessage, Finish, ToolCall, assistant
from workflow_reactor._provider import Profile
from workflow_reactor.reply._calls import make_call, own_id, own_name
from workflow_reactor.reply._completion import CallBody, MessageBody, NotAReply, read_body
from workflow_reactor.reply._finish import read_finish
from workflow_reactor.reply._json_text import replace_all_surrogates
from workflow_reactor.reply._text_calls import calls_as_text, calls_in_text
from workflow_reactor.reply._unknown import REASONING
from workflow_reactor.request._tools import ToolDefinition

__all__ = ["NotAReply", "read_reply"]


def read_reply(
    body: bytes,
    profile: Profile,
    *,
    round: int = 0,
    tools: Sequence[ToolDefinition] | None = None,
    taken_ids: Collection[str] = (),
) -> AssistantMessage:
    """Decode one chat completion.

    Args:
        body: the reply as it came.
        profile: whether reasoning goes back, calls in the text count, and where replies are cut.
        round: makes the ids of the calls unique in the conversation.
        tools: what was offered. Where there was nothing to call, native calls become text: a
            history may not hold calls that nobody answers. `None` if that isn't known.
        taken_ids: the ids of the conversation's calls so far.

    Raises:
        NotAReply: not JSON, an error object under status 200, or no message in it.
    """
    reply = read_body(body)
    message = reply.message
    usage = _usage(reply.usage)
    finish = _finish(reply.finish_reason, usage, profile.max_tokens)
    parts = _Parts(message.content)
    refusal = message.refusal if isinstance(message.refusal, str) else parts.refusal
    text = parts.text or replace_all_surrogates(refusal)
    taken = set(taken_ids) if reply.calls or parts.calls else set[str]()
    names = [tool.name for tool in tools or ()]
    calls = tuple(
        [
            _call(call, taken, names, profile, round=round, index=index, cut=finish == "length")
            for index, call in enumerate([*reply.calls, *parts.calls])
        ]
    )
    if calls and tools is not None and not tools:
        text, calls = text or calls_as_text(calls), ()
    elif not calls and profile.text_tool_calls and text and (tools is None or tools):
        names = None if tools is None else {tool.name for tool in tools}
        calls = calls_in_text(text, names, round=round)
    echo = reply.extra
    if not profile.echo_reasoning:
        echo = {name: value for name, value in echo.items() if not REASONING.search(name)}
    return AssistantMessage(
        text=text,
        tool_calls=calls,
        finish="refused" if refusal and not calls else finish,
        usage=usage,
        reasoning=_reasoning(message, parts),
        message=assistant(text, calls, **echo),
        raw=body,
        model=replace_all_surrogates(reply.model)[:200] if isinstance(reply.model, str) else "",
    )


class _Parts:
    """Content is a string, null, or a list of parts: texts, thoughts, refusals, calls."""

    def __init__(self, content: object) -> None:
        texts: list[str] = []
        thoughts: list[str] = []
        refusals: list[str] = []
        self.calls: list[CallBody] = []
        for part in _listed(content):
            fields = cast("dict[str, Any]", part) if isinstance(part, dict) else {"text": part}
            match fields:
                case {"type": "tool_use", "name": str()}:
                    self.calls.append(
                        CallBody(fields["name"], fields.get("input"), fields.get("id"))
                    )
                case {"type": "thinking" | "reasoning"}:
                    thoughts += _texts_in(fields.get("thinking") or fields.get("text"))
                case {"refusal": str(words)} if words:
                    refusals.append(words)
                case {"text": str(words)}:
                    texts.append(words)
                case _:
                    pass
        self.text = replace_all_surrogates("".join(texts))
        self.thoughts = replace_all_surrogates("".join(thoughts))
        self.refusal = "".join(refusals)


def _listed(content: object) -> list[object]:
    return cast("list[object]", content) if isinstance(content, list) else [content]


def _texts_in(thought: object) -> list[str]:
    """A thought is a text, or parts with a text each."""
    found: list[str] = []
    for part in _listed(thought):
        text = cast("dict[str, object]", part).get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            found.append(text)
    return found


def _reasoning(message: MessageBody, parts: _Parts) -> str:
    """What the model thought, in words."""
    for value in (message.reasoning_content, message.reasoning):
        if isinstance(value, str) and value:
            return replace_all_surrogates(value)
    return parts.thoughts


def _usage(usage: object) -> Usage:
    if not isinstance(usage, dict):
        return Usage(calls=1, unknown_calls=1)
    found = cast("dict[str, Any]", usage)
    tokens_in = _count(found, "prompt_tokens", "input_tokens")
    tokens_out = _count(found, "completion_tokens", "output_tokens")
    cost = _cost_micros(found.get("cost"))
    if tokens_in is None or tokens_out is None:
        return Usage(calls=1, unknown_calls=1, cost_micros=cost)
    details = found.get("prompt_tokens_details")
    cached = _count(cast("dict[str, Any]", details), "cached_tokens") if details else None
    cached = cached or _count(found, "prompt_cache_hit_tokens", "cache_read_input_tokens")
    return Usage(
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cached_tokens=cached or 0,
        calls=1,
        cost_micros=cost,
    )


def _cost_micros(cost: object) -> int | None:
    """OpenRouter's `usage.cost`, a number of US dollars, rounded up."""
    known = type(cost) in {int, float} and 0 <= cast("float", cost) < 2**32
    return math.ceil(round(cast("float", cost) * 1_000_000, 3)) if known else None


def _count(data: object, *keys: str) -> int | None:
    fields = cast("dict[str, Any]", data) if isinstance(data, dict) else {}
    for key in keys:
        value = fields.get(key)
        if type(value) is int and 0 <= value < 2**53:
            return value
    return None


def _finish(reason: object, usage: Usage, max_tokens: int | None) -> Finish:
    if max_tokens is not None and usage.output_tokens >= max_tokens:
        return "length"
    return read_finish(reason) if isinstance(reason, str) else "other"


def _call(
    call: CallBody,
    taken: set[str],
    names: Collection[str],
    profile: Profile,
    *,
    round: int,
    index: int,
    cut: bool,
) -> ToolCall:
    """A native call.

    Args:
        taken: the ids that are used in the conversation; gets that of the call.
        names: the tools that were offered.
    """
    came = replace_all_surrogates(call.id) if isinstance(call.id, str) else ""
    may_go_back = profile.echo_call_ids and came.strip() and came not in taken
    id = came if may_go_back else own_id(round, index, taken)
    taken.add(id)
    return make_call(
        own_name(call.name, names) if isinstance(call.name, str) else "",
        call.arguments,
        round=round,
        index=index,
        cut=cut,
        id=id,
        provider_id=came,
        extra=call.extra,
        function_extra=call.function_extra,
    )
