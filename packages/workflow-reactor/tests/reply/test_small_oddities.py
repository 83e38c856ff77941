"""Names and arguments with decoration, and stubs that are no calls."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor import Profile, ToolDefinition, read_reply
from workflow_reactor.reply._calls import own_name
from workflow_reactor.testing import function, say

TOOLS = [
    ToolDefinition(name=name, description="A tool.", parameters={"type": "object"})
    for name in ("add", "sub", "read_file", "resolve")
]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("add<|channel|>commentary", "add"),
        ("functions.add:0", "add"),
        ("default_api:add", "add"),
        ("default_api.read_file", "read_file"),
        ("functions/add", "add"),
        ("tools::add", "add"),
        ("add()", "add"),
        ('"add"', "add"),
        ("<add>", "add"),
        (" add ", "add"),
        ("assistant<|channel|>functions.resolve", "resolve"),
        ("add<|constrain|>json", "add"),
        ("add.sub", "add.sub"),
        ("functions.mul:0", "functions.mul:0"),
        ("my_add", "my_add"),
        ("add-1", "add-1"),
        ("ADD", "ADD"),
    ],
)
def test_a_decorated_name_means_the_one_tool_in_it(written: str, name: str) -> None:
    reply = read_reply(say(None, function(written, a=1)), Profile(), tools=TOOLS)

    assert reply.tool_calls[0].name == name.removeprefix("functions.")


@given(
    st.sampled_from(["add", "sub", "read_file"]),
    st.from_regex(r"([a-z_]{0,9}[.:/<>|()]{1,3})?", fullmatch=True),
    st.from_regex(r"([.:/<>|()]{1,3}[0-9x-z]{0,9})?", fullmatch=True),
)
def test_any_decoration_of_other_signs_is_taken_off(name: str, before: str, after: str) -> None:
    names = {"add", "sub", "read_file"}

    assert own_name(f"{before}{name}{after}", names) == name
    assert own_name(name, names) == name


@pytest.mark.parametrize(
    "after",
    [
        " I call the tool now.",
        "\n\nThis adds 40 and 2, as asked.",
        "</tool_call>",
        "<|im_end|>",
        "\n```",
        ' That is "add".',
        ";",
    ],
)
def test_an_object_with_words_after_it_is_the_object(after: str) -> None:
    body = say(None, function("add", '{"a": 40, "b": 2}' + after))
    (call,) = read_reply(body, Profile(), tools=TOOLS).tool_calls

    assert (call.fault, json.loads(call.arguments)) == ("", {"a": 40, "b": 2})


@pytest.mark.parametrize("after", ['{"a": 1}', " or [1]", "}", ' "b": {'])
def test_an_object_with_another_value_after_it_stays_a_fault(after: str) -> None:
    body = say(None, function("add", '{"a": 40, "b": 2}' + after))
    (call,) = read_reply(body, Profile(), tools=TOOLS).tool_calls

    assert "more after the first JSON value" in call.fault


@pytest.mark.parametrize(
    "stub",
    [{"name": "", "arguments": ""}, {"name": None, "arguments": None}, {"name": ""}, {}, None],
)
def test_an_empty_stub_beside_an_answer_is_no_call(stub: Any) -> None:
    reply = read_reply(say("42", function_call=stub), Profile(), tools=TOOLS)

    assert (reply.text, reply.tool_calls) == ("42", ())


def test_an_empty_refusal_in_a_part_of_text_is_none() -> None:
    parts = [{"type": "text", "text": "Yes.", "refusal": ""}]
    body = json.dumps({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]})

    reply = read_reply(body.encode(), Profile())

    assert (reply.text, reply.finish) == ("Yes.", "stop")
