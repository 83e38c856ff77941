"""Cases of more than one odd reply: circles, siblings of `resolve`, bare values, reasoning."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pytest

from workflow_protocol import ToolFinished
from workflow_reactor import MaxRoundsExceeded, NoProgress, Profile
from workflow_reactor.testing import Request, call, function, say, turn

Runner = Callable[..., Awaitable[Any]]
RESOLVE = call("resolve", answer=42)


def note(text: str, id: str = "k") -> Request:
    return function("note", text=text, id=id)


async def test_calls_run_in_order_and_those_after_resolve_are_skipped(run_react: Runner) -> None:
    siblings = say(None, note("a", "1"), function("resolve", answer=42, id="2"), note("b", "3"))
    run = await run_react([siblings])

    assert (run.value.answer, run.ran) == (42, ["note(text='a')"])
    skipped, _ = run.journal.events[-2:]
    assert isinstance(skipped, ToolFinished)
    assert skipped.summary.startswith("skipped")


async def test_siblings_of_an_invalid_resolve_still_run(run_react: Runner) -> None:
    run = await run_react([say(None, function("resolve", answer="bad"), note("a")), RESOLVE])

    assert (run.value.answer, run.ran) == (42, ["note(text='a')"])
    assert "$.answer" in run.told()


async def test_a_resolve_beside_a_failure_is_held_back(run_react: Runner) -> None:
    run = await run_react([say(None, function("boom"), function("resolve", answer=1)), RESOLVE])

    assert run.value.answer == 42
    assert "bang" in run.told()
    assert "boom failed in the same reply" in run.told()


async def test_an_unknown_tool_for_ever_ends_in_a_typed_error(run_react: Runner) -> None:
    run = await run_react([call("addd", a=1)] * 9, max_rounds=6)

    assert isinstance(run.error, NoProgress | MaxRoundsExceeded)
    assert len(run.error.messages) > 6


@pytest.mark.parametrize("series", ["A", "AB", "text", "reasoned"])
async def test_going_in_circles_ends_long_before_the_rounds(series: str, run_react: Runner) -> None:
    def reply(n: int) -> bytes:
        spelling = ['{"a":1, "b":2}', '{"b": 2,\n"a": 1}'][n % 2]
        match series:
            case "AB" if n % 2:
                return call("add", a=7, b=8)
            case "text":
                return say("Still thinking.")
            case "reasoned":
                return say(None, function("add", spelling), reasoning_content=f"thought {n}")
            case _:
                return say(None, function("add", spelling))

    run = await run_react([reply(n) for n in range(40)], max_rounds=40)

    assert isinstance(run.error, NoProgress)
    assert run.error.rounds <= 9


async def test_polling_is_no_circle(run_react: Runner) -> None:
    run = await run_react([*[call("poll")] * 12, RESOLVE], max_rounds=40)

    assert run.value.answer == 42


@dataclass
class Item:
    n: int


class A(msgspec.Struct, tag=True):
    a: int


class B(msgspec.Struct, tag=True):
    b: int


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize(
    ("schema", "value", "data"),
    [
        (str, "hi", "hi"),
        (int, 3, 3),
        (list[Item], [Item(1)], [{"n": 1}]),
        (Literal["go", "stop"], "go", "go"),
        (A | B, B(2), {"type": "B", "b": 2}),
        (None, None, None),
    ],
)
async def test_a_schema_that_is_no_object_is_wrapped_or_taken_bare(
    bare: bool, schema: Any, value: Any, data: Any, run_react: Runner
) -> None:
    arguments = json.dumps(data if bare else {"value": data})
    run = await run_react([say(None, function("resolve", arguments))], schema=schema)

    assert (run.error, run.value) == (None, value)
    parameters = run.requests[0]["tools"][-1]["function"]["parameters"]
    assert parameters["type"] == "object"


@pytest.mark.parametrize("echo", [True, False])
@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
async def test_reasoning_goes_back_unchanged_or_not_at_all(
    echo: bool, key: str, run_react: Runner
) -> None:
    thoughts = ["first I add", 'then "again"\n\té\u2028']
    extras: list[dict[str, Any]] = [{key: thought} for thought in thoughts]
    replies = [say(None, function("add", a=n, b=2), **extra) for n, extra in enumerate(extras)]
    run = await run_react([*replies, RESOLVE], profile=Profile(echo_reasoning=echo))

    assert run.value.answer == 42
    turns = [m for m in run.requests[-1]["messages"] if m["role"] == "assistant"]
    assert [turn.get(key) for turn in turns] == (thoughts if echo else [None, None])


async def test_reasoning_details_go_back_as_they_came(run_react: Runner) -> None:
    details = [{"type": "reasoning.encrypted", "data": "x=", "index": 0}]
    first = say(None, function("ping"), reasoning_details=details)
    run = await run_react([first, RESOLVE])

    assert run.requests[1]["messages"][2]["reasoning_details"] == details


async def test_notes_of_the_loop_are_never_messages_that_an_endpoint_refuses(
    run_react: Runner,
) -> None:
    replies = [call("ping"), call("ping"), call("ping"), say("hm"), call("add", a=1, b=1), RESOLVE]
    run = await run_react(replies, max_rounds=7)

    assert run.value.answer == 42


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (say("I think 42"), "no JSON value"),
        (say(None), "no JSON value"),
        (say('{"tool": "add", "args": {"a', finish="length"), "cut off at the output limit"),
        (say('{"tool": "add", "args": {"a": 1, "a": 2}}'), "stands twice"),
        (say('{"tool": "add", "args": "x"}'), "must be a JSON object, not a string"),
        (say('{"tool": "note", "args": {"text": "\\ud800"}}'), "done"),
        (say('```json\n{"tool": "add", "args": {"a": 40, "b": 2}}\n```'), "42"),
        (say(None, function("add", '{"a": 40, "b": 2}')), ""),
        (turn("addd"), "there is no tool 'addd'"),
        (say(None, refusal="no"), "no JSON value"),
    ],
)
async def test_odd_turns_of_the_json_dialect(reply: bytes, told: str, run_react: Runner) -> None:
    run = await run_react([reply, turn("resolve", answer=42)], dialect="json")

    assert (run.error, run.value.answer) == (None, 42)
    assert told in run.told()
