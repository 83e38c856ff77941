"""Reasoning that a server refuses: one try without it, and a line that names the setting."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from workflow_reactor import (
    Conversation,
    ProviderError,
    Secret,
    ToolDefinition,
    create_llm_fn,
    open_llm,
    tool_result,
    user,
)
from workflow_reactor.testing import Request, Wire, function, http, loopback_server, say

PING = ToolDefinition(name="ping", description="Ping.", parameters={"type": "object"})
REASONED = say("Let me look.", function("ping"), reasoning_content="so", extra_content={"s": 1})


def refusing(status: int, words: str) -> Any:
    def answer(request: Request) -> Any:
        if "reasoning_content" in json.dumps(request["messages"]):
            return Wire(data=http(status, json.dumps({"error": {"message": words}}).encode()))
        return say(f"took {len(request['messages'])}")

    return answer


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "Extra inputs are not permitted: messages.2.assistant.reasoning_content"),
        (422, "property 'reasoning_content' is unsupported"),
        (400, "bad request"),
        (500, "Cannot pass both content and thinking in an assistant message with tool calls!"),
    ],
)
async def test_refused_reasoning_is_left_out_once_and_from_then_on(
    status: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = refusing(status, words)
    async with loopback_server([REASONED, *[answer] * 3], strict=True) as server:
        provider = server.provider(api_key=Secret("sk-0123456789"))
        async with open_llm(create_llm_fn(provider)) as llm:
            talk = Conversation([user("hi")])
            first = await llm(talk, [PING], round=0)
            talk.extend([first.message, tool_result(first.tool_calls[0], "pong")])
            with caplog.at_level(logging.WARNING, "workflow_reactor"):
                second = await llm(talk, [PING], round=1)
            talk.extend([second.message, user("more")])
            third = await llm(talk, [PING], round=2)

    assert (second.text, third.text) == ("took 3", "took 5")
    assert len(server.bodies) == 4
    refused, taken = server.requests[1]["messages"][1], server.requests[2]["messages"][1]
    assert refused.pop("reasoning_content") == "so"
    assert refused == taken
    assert taken["extra_content"] == {"s": 1}
    (line,) = caplog.messages
    assert "echo_reasoning: false" in line


async def test_what_is_refused_for_another_reason_keeps_its_first_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bad = [Wire(data=http(400, json.dumps({"error": {"message": text}}).encode())) for text in "ab"]
    async with (
        loopback_server([REASONED, *bad]) as server,
        open_llm(create_llm_fn(server.provider())) as llm,
    ):
        first = await llm([user("hi")], [PING])
        talk = [user("hi"), first.message, tool_result(first.tool_calls[0], "pong")]
        with pytest.raises(ProviderError, match="answered 400: a"):
            await llm(talk, [PING], round=1)

    assert (len(server.bodies), caplog.messages) == (3, [])


async def test_a_conversation_without_reasoning_is_not_sent_twice() -> None:
    async with loopback_server([Wire(data=http(400))]) as server:
        with pytest.raises(ProviderError):
            await create_llm_fn(server.provider())([user("hi")], [PING])

    assert len(server.bodies) == 1
