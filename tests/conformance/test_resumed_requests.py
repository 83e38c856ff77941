"""A turn that is taken up again sends the bytes that it would have sent, or says why it can't."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from workflow_agent_react import ReactAdapterConfig, create_react_adapter
from workflow_cas import open_store
from workflow_execute import Engine, JournalMismatch, Workflow, create_workflow, read_thread
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Event,
    ModelFailed,
    RoleDefinition,
    RoleStarted,
    RoleStopped,
    RoundStarted,
    ThreadContext,
    ThreadEnded,
    ThreadStarted,
    WorkflowDefinition,
)
from workflow_reactor import ContentRefused, LlmProvider, Secret, ToolCall, ToolDefinition
from workflow_reactor.testing import Wire, call, function, http, loopback_server, say

RESOLVE = call("resolve", answer=42)
REFUSED = Wire(data=http(401))
ODD = say(None, function("ping", "", id=""), function("ping", "[1]", id=""), reasoning_content="so")


@dataclass
class Answer:
    answer: int


PING = ToolDefinition(
    name="ping", description="Ping.", parameters={"type": "object", "properties": {}}
)
ROLE = RoleDefinition(name="counter", description="Counts.", system_prompt="Count.", schema=Answer)


async def ping(call: ToolCall, ctx: ThreadContext) -> str:
    del call, ctx
    return "pong"


def workflow(provider: LlmProvider) -> Workflow:
    config = ReactAdapterConfig(provider=provider, tools=[PING], tool_handler=ping)
    return create_workflow(
        WorkflowDefinition(
            description="Counting.",
            table={START: ROLE, ROLE: END},
        ),
        AdapterBinding(create_react_adapter(config)),
    )


async def test_the_request_after_a_resume_is_the_one_that_failed(tmp_path: Path) -> None:
    replies = [ODD, call("ping"), REFUSED, RESOLVE]
    async with loopback_server(replies, strict=True) as server, open_store(tmp_path / "s") as store:
        first = await Engine(store).start(workflow(server.provider()), "Go.")
        moved = server.provider(api_key=Secret("another"), max_attempts=2)
        second = await Engine(store).resume(workflow(moved), first.thread_id)

    assert first.state == "failed"
    assert second.value == Answer(42)
    assert len(server.bodies) == 4
    assert server.bodies[3] == server.bodies[2]
    assert server.faults == []


@pytest.mark.parametrize(
    "change", [{"model": "another"}, {"extra_body": {"temperature": 1}}], ids=lambda each: str(each)
)
async def test_a_turn_is_not_taken_up_with_another_model(
    change: dict[str, Any], tmp_path: Path
) -> None:
    async with (
        loopback_server([ODD, REFUSED, RESOLVE]) as server,
        open_store(tmp_path / "s") as store,
    ):
        first = await Engine(store).start(workflow(server.provider()), "Go.")
        heard: list[Event] = []
        other = workflow(server.provider(**change))
        with pytest.raises(JournalMismatch):
            await Engine(store, observer=heard.append).resume(other, first.thread_id)
        assert (await read_thread(store, first.thread_id)).status.state == "failed"

    assert len(server.bodies) == 2
    assert [type(each) for each in heard] == [
        ThreadStarted, RoleStarted, RoundStarted, ModelFailed, RoleStopped, ThreadEnded,
    ]  # fmt: skip


TOO_LONG = Wire(data=http(400, b'{"error": {"message": "prompt is too long: 9 > 8"}}'))


async def test_what_was_too_long_is_not_sent_again_by_a_resume_that_changes_nothing(
    tmp_path: Path,
) -> None:
    replies = [call("ping"), TOO_LONG, RESOLVE]
    async with loopback_server(replies, strict=True) as server, open_store(tmp_path / "s") as store:
        first = await Engine(store).start(workflow(server.provider()), "Go.")
        again = workflow(server.provider(api_key=Secret("another"), max_attempts=3, timeout_s=9))
        second = await Engine(store).resume(again, first.thread_id)
        third = await Engine(store).resume(again, first.thread_id)
        requests = len(server.bodies)
        fresh = await Engine(store).resume(again, first.thread_id, fresh=True)

    assert requests == 2
    for result in (first, second, third):
        assert result.state == "failed"
        assert isinstance(result.error, ContentRefused)
        assert "prompt is too long: 9 > 8; the conversation is too long" in str(result.error)
        assert "max_result_chars" in str(result.error)
    for result in (second, third):
        assert "refused before, and nothing has changed" in str(result.error)
    assert fresh.value == Answer(42)


@pytest.mark.parametrize("change", ["model", "base_url", "extra_body"])
async def test_what_was_too_long_is_sent_to_another_model_or_place(
    change: str, tmp_path: Path
) -> None:
    async with (
        loopback_server([TOO_LONG, TOO_LONG]) as small,
        loopback_server([RESOLVE]) as large,
        open_store(tmp_path / "s") as store,
    ):
        other = {
            "model": lambda: large.provider(base_url=small.provider().base_url, model="larger"),
            "base_url": large.provider,
            "extra_body": lambda: small.provider(extra_body={"context": "1m"}),
        }[change]()
        first = await Engine(store).start(workflow(small.provider()), "Go.")
        second = await Engine(store).resume(workflow(other), first.thread_id)

    assert isinstance(first.error, ContentRefused)
    if change == "base_url":
        assert second.value == Answer(42)
    else:
        assert "refused before" not in str(second.error)
        assert len(small.bodies) == 2


async def test_state_of_the_provider_and_its_ids_are_the_same_bytes_after_a_resume(
    tmp_path: Path,
) -> None:
    gemini = function("ping", id="call_1") | {
        "extra_content": {"google": {"thought_signature": "c2ln"}}
    }
    first_turn = say(None, gemini, function("ping", id="functions.ping:1"))
    doubled = say(None, function("ping", id="call_1"), reasoning_details=[{"data": "enc"}])
    replies = [first_turn, doubled, REFUSED, RESOLVE]
    async with loopback_server(replies, strict=True) as server, open_store(tmp_path / "s") as store:
        first = await Engine(store).start(workflow(server.provider()), "Go.")
        second = await Engine(store).resume(workflow(server.provider()), first.thread_id)

    assert second.value == Answer(42)
    assert server.bodies[3] == server.bodies[2]
    assert server.faults == []
    turns = [each for each in server.requests[3]["messages"] if each["role"] == "assistant"]
    assert turns[0]["tool_calls"][0] == gemini
    ids = [call["id"] for turn in turns for call in turn["tool_calls"]]
    assert ids == ["call_1", "functions.ping:1", "c00001000"]
    assert turns[1]["reasoning_details"] == [{"data": "enc"}]
