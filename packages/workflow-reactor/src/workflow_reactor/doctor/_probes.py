"""What an endpoint is asked to find out what it can do: small requests, each with its judge."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from workflow_protocol import JsonObject
from workflow_reactor._messages import AssistantMessage, ToolCall, assistant, tool_result
from workflow_reactor.doctor._verdicts import (
    FEW_TOKENS,
    Answer,
    Judge,
    Verdict,
    begins_coloured,
    calls_any,
    calls_in_text,
    calls_none,
    calls_one,
    calls_time,
    calls_two,
    calls_weather,
    counts,
    has_ids,
    has_state,
    has_text,
    is_answered,
    is_coloured,
    is_cut,
    is_either,
    is_json_object,
    is_not_checked,
    is_taken,
    obeys_system,
    reasons,
    stops,
)
from workflow_reactor.reply._calls import own_id

PROBE_TOKENS = 256
"""The most tokens of a probe's reply: enough for a model that reasons a little first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What came back for one probe."""

    reply: AssistantMessage | None = None
    refused: str = ""
    """The endpoint's words, where it took the request for a wrong one."""
    failed: str = ""
    """What went wrong, where that says nothing of the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question to an endpoint."""

    name: str
    asks: str
    """What a yes means."""
    body: JsonObject = field(default_factory=dict[str, Any])
    """The request, without model and limit."""
    after: str = ""
    """The name of an earlier probe whose calls are sent back, with results; `own_ids`: with ids of
    ours."""
    own_ids: bool = False
    judge: Judge
    same_as: str = ""
    """The name of an earlier probe whose reply is judged; nothing is sent."""
    max_tokens: int | None = PROBE_TOKENS
    """The limit that the request gets on the tokens of its reply; `None` where it brings one."""
    refusal: Answer = "no"
    """What it means when the endpoint refuses the request."""

    def verdict(self, observed: Observed) -> Verdict:
        """Judge what came back."""
        if observed.failed:
            return Verdict("unclear", observed.failed)
        if observed.reply is None:
            return Verdict(self.refusal, f"refused: {observed.refused}")
        return self.judge(observed.reply)


def with_results(body: JsonObject, called: AssistantMessage | None, *, own_ids: bool) -> JsonObject:
    """A request with calls of an earlier reply, as they came, and their results.

    Args:
        called: the reply; a call of ours where there is none, or none of its own.
        own_ids: the calls have ids of ours.
    """
    calls = called.tool_calls if called is not None and called.tool_calls else (_CALL,)
    if own_ids:
        calls = [replace(call, id=own_id(0, index)) for index, call in enumerate(calls)]
    known = {"role", "content", "tool_calls"}
    data = called.message.data if called is not None and called.tool_calls else {}
    state = {name: value for name, value in data.items() if name not in known}
    message = assistant("", calls, **state)
    results = [tool_result(call, "Sunny, 21 degrees.") for call in calls]
    sent = [*body["messages"], *[each.data for each in (message, *results)]]
    return {**body, "messages": sent}


def _says(text: str) -> list[JsonObject]:
    return [{"role": "user", "content": text}]


def _tool(name: str, parameters: JsonObject, **more: Any) -> JsonObject:
    about = f"Look up the {name} of a place."
    function = {"name": name, "description": about, "parameters": parameters, **more}
    return {"type": "function", "function": function}


def _object(properties: JsonObject, **more: Any) -> JsonObject:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
        **more,
    }


def _schema(schema: JsonObject, **more: Any) -> JsonObject:
    return {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": schema, **more},
    }


_CITY = _object({"city": {"type": "string"}})
_WEATHER, _TIME = _tool("weather", _CITY), _tool("time", _CITY)
_ASK_WEATHER = _says("What is the weather in Paris? Use the tool.")
_ASK_BOTH = _says("What is the weather in Paris, and in Rome? Ask for both at once, in one reply.")
_OPEN: JsonObject = {"type": "object", "properties": {"city": {}}}
_COLOUR = _object({"colour": {"enum": ["red", "green"]}})
_UNION: JsonObject = {"anyOf": [_COLOUR, _object({"number": {"type": "integer"}})]}
_BY_REF = _object(
    {"colour": {"$ref": "#/$defs/Colour"}}, **{"$defs": {"Colour": {"enum": ["red", "green"]}}}
)
_RECURSIVE: JsonObject = _object(
    {"colour": {"enum": ["red", "green"]}, "next": {"$ref": "#/$defs/Node"}},
    **{
        "$defs": {
            "Node": {"anyOf": [{"type": "null"}, _object({"next": {"$ref": "#/$defs/Node"}})]}
        }
    },
)
_CALL = ToolCall(id="c00000000", name="weather", arguments='{"city":"Paris"}')
_THOUGHT = [
    *_says("Say hi."),
    {"role": "assistant", "content": "Hi.", "reasoning_content": "A greeting is asked for."},
    *_says("Say hi again."),
]


_LONG = _says("Count from one to fifty in words, one number a line.")

PROBES: tuple[Probe, ...] = (
    Probe(name="chat", asks="it replies", body={"messages": _says("Say hi.")}, judge=has_text),
    Probe(name="usage", asks="replies say what they cost", judge=counts, same_as="chat"),
    Probe(name="reasoning", asks="replies hold reasoning", judge=reasons, same_as="chat"),
    Probe(
        name="max_tokens",
        asks="max_tokens limits a reply",
        body={"messages": _LONG, "max_tokens": FEW_TOKENS},
        judge=is_cut,
        max_tokens=None,
    ),
    Probe(
        name="max_completion_tokens",
        asks="max_completion_tokens limits a reply",
        body={"messages": _LONG, "max_completion_tokens": FEW_TOKENS},
        judge=is_cut,
        max_tokens=None,
    ),
    Probe(
        name="system",
        asks="a system message is obeyed",
        body={
            "messages": [
                {"role": "system", "content": "Whatever you are asked, reply with the word BLUE."},
                *_says("What colour is grass?"),
            ]
        },
        judge=obeys_system,
    ),
    Probe(
        name="temperature",
        asks="temperature 0 is taken",
        body={"messages": _says("Say hi."), "temperature": 0},
        judge=is_answered,
    ),
    Probe(
        name="stop",
        asks="a stop sequence ends the reply",
        body={
            "messages": _says("Repeat these words exactly: alpha beta gamma delta"),
            "stop": ["gamma"],
        },
        judge=stops,
    ),
    Probe(
        name="json_object",
        asks="a reply can be held to JSON",
        body={
            "messages": _says("Describe the sky as a JSON object with the key `colour`."),
            "response_format": {"type": "json_object"},
        },
        judge=is_json_object,
    ),
    Probe(
        name="json_schema",
        asks="a reply can be held to a schema",
        body={"messages": _says("Say hi."), "response_format": _schema(_COLOUR)},
        judge=is_coloured,
    ),
    Probe(
        name="json_schema_strict",
        asks="… with strict",
        body={"messages": _says("Say hi."), "response_format": _schema(_COLOUR, strict=True)},
        judge=is_coloured,
    ),
    Probe(
        name="json_schema_union",
        asks="… with anyOf at the root",
        body={"messages": _says("Say hi."), "response_format": _schema(_UNION)},
        judge=is_either,
    ),
    Probe(
        name="json_schema_refs",
        asks="… with definitions",
        body={"messages": _says("Say hi."), "response_format": _schema(_BY_REF)},
        judge=is_coloured,
    ),
    Probe(
        name="json_schema_recursive",
        asks="… with a definition inside itself",
        body={"messages": _says("Say hi."), "response_format": _schema(_RECURSIVE)},
        judge=begins_coloured,  # some models never find the end of one
        max_tokens=48,
    ),
    Probe(
        name="tool",
        asks="the model calls a tool",
        body={"messages": _ASK_WEATHER, "tools": [_WEATHER]},
        judge=calls_weather,
    ),
    Probe(name="tool_ids", asks="calls have ids", judge=has_ids, same_as="tool"),
    Probe(
        name="tool_in_text",
        asks="the model writes its calls as text",
        judge=calls_in_text,
        same_as="tool",
    ),
    Probe(
        name="tool_state",
        asks="calls carry state of the provider, which goes back",
        judge=has_state,
        same_as="tool",
    ),
    Probe(
        name="tool_result",
        asks="a call and its result can be sent back",
        body={"messages": _ASK_WEATHER, "tools": [_WEATHER]},
        after="tool",
        own_ids=True,
        judge=is_answered,
    ),
    Probe(
        name="tool_ids_echo",
        asks="… with the id that it came with",
        body={"messages": _ASK_WEATHER, "tools": [_WEATHER]},
        after="tool",
        judge=is_answered,
    ),
    Probe(
        name="tool_required",
        asks="the model can be made to call some tool",
        body={"messages": _says("Say hi."), "tools": [_WEATHER], "tool_choice": "required"},
        judge=calls_any,
    ),
    Probe(
        name="tool_named",
        asks="the model can be made to call one tool",
        body={
            "messages": _ASK_WEATHER,
            "tools": [_WEATHER, _TIME],
            "tool_choice": {"type": "function", "function": {"name": "time"}},
        },
        judge=calls_time,
    ),
    Probe(
        name="tool_none",
        asks="the model can be kept from calling tools",
        body={"messages": _ASK_WEATHER, "tools": [_WEATHER], "tool_choice": "none"},
        judge=calls_none,
    ),
    Probe(
        name="tool_refs",
        asks="a tool's schema may have definitions",
        body={"messages": _ASK_WEATHER, "tools": [_tool("weather", _BY_REF)]},
        judge=is_taken,
    ),
    Probe(
        name="tool_strict",
        asks="a tool may be strict",
        body={"messages": _ASK_WEATHER, "tools": [_tool("weather", _CITY, strict=True)]},
        judge=is_taken,
    ),
    Probe(
        name="tool_strict_checked",
        asks="… and that is checked, so it means something",
        body={
            "messages": _ASK_WEATHER,
            "tools": [
                _tool("weather", {"type": "object", "properties": {"city": {}}}, strict=True)
            ],
        },
        judge=is_not_checked,
        refusal="yes",
    ),
    Probe(
        name="parallel",
        asks="several calls come in one reply",
        body={"messages": _ASK_BOTH, "tools": [_WEATHER]},
        judge=calls_two,
    ),
    Probe(
        name="parallel_on",
        asks="… when they are asked for",
        body={"messages": _ASK_BOTH, "tools": [_WEATHER], "parallel_tool_calls": True},
        judge=calls_two,
    ),
    Probe(
        name="parallel_off",
        asks="… and not when they are forbidden",
        body={"messages": _ASK_BOTH, "tools": [_WEATHER], "parallel_tool_calls": False},
        judge=calls_one,
    ),
    Probe(
        name="reasoning_echo",
        asks="reasoning can be sent back",
        body={"messages": _THOUGHT},
        judge=is_answered,
    ),
)
