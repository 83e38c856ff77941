from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from workflow_agent_llm import create_llm_adapter
from workflow_protocol import StartStep, ThreadContext, ThreadId
from workflow_reactor import MaxRoundsExceeded, ModelSettings, Profile
from workflow_reactor.testing import ScriptedLlm, loopback_server, say


class Answer(BaseModel):
    answer: int
    note: str


GOOD = '{"answer": 42, "note": "n"}'
CONTEXT = ThreadContext(
    thread_id=ThreadId("T"),
    start=StartStep(prompt="Count.", workspace=Path("/w"), timestamp_ms=0),
)


async def run(llm: ScriptedLlm, schema: Any = Answer) -> Any:
    return await create_llm_adapter(llm)("You count.", schema)(CONTEXT)


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        '```json\n{"answer": 42, "note": "uses ``` inside"}\n```',
        'Sure! Here it is:\n```\n{"answer": 42, "note": "n"}\n```\nAnything else?',
        '<think>{"answer": 1}</think>{"answer": 42, "note": "n"}',
        '```json\n{"answer": 42, "note": "n"}',
    ],
)
async def test_one_request_gives_the_value_however_it_is_wrapped(text: str) -> None:
    llm = ScriptedLlm([say(text)])

    assert (await run(llm)).answer == 42
    (request,) = llm.requests
    system, user = request["messages"]
    assert system["content"].startswith("You count.")
    assert '"answer"' in system["content"]
    assert "Count." in user["content"]
    assert request["response_format"]["type"] == "json_schema"
    assert "tools" not in request


@pytest.mark.parametrize(
    ("first", "words"),
    [
        (say("I don't know."), "no JSON value"),
        (say('{"answer": "x"}'), "$.answer: "),
        (say('{"answer": 1, "note": "a"} {"answer": 2, "note": "b"}'), "2 different JSON values"),
        (say('{"answer": 4', finish="length"), "cut off at the output limit"),
    ],
)
async def test_a_misfit_is_told_once_and_can_be_repaired(first: bytes, words: str) -> None:
    llm = ScriptedLlm([first, say(GOOD)])

    assert await run(llm) == Answer(answer=42, note="n")
    assert words in llm.requests[1]["messages"][-1]["content"]


class Query(BaseModel):
    limit: int | None = 20
    must: int | None


@pytest.mark.parametrize(("strict", "limit"), [(False, None), (True, 20)])
async def test_null_for_an_optional_key_is_absent_where_the_schema_went_out_strict(
    strict: bool, limit: int | None
) -> None:
    profile = Profile(strict_schemas=strict)
    for text in ('{"limit": null, "must": null}', '{"value": {"limit": null, "must": null}}'):
        schema = Query if "value" not in text else Query | None
        llm = ScriptedLlm([say(text)], profile)

        assert await run(llm, schema) == Query(limit=limit, must=None)


async def test_a_reply_whose_nested_values_are_strings_of_json_is_understood() -> None:
    llm = ScriptedLlm([say('{"value": "[{\\"answer\\": 1, \\"note\\": \\"[]\\"}]"}')])

    assert await run(llm, list[Answer]) == [Answer(answer=1, note="[]")]


async def test_a_second_misfit_is_a_typed_error_with_the_conversation() -> None:
    with pytest.raises(MaxRoundsExceeded, match="nor did its second try") as error:
        await run(ScriptedLlm([say("no"), say("still no")]))

    assert error.value.rounds == 2
    assert len(error.value.messages) == 6


async def test_endpoints_without_response_format_are_asked_in_words_alone() -> None:
    llm = ScriptedLlm([say("[1, 2]")], Profile(response_format="none"))

    assert await run(llm, list[int]) == [1, 2]
    assert "response_format" not in llm.requests[0]


async def test_a_provider_is_enough() -> None:
    async with loopback_server([say('{"value": "hi"}')]) as server:
        assert await create_llm_adapter(server.provider())("Greet.", str)(CONTEXT) == "hi"


async def test_the_settings_of_a_role_are_in_each_of_its_requests() -> None:
    llm = ScriptedLlm([say("no"), say(GOOD)])
    adapter = create_llm_adapter(llm, settings=ModelSettings(temperature=0, seed=7))
    await adapter("You count.", Answer)(CONTEXT)

    assert [(each["temperature"], each["seed"]) for each in llm.requests] == [(0, 7), (0, 7)]
