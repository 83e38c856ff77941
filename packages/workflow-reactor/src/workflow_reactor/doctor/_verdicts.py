"""Judges of a probe's reply: does it show what the probe asks?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, cast

from workflow_protocol import JsonObject
from workflow_reactor._messages import AssistantMessage, ToolCall
from workflow_reactor._provider import Profile
from workflow_reactor.reply._json_text import NotOneValue, parse_strict
from workflow_reactor.reply._reply import read_reply

FEW_TOKENS = 8
"""The limit that a long reply is asked with."""

Answer = Literal["yes", "no", "unclear"]
"""`unclear`: the endpoint was busy, or the model did something else than it was asked."""


class Verdict(NamedTuple):
    """What a reply shows."""

    answer: Answer
    words: str


Judge = Callable[[AssistantMessage], Verdict]


def has_text(reply: AssistantMessage) -> Verdict:
    """There is text."""
    if reply.text.strip():
        return Verdict("yes", f"{reply.text.strip()[:40]!r}")
    return Verdict("unclear", "the reply has no text")


def is_answered(reply: AssistantMessage) -> Verdict:
    """There is a reply at all."""
    del reply
    return Verdict("yes", "taken")


def counts(reply: AssistantMessage) -> Verdict:
    """It says what it cost."""
    usage = reply.usage
    if usage.unknown_calls:
        return Verdict("no", "the reply does not say")
    return Verdict("yes", f"{usage.input_tokens} in, {usage.output_tokens} out")


def is_cut(reply: AssistantMessage) -> Verdict:
    """It was cut at `FEW_TOKENS`."""
    tokens = reply.usage.output_tokens
    if reply.finish == "length" or 0 < tokens <= FEW_TOKENS:
        return Verdict("yes", f"cut after {tokens or 'some'} tokens")
    return Verdict("no", f"not cut after {tokens or len(reply.text)}")


def obeys_system(reply: AssistantMessage) -> Verdict:
    """It is what the system message demands."""
    if "blue" in reply.text.lower():
        return Verdict("yes", "obeyed")
    return Verdict("unclear", f"taken, and the model said {reply.text[:40]!r}")


def stops(reply: AssistantMessage) -> Verdict:
    """It ends before the stop sequence."""
    if "gamma" in reply.text:
        return Verdict("no", "ignored")
    if "beta" in reply.text:
        return Verdict("yes", "the text ends before it")
    return Verdict("unclear", f"taken, and the model said {reply.text[:40]!r}")


def reasons(reply: AssistantMessage) -> Verdict:
    """It holds reasoning."""
    return Verdict("yes", "it does") if reply.reasoning else Verdict("no", "none in the reply")


def _value(reply: AssistantMessage) -> Any:
    """The reply as JSON; `None` where it is no JSON."""
    try:
        return parse_strict(reply.text)
    except NotOneValue:
        return None


def is_json_object(reply: AssistantMessage) -> Verdict:
    """It is one JSON object."""
    if reply.finish == "length":
        return Verdict("unclear", "cut off")
    if isinstance(_value(reply), dict):
        return Verdict("yes", "an object")
    return Verdict("no", f"ignored: {reply.text[:40]!r}")


def is_coloured(reply: AssistantMessage) -> Verdict:
    """It fits the schema with a colour."""
    value = _value(reply)
    colour = cast("JsonObject", value).get("colour") if isinstance(value, dict) else None
    if colour in ("red", "green"):
        return Verdict("yes", "the reply fits the schema")
    if reply.finish == "length":
        return Verdict("unclear", "cut off")
    return Verdict("no", f"not held to it: {reply.text[:40]!r}")


def begins_coloured(reply: AssistantMessage) -> Verdict:
    """It fits the schema with a colour, or did until it was cut off."""
    start = "".join(reply.text.split())
    if reply.finish == "length" and start.startswith(('{"colour":"red"', '{"colour":"green"')):
        return Verdict("yes", "held to it until it was cut off")
    return is_coloured(reply)


def is_either(reply: AssistantMessage) -> Verdict:
    """It fits one of two schemas."""
    value = _value(reply)
    if isinstance(value, dict) and isinstance(cast("JsonObject", value).get("number"), int):
        return Verdict("yes", "the reply fits the schema")
    return is_coloured(reply)


def calls_weather(reply: AssistantMessage) -> Verdict:
    """It calls the tool that was asked for."""
    if not reply.tool_calls:
        return Verdict("no", f"no call: {reply.text[:40]!r}")
    call = reply.tool_calls[0]
    if call.fault:
        return Verdict("no", call.fault)
    if call.name != "weather":
        return Verdict("no", f"called {call.name!r}")
    return Verdict("yes", f"weather({call.arguments})")


def calls_any(reply: AssistantMessage) -> Verdict:
    """It calls some tool."""
    if reply.tool_calls:
        return Verdict("yes", f"called {reply.tool_calls[0].name}")
    return Verdict("no", f"ignored: {reply.text[:40]!r}")


def calls_time(reply: AssistantMessage) -> Verdict:
    """It calls the tool that was named, against the question."""
    if not reply.tool_calls:
        return Verdict("no", f"no call: {reply.text[:40]!r}")
    name = reply.tool_calls[0].name
    return Verdict("yes" if name == "time" else "no", f"called {name}")


def calls_none(reply: AssistantMessage) -> Verdict:
    """It calls no tool."""
    if reply.tool_calls:
        return Verdict("no", f"called {reply.tool_calls[0].name} all the same")
    return Verdict("yes", "no call")


def calls_two(reply: AssistantMessage) -> Verdict:
    """It calls twice or more."""
    count = len(reply.tool_calls)
    return Verdict("yes" if count > 1 else "no", f"{count} calls in the reply")


def calls_one(reply: AssistantMessage) -> Verdict:
    """It calls once at most."""
    count = len(reply.tool_calls)
    return Verdict("yes" if count < 2 else "no", f"{count} calls in the reply")


def is_taken(reply: AssistantMessage) -> Verdict:
    """The tools were taken."""
    return Verdict("yes", _named(reply.tool_calls))


def is_not_checked(reply: AssistantMessage) -> Verdict:
    """A wrong strict schema was taken."""
    return Verdict("no", f"an open schema passed for a strict one: {_named(reply.tool_calls)}")


def _named(calls: Sequence[ToolCall]) -> str:
    return f"called {calls[0].name}({calls[0].arguments})" if calls else "taken, but no call"


def has_ids(reply: AssistantMessage) -> Verdict:
    """Its calls have ids."""
    if not reply.tool_calls:
        return Verdict("unclear", "there was no call")
    ids = [call.provider_id for call in reply.tool_calls]
    return Verdict("yes" if all(ids) else "no", f"{ids[0]!r}" if ids[0] else "they are empty")


def has_state(reply: AssistantMessage) -> Verdict:
    """Its calls, or the message, have fields that the protocol doesn't know."""
    if not reply.tool_calls:
        return Verdict("unclear", "there was no call")
    names = [name for call in reply.tool_calls for name in (*call.extra, *call.function_extra)]
    names += reply.message.data.keys() - {"role", "content", "tool_calls"}
    if not names:
        return Verdict("no", "none")
    return Verdict("yes", ", ".join(dict.fromkeys(names))[:200])


def calls_in_text(reply: AssistantMessage) -> Verdict:
    """It has a call written as text."""
    if reply.tool_calls:
        return Verdict("no", "its calls are native")
    found = read_reply(reply.raw, Profile(text_tool_calls=True)).tool_calls
    if found and found[0].name == "weather":
        return Verdict("yes", f"weather({found[0].arguments})")
    return Verdict("no", "nothing like a call in the text")
