"""Contents: nothing of them unless they are asked for, and in the conventions' form then."""

from __future__ import annotations

import json

import pytest

from workflow_agent_react import Allow, Ask, ProposedCall, Toolset, tool
from workflow_cas import MemoryStore
from workflow_execute import Engine
from workflow_protocol import Effect, ThreadContext
from workflow_reactor.testing import (
    Reply,
    ScriptedLlm,
    Wire,
    call,
    function,
    http,
    loopback_server,
    say,
)

from .traced import Traced, all_text, doing, one_role, react

SECRET = "correct-horse-battery-staple"


@tool(effect=Effect.READ)
async def echo(text: str) -> str:
    """Say the same."""
    return text


@tool(effect=Effect.READ)
async def refuse(text: str) -> str:
    """Raise it."""
    raise ValueError(text)


def ask(proposed: ProposedCall, ctx: ThreadContext) -> Allow | Ask:
    return Ask(f"Really {SECRET}?") if proposed.name == "echo" else Allow()


TOOLS = Toolset.combine(echo, refuse)
SECRET_CALLS = say(
    SECRET,
    function("echo", text=SECRET, id="a"),
    function("refuse", text=SECRET, id="b"),
    function(SECRET, text=SECRET, id="c"),
    function(f"no such tool: {SECRET}", id="d"),
)
RESOLVED = say(None, function("resolve", value=1), function(SECRET, id="e"))


async def test_a_secret_of_the_prompt_a_call_a_result_or_an_error_is_nowhere() -> None:
    traced = Traced()
    engine = Engine(MemoryStore(), observer=traced.observer)

    async def fail(ctx: ThreadContext) -> int:
        raise RuntimeError(SECRET)

    done = await engine.start(react(TOOLS, llm=ScriptedLlm([SECRET_CALLS, RESOLVED])), SECRET)
    waits = await engine.start(react(TOOLS, llm=ScriptedLlm([SECRET_CALLS]), guards=[ask]), SECRET)
    failed = await engine.start(one_role(doing(fail)), SECRET)
    said = f'{{"error": {{"message": "{SECRET}"}}}}'.encode()
    busy = Wire(data=http(503, said))
    async with loopback_server([busy, Wire(data=http(400, said))]) as server:
        refused = await engine.start(react(provider=server.provider(max_attempts=2)), SECRET)

    assert [each.state for each in (done, waits, failed, refused)] == [
        "completed", "suspended", "failed", "failed",
    ]  # fmt: skip
    assert len(traced.named("execute_tool echo")) == 1
    assert len(traced.spans) > 10
    assert SECRET not in all_text(traced.spans)
    metrics = traced.reader.get_metrics_data()
    assert metrics is not None
    assert SECRET not in metrics.to_json()


async def test_contents_are_there_where_they_are_asked_for() -> None:
    traced = Traced(contents=True)
    replies: list[Reply] = [
        say("I say it", function("echo", text="what"), function("refuse", text="bad", id="b")),
        call("resolve", value=1),
    ]

    await Engine(MemoryStore(), observer=traced.observer).start(
        react(TOOLS, llm=ScriptedLlm(replies)), "the task"
    )

    run = dict(traced.one("invoke_workflow workflow").attributes or {})
    assert json.loads(str(run["gen_ai.input.messages"])) == [
        {"role": "user", "parts": [{"type": "text", "content": "the task"}]}
    ]
    role = dict(traced.one("invoke_agent reader").attributes or {})
    assert json.loads(str(role["gen_ai.output.messages"])) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "1"}],
            "finish_reason": "stop",
        }
    ]
    chat = dict(traced.named("chat scripted")[0].attributes or {})
    (message,) = json.loads(str(chat["gen_ai.output.messages"]))
    assert message["parts"] == [{"type": "text", "content": "I say it"}]
    assert message["finish_reason"] == "tool_calls"
    echoed = dict(traced.one("execute_tool echo").attributes or {})
    assert echoed["gen_ai.tool.call.arguments"] == '{"text": "what"}'
    assert echoed["gen_ai.tool.call.result"] == "what"
    assert "bad" in str(traced.one("execute_tool refuse").status.description)


async def test_a_question_is_told_where_contents_are() -> None:
    traced = Traced(contents=True)
    llm = ScriptedLlm([call("echo", text="x")])

    await Engine(MemoryStore(), observer=traced.observer).start(
        react(TOOLS, llm=llm, guards=[ask]), "p"
    )

    (told,) = traced.one("invoke_workflow workflow").events
    assert told.name == "uwf.suspended"
    assert SECRET in str((told.attributes or {})["uwf.reason"])


@pytest.mark.parametrize("contents", [False, True])
async def test_text_that_is_no_unicode_costs_no_span(*, contents: bool) -> None:
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    traced = Traced(contents=contents)
    odd = say("ODD", function("echo", '{"text": "\\ud800"}', id="ODD"), function("ODD", "{}"))
    replies = [odd.replace(b'"ODD"', rb'"\ud800"'), call("resolve", value=1)]

    async with loopback_server(replies) as server:
        await Engine(MemoryStore(), observer=traced.observer).start(
            react(TOOLS, provider=server.provider()), "p"
        )
    assert len(traced.spans) > 4

    assert encode_spans(traced.spans).SerializeToString()
