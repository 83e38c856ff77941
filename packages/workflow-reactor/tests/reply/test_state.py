"""What a provider hangs on a call or a message goes back as it came, and so do ids that can."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor import NotAReply, Profile, read_reply, tool_result
from workflow_reactor.testing import function, history_faults, say

SIGNATURE = "CpcCAcu98PBp+/=" * 40

# On the call, its function, and the message, as public endpoints send it.
STATE: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "gemini": ({"extra_content": {"google": {"thought_signature": SIGNATURE}}}, {}, {}),
    "gemini-message": ({}, {}, {"extra_content": {"google": {"thought_signature": SIGNATURE}}}),
    "litellm": (
        {"provider_specific_fields": {"thought_signature": SIGNATURE}},
        {"provider_specific_fields": {"thought_signature": SIGNATURE}},
        {"thinking_blocks": [{"type": "thinking", "thinking": "so", "signature": "s"}]},
    ),
    "vercel": ({"thoughtSignature": SIGNATURE}, {}, {"providerOptions": {"google": {"a": 1}}}),
    "on-function": ({}, {"thought_signature": SIGNATURE}, {}),
    "openrouter": (
        {},
        {},
        {
            "reasoning": "so",
            "reasoning_details": [
                {"type": "reasoning.encrypted", "data": "gAAAAA==", "id": "rs_1", "index": 0},
                {"type": "reasoning.text", "text": "so", "signature": None},
            ],
        },
    ),
    "deepseek": ({}, {}, {"reasoning_content": "First …\nthen …"}),
    "deepseek-empty": ({}, {}, {"reasoning_content": ""}),
    "vllm-both": ({}, {}, {"reasoning": "so", "reasoning_content": "so"}),
    "copilot": ({}, {}, {"reasoning_opaque": "b64==", "reasoning_text": "so"}),
    "numbers": ({"cache_id": 12345678901234567890}, {}, {"weight": 1.10}),
    "custom": ({"x": [None, {"y": "ü €"}]}, {"z": False}, {"prefix": False, "phase": "call"}),
}


def reply_with(
    state: tuple[dict[str, Any], dict[str, Any], dict[str, Any]], id: str = "k1"
) -> bytes:
    on_call, on_function, on_message = state
    made = function("ping", id=id)
    made["function"] |= on_function
    return say(None, {**made, **on_call}, **on_message)


@pytest.mark.parametrize("provider", STATE)
def test_state_goes_back_as_it_came(provider: str) -> None:
    on_call, on_function, on_message = STATE[provider]

    sent = read_reply(reply_with(STATE[provider]), Profile()).message.data

    (call,) = sent.pop("tool_calls")
    assert {key: call[key] for key in call.keys() - {"id", "type", "function"}} == on_call
    assert {
        key: call["function"][key] for key in call["function"].keys() - {"name", "arguments"}
    } == on_function
    assert {key: sent[key] for key in sent.keys() - {"role", "content"}} == on_message


@pytest.mark.parametrize("provider", ["openrouter", "deepseek", "vllm-both", "copilot", "litellm"])
def test_an_endpoint_that_takes_no_reasoning_gets_none_and_keeps_the_rest(provider: str) -> None:
    reply = read_reply(reply_with(STATE[provider]), Profile(echo_reasoning=False))

    assert reply.message.data.keys() == {"role", "content", "tool_calls"}
    assert "so" in reply.reasoning or provider in {"deepseek", "copilot", "litellm"}
    if provider == "litellm":
        assert SIGNATURE in reply.message.json.decode()


def test_what_only_describes_a_reply_does_not_go_back() -> None:
    body = say(
        "hi", refusal=None, annotations=[{"url": "u"}], audio={"id": "a"}, images=["b"], parsed={}
    )

    assert read_reply(body, Profile()).message.data == {"role": "assistant", "content": "hi"}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_"), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
states = st.dictionaries(st.from_regex(r"x_[a-z]{1,8}", fullmatch=True), json_values, max_size=3)


@given(states, states, states)
def test_any_unknown_field_goes_back_byte_for_byte(
    on_call: dict[str, Any], on_function: dict[str, Any], on_message: dict[str, Any]
) -> None:
    body = reply_with((on_call, on_function, on_message))
    first, again = (read_reply(body, Profile()).message for _ in range(2))

    assert first.json == again.json
    (call,) = first.data["tool_calls"]
    for fields, sent in (
        (on_call, call),
        (on_function, call["function"]),
        (on_message, first.data),
    ):
        for name, value in fields.items():
            if value is None:
                assert name not in sent
            else:
                assert msgspec.json.encode(value) in first.json
                assert sent[name] == value


@pytest.mark.parametrize(
    "id",
    [
        "call_abc123",
        "functions.add:0",
        "chatcmpl-tool-9f",
        "toolu_01A",
        "call_1__thought__" + SIGNATURE,
        "0",
        "9xQ2aaaB1",
        "a" * 500,
        "über-1",
    ],
)
def test_an_id_goes_back_as_it_came(id: str) -> None:
    (call,) = read_reply(reply_with(({}, {}, {}), id), Profile(), round=3).tool_calls

    assert call.id == call.provider_id == id
    assert tool_result(call, "done").data["tool_call_id"] == id
    (call,) = read_reply(
        reply_with(({}, {}, {}), id), Profile(echo_call_ids=False), round=3
    ).tool_calls
    assert (call.id, call.provider_id) == ("c00003000", id)


@pytest.mark.parametrize("id", ["", " ", None, 7, "used", {}])
def test_an_id_that_is_missing_or_doubled_is_one_of_ours(id: Any) -> None:
    (call,) = read_reply(
        reply_with(({}, {}, {}), id), Profile(), round=3, taken_ids={"used", "c00003000"}
    ).tool_calls

    assert call.id == "d00003000"


@given(st.lists(st.sampled_from(["a", "b", "", "c00000000", "c00001000", "c00001001"]), max_size=6))
def test_ids_are_unique_whatever_a_provider_sends(ids: list[str]) -> None:
    taken: set[str] = set()
    messages: list[dict[str, Any]] = []
    for round in range(3):
        body = say("x", *[function("ping", id=id) for id in ids])
        reply = read_reply(body, Profile(), round=round, taken_ids=taken)
        taken |= set(reply.message.call_ids)
        messages += [json.loads(reply.message.json)]
        messages += [tool_result(call, "done").data for call in reply.tool_calls]
        messages += [] if reply.tool_calls else [{"role": "user", "content": "go on"}]
    tools = [{"type": "function", "function": {"name": "ping", "parameters": {"type": "object"}}}]

    assert history_faults({"messages": messages, "tools": tools}) == []


@pytest.mark.parametrize("broken", [b"\xff", b"\xed\xa0\x80", b"\x01", b"\n", b"\\ud800", b"\\q"])
def test_a_field_that_goes_back_is_valid_json_whatever_came(broken: bytes) -> None:
    body = b'{"choices":[{"message":{"content":"x","signature":{"a":["' + broken + b'"]}}}]}'

    with contextlib.suppress(NotAReply):
        reply = read_reply(body, Profile())

        assert json.loads(reply.message.json.decode())["content"] == "x"


def test_a_field_may_have_any_name() -> None:
    body = b'{"choices":[{"message":{"content":"x","text":"y","self":1,"tools":2}}]}'

    assert read_reply(body, Profile()).message.data["text"] == "y"
