"""The strict endpoint is strict: each rule has a request that breaks it alone."""

from typing import Any

import pytest

from workflow_reactor import (
    LlmProvider,
    ProviderRefused,
    ToolDefinition,
    create_llm_fn,
    make_call,
    system,
    tool_result,
    user,
)
from workflow_reactor import assistant as assistant_message
from workflow_reactor.testing import history_faults, loopback_server, say

ADD = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
HELLO: dict[str, Any] = {"role": "user", "content": "Hi"}


def called(*ids: str, name: str = "add", arguments: Any = "{}", **message: Any) -> dict[str, Any]:
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for id in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **message}


def result(id: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": "done"}


def test_a_good_history_has_no_faults() -> None:
    calls = [make_call("add", "{}", round=0, index=index) for index in range(2)]
    messages = [
        system("s"),
        user("u"),
        assistant_message("", calls),
        *[tool_result(call, "") for call in calls],
        assistant_message("done"),
        user("more"),
    ]

    assert history_faults({"messages": [each.data for each in messages], "tools": [ADD]}) == []


@pytest.mark.parametrize(
    ("messages", "fault"),
    [
        ([{"role": "wizard", "content": "x"}], "has the role 'wizard'"),
        ([HELLO, {"role": "system", "content": "x"}], "not the first"),
        ([HELLO, HELLO], "a user's right after a user's"),
        ([HELLO, called("a"), result("a"), HELLO], "a user's right after a tool's"),
        ([HELLO, *[{"role": "assistant", "content": "x"}] * 2], "after an assistant's"),
        ([{"role": "user", "content": " "}], "has the content ' '"),
        ([{"role": "user", "content": None}], "has the content None"),
        ([HELLO, {"role": "assistant", "content": None}], "has the content None"),
        ([HELLO, called("a", content=""), result("a")], "has the content ''"),
        ([HELLO, called(content="x")], "has the tool_calls []"),
        ([HELLO, called("a")], "the calls ['a'] have no results"),
        ([HELLO, called("a"), HELLO], "stands where ['a'] wait"),
        ([HELLO, called("a", "b"), result("b"), result("a")], "answers 'b', but ['a', 'b'] wait"),
        ([HELLO, result("a")], "answers 'a', but [] wait"),
        ([HELLO, called("a", "a"), result("a"), result("a")], "a call with the id 'a'"),
        ([HELLO, called(""), result("")], "a call with the id ''"),
        ([HELLO, called("a", name="my tool"), result("a")], "calls 'my tool'"),
        ([HELLO, called("a", arguments={}), result("a")], "has the arguments {}"),
        ([HELLO, called("a", arguments="[]"), result("a")], "has the arguments '[]'"),
        ([HELLO, called("a", arguments='{"a": 1, "a": 2}'), result("a")], "has the arguments"),
        ([HELLO, called("a", arguments=""), result("a")], "has the arguments ''"),
    ],
)
def test_each_rule_is_kept(messages: list[dict[str, Any]], fault: str) -> None:
    faults = history_faults({"messages": messages, "tools": [ADD]})

    assert [each for each in faults if fault in each]


UNION: dict[str, Any] = {"anyOf": [{"type": "object"}]}


@pytest.mark.parametrize(
    ("tools", "fault"),
    [
        ([], "no tools are offered"),
        ([ADD, ADD], "tools[1] has the name 'add'"),
        ([{"function": {"name": "a b", "parameters": {"type": "object"}}}], "the name 'a b'"),
        ([{"function": {"name": "a", "parameters": UNION}}], "not a plain object"),
    ],
)
def test_tools_have_rules_too(tools: list[dict[str, Any]], fault: str) -> None:
    messages = [HELLO, called("a"), result("a")]

    assert [
        each for each in history_faults({"messages": messages, "tools": tools}) if fault in each
    ]


async def test_a_strict_server_answers_400_with_the_faults() -> None:
    tool = ToolDefinition(name="add", description="", parameters={"type": "object"})
    async with loopback_server([say("never")], strict=True) as server:
        provider: LlmProvider = server.provider()
        with pytest.raises(ProviderRefused, match="a user's right after a user's"):
            await create_llm_fn(provider)([user("a"), user("b")], [tool])

    assert server.requests == []
    assert len(server.faults) == 1
