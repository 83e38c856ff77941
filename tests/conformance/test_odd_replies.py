"""Odd but real replies, one a line, each followed by a good `resolve` of 42.

The loop is the ReAct adapter's over HTTP; the endpoint answers 400 to any request that the strictest
provider would refuse. To add a reply, add a line: what came, what ran, what the model was told.
"""

# ruff: noqa: E501 - an entry is a line, however long

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from workflow_reactor import Profile
from workflow_reactor.testing import Reply, Wire, call, function, http, say

RESOLVE = call("resolve", answer=42)
CUT = '{"path": "a.txt", "text": "line one\\nline t'
SUM = "add(a=40, b=2)"
ADD = '{"a": 40, "b": 2}'
NAMED = '{"name": "add", "arguments": {"a": 40, "b": 2}}'
TEXT_CALLS = Profile(text_tool_calls=True)


class Odd(NamedTuple):
    """One reply and its outcome."""

    id: str
    reply: bytes
    ran: Sequence[str] = ()
    told: str = ""
    profile: Profile = Profile()
    more: Sequence[Reply] = (RESOLVE,)


def add(arguments: object, **more: Any) -> bytes:
    return say(None, function("add", arguments), **more)


def message(*items: object, finish: object = "tool_calls", **fields: Any) -> bytes:
    """A reply whose message has just these fields; `items` are its `tool_calls`."""
    body: dict[str, Any] = {
        "role": "assistant",
        **({"tool_calls": items} if items else {}),
        **fields,
    }
    return json.dumps({"choices": [{"message": body, "finish_reason": finish}]}).encode()


def bare(name: str, arguments: Any = ADD, **fields: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **fields}


NO_ARGUMENTS: Any = {"id": "k1", "type": "function", "function": {"name": "ping"}}
NOT_ONE = "the arguments are not one valid JSON object"
NO_OBJECT = "the arguments must be a JSON object, not "
NO_CALL = "has no tool call"
LONE: Any = {"path": "a", "text": "\ud800"}

ODD = [
    # arguments that are absent
    Odd("arguments-empty", say(None, function("ping", "")), ["ping()"]),
    Odd("arguments-null", message(bare("ping", None)), ["ping()"]),
    Odd("arguments-blank", say(None, function("ping", "  \n")), ["ping()"]),
    Odd("arguments-missing", message(NO_ARGUMENTS), ["ping()"]),
    # arguments that hold the object in another form
    Odd("arguments-object", message(bare("add", {"a": 40, "b": 2})), [SUM]),
    Odd("arguments-fenced", add(f"```json\n{ADD}\n```"), [SUM]),
    Odd("arguments-fence-open", add(f"```json\n{ADD}"), [SUM]),
    Odd("arguments-in-prose", add(f"Here: {ADD} as you wished."), [SUM]),
    Odd("arguments-twice-encoded", add(json.dumps(ADD)), [SUM]),
    Odd("arguments-bom", add("\ufeff" + ADD), [SUM]),
    Odd("arguments-after-thought", add(f'<think>{{"a": 1}}</think>{ADD}'), [SUM]),
    Odd("arguments-raw-newline", say(None, function("note", '{"text": "x\ny"}')), ["note(text='x\\ny')"]),
    # arguments that can't be read: never executed
    Odd("arguments-array", add("[40,2]"), [], NO_OBJECT + "an array"),
    Odd("arguments-string", add('"40"'), [], NO_OBJECT + "a string"),
    Odd("arguments-number", add("42"), [], NO_OBJECT + "a number"),
    Odd("arguments-true", add("true"), [], NO_OBJECT + "true or false"),
    Odd("arguments-null-as-text", add("null"), [], NO_OBJECT + "null"),
    Odd("arguments-list-value", message(bare("add", [40, 2])), [], NO_OBJECT + "an array"),
    Odd("arguments-number-value", message(bare("add", 7)), [], NO_OBJECT + "a number"),
    Odd("arguments-glued", add('{"a":40,"b":2}{"a":1,"b":1}'), [], "more after the first JSON value"),
    Odd("arguments-key-twice", add('{"a":40,"a":41,"b":2}'), [], "the key 'a' stands twice"),
    Odd("arguments-object-key-twice", message(bare("add", 0)).replace(b'"arguments": 0', b'"arguments": {"a":1,"a":2,"b":3}'), [], "the key 'a' stands twice"),
    Odd("arguments-python", add("{'a': 40}"), [], NOT_ONE),
    Odd("arguments-nan", add('{"a": NaN, "b": 2}'), [], "NaN is not JSON"),
    Odd("arguments-infinite", add('{"a": 1e999, "b": 2}'), [], "too large"),
    Odd("arguments-many-digits", add('{"a": ' + "9" * 5000 + ', "b": 2}'), [], "too many digits"),
    Odd("arguments-deep", add('{"a": ' + "[" * 5000 + "1" + "]" * 5000 + ', "b": 2}'), [], "nested too deeply"),
    Odd("arguments-words", add("forty and two"), [], NOT_ONE),
    Odd("arguments-wrong-type", add('{"a": "x", "b": 2}'), [], "$.a"),
    Odd("arguments-lone-surrogate", say(None, function("write", json.dumps(LONE))), ["write(path='a', text='\ufffd')"]),
    Odd("arguments-lone-surrogate-object", message(bare("write", LONE)), ["write(path='a', text='\ufffd')"]),
    # cut off
    Odd("cut-labelled-tool_calls", say(None, function("write", CUT)), [], "cut off at the output limit"),
    Odd("cut-labelled-length", say(None, function("write", CUT), finish="length"), [], "in smaller pieces"),
    Odd("cut-labelled-stop", say(None, function("write", CUT), finish="stop"), [], "cut off"),
    Odd("cut-at-limit", say(None, function("write", '{"path": x'), usage=(9, 5)), [], "cut off", Profile(max_tokens=5)),
    Odd("cut-after-key", say(None, function("write", '{"path": "a", "te')), [], "cut off"),
    Odd("cut-in-number", add('{"a": 40, "b": -'), [], "cut off"),
    Odd("cut-in-word", say(None, function("write", '{"path": tr')), [], "cut off"),
    Odd("cut-in-escape", say(None, function("write", '{"path": "\\u00')), [], "cut off"),
    Odd("cut-in-fence", say(None, function("write", "```json\n" + CUT)), [], "cut off"),
    Odd("cut-one-of-two", say(None, function("ping", "{}"), function("write", CUT)), ["ping()"], "cut off"),
    Odd("cut-text", say("I think that", finish="length"), [], "cut off at the output limit"),
    Odd("cut-in-reasoning", say(None, finish="length", reasoning_content="hm"), [], "cut off at the output limit"),
    # ids
    Odd("id-missing", message(bare("add")), [SUM]),
    Odd("id-empty", message(bare("add", id="")), [SUM]),
    Odd("id-null-twice", message(bare("add", id=None), bare("ping", "{}", id=None)), [SUM, "ping()"]),
    Odd("id-number", message(bare("add", id=3)), [SUM]),
    Odd("id-repeated", message(bare("add", id="k"), bare("ping", "{}", id="k")), [SUM, "ping()"]),
    Odd("id-of-last-round", call("ping"), ["ping()", SUM], "", Profile(), (add(ADD), RESOLVE)),
    Odd("id-very-long", message(bare("add", id="x" * 500)), [SUM]),
    # content and finish reasons
    Odd("content-missing", message(bare("add")), [SUM]),
    Odd("content-blank", message(bare("add"), content=" \n"), [SUM]),
    Odd("content-parts", message(bare("add"), content=[{"type": "text", "text": "so"}]), [SUM]),
    Odd("content-parts-empty", message(bare("add"), content=[]), [SUM]),
    Odd("content-part-thinking", message(bare("add"), content=[{"type": "thinking", "thinking": [{"text": "h"}]}]), [SUM]),
    Odd("content-part-tool_use", message(content=[{"type": "tool_use", "id": "t", "name": "add", "input": {"a": 40, "b": 2}}]), [SUM]),
    Odd("content-number", message(bare("add"), content=3), [SUM]),
    Odd("finish-stop", say(None, function("add", ADD), finish="stop"), [SUM]),
    Odd("finish-empty", message(bare("add"), finish=""), [SUM]),
    Odd("finish-null", message(bare("add"), finish=None), [SUM]),
    Odd("finish-unknown", message(bare("add"), finish="eos_token"), [SUM]),
    Odd("finish-error", message(finish="error", content=None), [], NO_CALL),
    Odd("finish-malformed-call", message(finish="MALFORMED_FUNCTION_CALL"), [], NO_CALL),
    Odd("usage-null", json.dumps({**json.loads(add(ADD)), "usage": None}).encode(), [SUM]),
    Odd("usage-strings", json.dumps({**json.loads(add(ADD)), "usage": {"prompt_tokens": "9"}}).encode(), [SUM]),
    Odd("fields-unknown", json.dumps({**json.loads(add(ADD)), "x": [{}], "service_tier": None}).encode(), [SUM]),
    Odd("error-beside-choices", json.dumps({**json.loads(add(ADD)), "error": None}).encode(), [SUM]),
    # calls in other wrappers
    Odd("calls-null-and-text", message(tool_calls=None, content="hm", finish="stop"), [], NO_CALL),
    Odd("calls-empty-and-text", message(tool_calls=[], content="hm"), [], NO_CALL),
    Odd("calls-single-object", message(tool_calls=bare("add")), [SUM]),
    Odd("calls-with-null-item", message(None, bare("add")), [SUM]),
    Odd("calls-without-function", message({"name": "add", "arguments": ADD}), [SUM]),
    Odd("calls-as-text", message(tool_calls="add", content="x"), [], NO_CALL),
    Odd("function_call", message(function_call={"name": "add", "arguments": ADD}), [SUM]),
    Odd("text-beside-calls", say("I add.", function("add", ADD)), [SUM]),
    Odd("same-tool-twice", message(bare("add"), bare("add")), [SUM, SUM]),
    # names
    Odd("name-unknown", say(None, function("addd", ADD)), [], "there is no tool 'addd'; the tools are add, "),
    Odd("name-padded", say(None, function(" add\n", ADD)), [SUM]),
    Odd("name-prefixed", say(None, function("functions.add", ADD)), [SUM]),
    Odd("name-not-sendable", say(None, function("my tool/é", ADD)), [], "there is no tool 'my tool/é'"),
    Odd("name-missing", message({"id": "k", "function": {"arguments": ADD}}), [], "there is no tool ''"),
    Odd("name-null", message(bare("add")).replace(b'"add"', b"null"), [], "there is no tool ''"),
    Odd("name-long", say(None, function("x" * 300, ADD)), [], "there is no tool"),
    # no call at all
    Odd("text", say("It is forty-two."), [], NO_CALL),
    Odd("nothing", say(None), [], NO_CALL),
    Odd("blank", say(" \n"), [], NO_CALL),
    Odd("bare-json", say('{"answer": 42}'), [], NO_CALL),
    Odd("refusal", say(None, refusal="I can't."), [], NO_CALL),
    Odd("content-filter", say("", finish="content_filter"), [], NO_CALL),
    Odd("reasoning-only", say(None, reasoning_content="hm"), [], NO_CALL),
    # a call in the text
    Odd("text-call-not-allowed", say(NAMED), [], NO_CALL),
    Odd("text-call", say(NAMED), [SUM], "", TEXT_CALLS),
    Odd("text-call-fenced", say(f"```json\n{NAMED}\n```"), [SUM], "", TEXT_CALLS),
    Odd("text-call-tagged", say(f"Well.\n<tool_call>\n{NAMED}\n</tool_call>"), [SUM], "", TEXT_CALLS),
    Odd("text-call-tag-open", say(f"<tool_call>{NAMED}"), [SUM], "", TEXT_CALLS),
    Odd("text-calls-tagged", say(f"<tool_call>{NAMED}</tool_call>\n<tool_call>{NAMED}</tool_call>"), [SUM, SUM], "", TEXT_CALLS),
    Odd("text-calls-list", say(f"[{NAMED}, {NAMED}]"), [SUM, SUM], "", TEXT_CALLS),
    Odd("text-calls-lines", say(f"{NAMED}\n{NAMED}"), [SUM, SUM], "", TEXT_CALLS),
    Odd("text-call-mistral", say(f"[TOOL_CALLS][{NAMED}]"), [SUM], "", TEXT_CALLS),
    Odd("text-call-llama", say(f"<|python_tag|>{NAMED.replace('arguments', 'parameters')}"), [SUM], "", TEXT_CALLS),
    Odd("text-call-openai", say(json.dumps({"tool_calls": [bare("add")]})), [SUM], "", TEXT_CALLS),
    Odd("text-call-thought", say(f"<think>{NAMED}</think>Done."), [], NO_CALL, TEXT_CALLS),
    Odd("text-call-unknown", say('{"name": "Bob", "arguments": {}}'), [], NO_CALL, TEXT_CALLS),
    Odd("text-call-unknown-tagged", say('<tool_call>{"name": "addd"}</tool_call>'), [], "there is no tool 'addd'", TEXT_CALLS),
    Odd("text-call-broken", say('<tool_call>{"name": "add", "arguments": {"a": 4</tool_call>'), [], "the call in your text is not one valid JSON object", TEXT_CALLS),
    Odd("text-call-key-twice", say('{"name": "add", "arguments": {"a": 1, "a": 2, "b": 1}}'), [], "the key 'a' stands twice", TEXT_CALLS),
    # the body
    Odd("body-blank-lines", b"\n\n   \n" + add(ADD), [SUM]),
    Odd("body-bom", b"\xef\xbb\xbf" + add(ADD), [SUM]),
    Odd("body-bad-utf8", add(ADD).replace(b'"content":null', b'"content":"\xff\xfe"'), [SUM]),
    Odd("body-lone-surrogate", add(ADD).replace(b'"content":null', b'"content":"a\\ud83d"'), [SUM]),
    Odd("body-surrogate-pair", add(ADD).replace(b'"content":null', b'"content":"\\ud83d\\ude00 \\\\ud83d"'), [SUM]),
    Odd("body-raw-newline", add(ADD).replace(b'"content":null', b'"content":"a\nb"'), [SUM]),
    Odd("body-nan", add(ADD).replace(b'"created":0', b'"created":0,"logprobs":NaN,"x":-Infinity'), [SUM]),
    Odd("body-choices-two", json.dumps({**json.loads(add(ADD)), "choices": json.loads(add(ADD))["choices"] * 2}).encode(), [SUM]),
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=[odd.id for odd in ODD])
async def test_a_role_survives(odd: Odd, run_react: Callable[..., Awaitable[Any]]) -> None:
    run = await run_react([odd.reply, *odd.more], profile=odd.profile)

    assert run.error is None
    assert (run.value.answer, run.ran) == (42, list(odd.ran))
    assert len(run.requests) == 1 + len(odd.more)
    assert odd.told in run.told()
    assert run.journal.records["llm/0"][1] == odd.reply  # the record keeps what came, as it came


WIRES = [
    Wire(data=http(503)),
    Wire(then="reset"),
    Wire(data=http(200, RESOLVE)[:-5], then="close"),
    Wire(data=http(200, b"<html>")),
    Wire(data=http(400, b"{}")),
]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(st.sampled_from(ODD).map(lambda odd: odd.reply) | st.sampled_from(WIRES), max_size=8),
    st.sampled_from(["native", "json", "xml"]),
    st.builds(Profile, text_tool_calls=st.booleans(), echo_reasoning=st.booleans()),
)
@example(
    replies=[say(None, reasoning_content="hm"), Wire(data=http(400, b"{}"))],
    dialect="native",
    profile=Profile(echo_reasoning=True),
)
async def test_any_mixture_keeps_the_prefix_and_ends_in_a_value_or_a_typed_error(
    run_react: Callable[..., Awaitable[Any]],
    replies: list[bytes | Wire],
    dialect: str,
    profile: Profile,
) -> None:
    run = await run_react([*replies, RESOLVE], dialect=dialect, profile=profile, max_rounds=10)

    assert (run.error is None) == (run.value is not None)
