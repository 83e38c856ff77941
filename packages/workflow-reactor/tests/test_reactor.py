"""The reactor and extract, on a scripted model."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from workflow_cas import MemoryStore, content
from workflow_protocol import (
    DirectJournal,
    Effect,
    StartStep,
    ThreadContext,
    ThreadId,
)
from workflow_reactor import (
    MaxRoundsExceeded,
    ProviderUnavailable,
    ThreadReactorConfig,
    ToolCall,
    ToolDefinition,
    create_extract,
    create_llm_fn,
    create_thread_reactor,
)
from workflow_reactor.testing import Reply, ScriptedLlm, call, function, loopback_server, say


@dataclass
class Plan:
    phases: list[str]


PLAN = {"phases": ["a", "b"]}


@dataclass
class Keys(DirectJournal):
    keys: list[str] = field(default_factory=list[str])

    async def run(self, key: str, perform: Any, **options: Any) -> Any:
        self.keys.append(key)
        return await perform()


def thread(journal: DirectJournal | None = None) -> ThreadContext:
    return ThreadContext(
        thread_id=ThreadId("T"),
        start=StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=0),
        journal=journal or DirectJournal(),
    )


LOOK = ToolDefinition(
    name="look", description="Look.", parameters={"type": "object"}, effect=Effect.READ
)


async def look(call: ToolCall, ctx: ThreadContext) -> str:
    if "fail" in call.arguments:
        raise RuntimeError("blind")
    return f"seen by {ctx.thread_id}"


async def react(replies: Sequence[Reply], **config: Any) -> tuple[Any, ScriptedLlm]:
    llm = ScriptedLlm(replies)
    reactor = create_thread_reactor(
        ThreadReactorConfig(
            llm=llm, system_prompt="Plan.", tools=[LOOK], tool_handler=look, **config
        )
    )
    return await reactor(thread(), "make a plan", Plan), llm


async def test_the_model_works_with_tools_until_it_resolves() -> None:
    value, llm = await react([call("look"), call("resolve", **PLAN)])

    assert value == Plan(["a", "b"])
    first, second = llm.requests
    assert [m["content"] for m in first["messages"]] == ["Plan.", "make a plan"]
    assert [t["function"]["name"] for t in first["tools"]] == ["look", "resolve"]
    assert second["messages"][-1]["content"] == "seen by T"


@pytest.mark.parametrize(
    "text", ['{"phases": ["a", "b"]}', 'Here:\n```json\n{"phases": ["a", "b"]}\n```']
)
async def test_a_plain_reply_of_json_that_fits_is_the_value(text: str) -> None:
    value, llm = await react([say(text)])

    assert value == Plan(["a", "b"])
    assert len(llm.requests) == 1


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (say("a plan"), "call `resolve`"),
        (say(None), "call `resolve`"),
        (say('{"phases": 3}'), "$.phases: expected an array"),
        (call("resolve", phases=3), "$.phases: expected an array"),
        (call("see"), "there is no tool 'see'"),
        (call("look", fail=1), "Error: blind"),
        (say(None, function("look", "{'")), "not one valid JSON object"),
    ],
)
async def test_every_fault_is_recoverable(reply: bytes, words: str) -> None:
    value, llm = await react([reply, call("resolve", **PLAN)])

    assert value == Plan(["a", "b"])
    assert words in llm.requests[1]["messages"][-1]["content"]


async def test_rounds_that_run_out_are_an_error_with_the_conversation() -> None:
    with pytest.raises(MaxRoundsExceeded, match="3 rounds") as error:
        await react([say(str(n)) for n in range(3)], max_rounds=3)

    assert len(error.value.messages) == 8


async def test_each_round_is_in_the_journal_under_the_scope_of_the_call() -> None:
    journal = Keys()
    llm = ScriptedLlm([call("look"), call("resolve", **PLAN), say('{"phases": []}')])
    config = ThreadReactorConfig(llm=llm, system_prompt="", tools=[LOOK], tool_handler=look)
    reactor = create_thread_reactor(config)

    await reactor(thread(journal).scoped("plan"), "x", Plan)
    await reactor(thread(journal).scoped("more"), "y", Plan)

    assert journal.keys == ["plan/llm/0", "plan/tool/0/0", "plan/llm/1", "more/llm/0"]


async def test_a_provider_that_fails_is_an_error_of_its_own() -> None:
    async with loopback_server([]) as server:
        extract = create_extract(create_llm_fn(server.provider()))
        with pytest.raises(ProviderUnavailable):
            await extract(thread(), "words", Plan)


async def test_extract_reads_the_whole_text_and_the_objects_it_names() -> None:
    store = MemoryStore()
    phase = content("write the tests first")
    await store.commit([phase])
    llm = ScriptedLlm([call("cas_get", hash=phase.hash[:12]), call("resolve", **PLAN)])
    words = "the plan is long " * 5_000 + phase.hash

    assert await create_extract(llm, store)(thread(), words, Plan) == Plan(["a", "b"])
    assert llm.requests[0]["messages"][1]["content"] == words
    assert llm.requests[1]["messages"][-1]["content"] == "write the tests first"


async def test_extract_takes_the_hash_of_a_stored_text() -> None:
    store = MemoryStore()
    words = content("phases a and b")
    await store.commit([words])
    llm = ScriptedLlm([call("cas_get", hash="0000"), call("cas_get"), call("resolve", **PLAN)])

    assert await create_extract(llm, store)(thread(), words.hash, Plan) == Plan(["a", "b"])
    assert llm.requests[0]["messages"][1]["content"] == "phases a and b"
    assert llm.requests[1]["messages"][-1]["content"].startswith("Error: ")
    assert "hash" in llm.requests[2]["messages"][-1]["content"]


async def test_extract_without_a_store_or_an_engine_says_that_there_is_none_to_read() -> None:
    llm = ScriptedLlm([call("cas_get", hash="0" * 64), call("resolve", **PLAN)])

    await create_extract(llm)(thread(), "0" * 64, Plan)
    assert llm.requests[0]["messages"][1]["content"] == "0" * 64
    assert "no engine runs this thread" in llm.requests[1]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("finish", "words"),
    [
        ("length", "was cut off at the output limit"),
        ("content_filter", "was stopped by a content filter"),
        ("error", "broke off with an error"),
    ],
)
async def test_a_value_in_a_reply_that_broke_off_is_asked_for_again(
    finish: str, words: str
) -> None:
    other = say('{"phases": ["half"]}', finish=finish)

    value, llm = await react([other, call("resolve", **PLAN)])

    assert value == Plan(["a", "b"])
    assert words in llm.requests[1]["messages"][-1]["content"]
    with pytest.raises(MaxRoundsExceeded, match=f"in 1 rounds; its last reply {words}"):
        await react([other], max_rounds=1)
