"""The loop through `create_react_adapter`, on a scripted model whose requests must be valid."""

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from workflow_agent_react import (
    DialectName,
    ReactAdapterConfig,
    ReactConfigError,
    create_react_adapter,
    create_react_agent,
)
from workflow_protocol import (
    DirectJournal,
    Effect,
    Event,
    OutcomeUnknown,
    Question,
    StartStep,
    Suspended,
    ThreadContext,
    ThreadId,
    ToolFinished,
)
from workflow_reactor import (
    LlmProvider,
    MaxRoundsExceeded,
    ModelSettings,
    NoProgress,
    Profile,
    ProviderUnavailable,
    ToolCall,
    ToolDefinition,
    ToolHandler,
)
from workflow_reactor.testing import (
    Reply,
    Request,
    ScriptedLlm,
    call,
    function,
    loopback_server,
    say,
    turn,
)


@dataclass
class Result:
    answer: int


def definition(name: str, effect: Effect = Effect.READ, **more: Any) -> ToolDefinition:
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}}}
    return ToolDefinition(
        name=name, description=f"{name} it", parameters=parameters, effect=effect, **more
    )


@dataclass
class Tools:
    """Counts what runs. `note` appends its text, `boom` raises, `slow` never ends."""

    ran: list[str] = field(default_factory=list[str])
    running: int = 0
    most_at_once: int = 0
    all_reads_started: anyio.Event = field(default_factory=anyio.Event)
    wait_for: int = 0

    definitions = (
        definition("add"),
        definition("read"),
        definition("note", Effect.UNSAFE),
        definition("boom", Effect.UNSAFE),
        definition("slow", timeout_s=0.05),
        definition("long"),
        definition("ask"),
        definition("poll", pollable=True),
        definition("expire"),
        definition("quit"),
    )

    async def __call__(self, call: ToolCall, ctx: ThreadContext) -> str:
        arguments = json.loads(call.arguments)
        self.ran.append(f"{call.name}({call.arguments})")
        self.running += 1
        self.most_at_once = max(self.most_at_once, self.running)
        try:
            match call.name:
                case "boom":
                    raise RuntimeError("bang")
                case "expire":
                    raise TimeoutError("the tool's own")
                case "quit":
                    sys.exit(2)
                case "slow":
                    await anyio.sleep_forever()
                case "long":
                    return "x" * 50_000
                case "ask":
                    raise Suspended("may I?")
                case "read":
                    if self.running >= self.wait_for:
                        self.all_reads_started.set()
                    await self.all_reads_started.wait()
                case _:
                    pass
        finally:
            self.running -= 1
        return str(arguments.get("a", "done"))


@dataclass
class Listening(DirectJournal):
    events: list[Event] = field(default_factory=list[Event])
    keys: list[str] = field(default_factory=list[str])
    unknown: str = ""

    async def run(self, key: str, perform: Any, **options: Any) -> Any:
        self.keys.append(key)
        if key == self.unknown:
            raise OutcomeUnknown(key)
        return await perform()

    async def note(self, event: Event) -> None:
        self.events.append(event)


@dataclass
class Ran:
    value: object
    requests: list[Request]
    tools: Tools
    journal: Listening

    def told(self) -> list[str]:
        """What the model was told last: the messages after its last reply."""
        messages = self.requests[-1]["messages"]
        last = max(i for i, m in enumerate(messages) if m["role"] == "assistant")
        return [message["content"] for message in messages[last + 1 :]]


async def run(
    replies: Sequence[Reply],
    *,
    schema: Any = Result,
    dialect: DialectName = "native",
    tools: ToolHandler | None = None,
    journal: Listening | None = None,
    profile: Profile | None = None,
    **config: Any,
) -> Ran:
    llm, journal = ScriptedLlm(replies, profile), journal or Listening()
    counted = tools if isinstance(tools, Tools) else Tools()
    adapter = create_react_adapter(
        ReactAdapterConfig(
            llm=llm,
            tools=Tools.definitions,
            tool_handler=tools or counted,
            dialect=dialect,
            **config,
        )
    )
    ctx = ThreadContext(
        thread_id=ThreadId("T"),
        start=StartStep(prompt="Count.", workspace=Path("/w"), timestamp_ms=0),
        journal=journal,
    )
    try:
        with anyio.fail_after(5):
            value = await adapter("You count.", schema)(ctx)
    finally:
        for request in llm.requests:
            assert_valid_history(request)
    return Ran(value, llm.requests, counted, journal)


def assert_valid_history(request: Request) -> None:
    """What the strictest endpoint asks for: ids unique, each call answered once, in its place."""
    seen: set[str] = set()
    waiting: list[str] = []
    for message in request["messages"]:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            continue
        assert waiting == []
        for each in message.get("tool_calls", []):
            assert each["id"]
            assert each["id"] not in seen
            assert isinstance(json.loads(each["function"]["arguments"]), dict)
            seen.add(each["id"])
            waiting.append(each["id"])
        assert message["content"] is not None or waiting
    assert waiting == []


RESOLVE = call("resolve", answer=42)


async def test_a_role_works_with_tools_until_it_resolves_and_asks_no_more_than_its_rounds() -> None:
    ran = await run([call("add", a=40), RESOLVE])

    assert ran.value == Result(42)
    assert ran.tools.ran == ['add({"a": 40})']
    assert len(ran.requests) == 2
    assert ran.journal.keys == ["llm/0", "tool/0/0", "llm/1"]
    first = ran.requests[0]
    assert first["messages"][0]["content"].startswith("You count.")
    assert "Count." in first["messages"][1]["content"]
    assert [tool["function"]["name"] for tool in first["tools"]][-1] == "resolve"
    assert ran.told() == ["40"]


async def test_the_same_over_http() -> None:
    tools = Tools()
    async with loopback_server([call("add", a=1), RESOLVE]) as server:
        config = ReactAdapterConfig(
            provider=server.provider(), tools=Tools.definitions, tool_handler=tools
        )
        ctx = ThreadContext(
            thread_id=ThreadId("T"),
            start=StartStep(prompt="Count.", workspace=Path("/w"), timestamp_ms=0),
        )
        value = await create_react_adapter(config)("You count.", Result)(ctx)

    assert value == Result(42)
    first, second = (body.partition(b'],"tool_choice"')[0] for body in server.bodies)
    assert second.startswith(first)


async def test_plain_text_is_kept_and_answered_with_a_reminder() -> None:
    ran = await run([say("It is forty-two."), say(None), RESOLVE])

    assert ran.value == Result(42)
    texts = [(m["role"], m["content"]) for m in ran.requests[2]["messages"][2:]]
    reminder = texts[1][1]
    assert "call `resolve`" in reminder
    assert texts == [
        ("assistant", "It is forty-two."),
        ("user", reminder),
        ("assistant", "(empty)"),
        ("user", reminder),
    ]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (call("addd", a=1), "there is no tool 'addd'; the tools are add, "),
        (say(None, function("add", '{"a": 1')), "cut off at the output limit"),
        (say(None, function("add", "[1]")), "must be a JSON object, not an array; the parameters"),
        (call("boom"), "Error: RuntimeError: bang"),
        (call("slow"), "Error: slow took longer than 0.05 s"),
        (call("quit"), "Error: SystemExit: 2"),
        (call("expire"), "Error: TimeoutError: the tool's own"),
        (call("resolve", answer="x"), "mend it and resolve again:\n$.answer: "),
        (say(None, function("resolve", "{oops")), "not one valid JSON object"),
    ],
)
async def test_every_fault_is_told_to_the_model_and_the_role_goes_on(
    reply: bytes, words: str
) -> None:
    ran = await run([reply, RESOLVE])

    assert ran.value == Result(42)
    (told,) = ran.told()
    assert words in told


async def test_calls_run_in_the_order_written_and_those_after_resolve_are_skipped() -> None:
    reply = say(
        None,
        function("note", a=1, id="x"),
        function("resolve", answer=42, id="y"),
        function("note", a=2, id="z"),
    )
    ran = await run([reply])

    assert ran.value == Result(42)
    assert ran.tools.ran == ['note({"a": 1})']
    skipped, _ = ran.journal.events[-2:]
    assert isinstance(skipped, ToolFinished)
    assert skipped.summary.startswith("skipped")


async def test_an_invalid_resolve_does_not_stop_its_siblings() -> None:
    reply = say(None, function("resolve", answer="bad"), function("note", a=1))
    ran = await run([reply, RESOLVE])

    assert ran.tools.ran == ['note({"a": 1})']
    assert len(ran.told()) == 2


async def test_a_resolve_after_a_failed_call_is_held_back() -> None:
    ran = await run([say(None, function("boom"), function("resolve", answer=1)), RESOLVE])

    assert ran.value == Result(42)
    assert "boom failed in the same reply" in ran.told()[1]


async def test_neighbouring_reads_run_together_and_others_one_by_one() -> None:
    tools = Tools(wait_for=3)
    reads = [function("read", a=n) for n in range(3)]
    ran = await run([say(None, *reads), RESOLVE], tools=tools)

    assert tools.most_at_once == 3
    assert ran.told() == ["0", "1", "2"]

    one_by_one = await run([say(None, *[function("note", a=n) for n in range(3)]), RESOLVE])
    assert one_by_one.tools.most_at_once == 1


async def test_a_great_many_reads_run_a_few_at_a_time() -> None:
    tools = Tools(wait_for=16)
    reads = [function("read", a=n, id=f"k{n}") for n in range(40)]
    ran = await run([say(None, *reads), RESOLVE], tools=tools)

    assert tools.most_at_once == 16
    assert ran.told() == [str(n) for n in range(40)]


async def test_a_question_to_a_person_is_no_result_and_suspends_the_role() -> None:
    with pytest.raises(Suspended, match="may I"):
        await run([call("ask")])
    with pytest.raises(Suspended, match="may I"):
        await run([say(None, function("add"), function("ask"))])


async def test_an_unknown_outcome_is_told_to_the_model() -> None:
    ran = await run([call("note"), RESOLVE], journal=Listening(unknown="tool/0/0"))

    assert "check what it did" in ran.told()[0]
    assert ran.tools.ran == []


async def test_a_long_result_is_cut_in_the_middle_and_says_so() -> None:
    ran = await run([call("long"), RESOLVE], max_result_chars=1000)

    (told,) = ran.told()
    assert len(told) < 1200
    assert "49000 of 50000 characters left out" in told


async def test_the_last_round_offers_only_resolve() -> None:
    ran = await run([call("add"), RESOLVE], max_rounds=2)

    forced = {"type": "function", "function": {"name": "resolve"}}
    assert [request["tool_choice"] for request in ran.requests] == ["auto", forced]


async def test_rounds_that_run_out_are_a_typed_error_with_the_conversation() -> None:
    replies = [call("add", a=n) for n in range(5)]
    with pytest.raises(MaxRoundsExceeded, match="5 rounds") as error:
        await run(replies, max_rounds=5)

    assert error.value.rounds == 5
    texts = [message.data["content"] for message in error.value.messages]
    assert [text for text in texts if text and "Only 3 replies are left" in text]


@pytest.mark.parametrize("series", [["A"], ["A", "B"], ["text"], ["bad"]])
async def test_going_in_circles_is_told_once_and_then_ends_the_role(series: list[str]) -> None:
    def make(kind: str, n: int) -> bytes:
        spelling = ['{"a":1, "b":2}', '{"b": 2,"a": 1}'][n % 2]
        replies = {
            "A": say(None, function("add", spelling)),
            "B": call("note", a=7),
            "text": say("hm"),
            "bad": say(None, function("add", "{'a'")),
        }
        return replies[kind]

    replies = [make(series[n % len(series)], n) for n in range(40)]
    with pytest.raises(NoProgress) as error:
        await run(replies, max_rounds=40)

    told = [m.data["content"] or "" for m in error.value.messages]
    assert sum("You have done this three times" in each for each in told) == 1
    assert error.value.rounds <= 9


async def test_a_model_that_repeats_itself_in_one_reply_is_told_before_it_is_ended() -> None:
    many = say(None, *[function("add", a=1, id=f"k{n}") for n in range(6)])
    ran = await run([many, RESOLVE])

    assert ran.value == Result(42)
    assert "You have done this three times" in ran.told()[-1]
    with pytest.raises(NoProgress) as error:
        await run([many, call("add", a=1)])
    assert error.value.rounds == 2


async def test_polling_and_repeating_after_a_change_are_no_circles() -> None:
    polls = await run([*[call("poll")] * 10, RESOLVE])
    assert len(polls.requests) == 11

    work = [reply for n in range(6) for reply in (call("note", a=n), call("add", a=1))]
    assert (await run([*work, RESOLVE])).value == Result(42)


async def test_a_value_that_is_no_object_is_wrapped_for_the_model_and_bare_for_the_caller() -> None:
    ran = await run([call("resolve", value=[1, 2])], schema=list[int])

    assert ran.value == [1, 2]


async def test_the_json_dialect_offers_constrained_turns_and_reads_them() -> None:
    ran = await run(
        [turn("add", a=40), say("I think 42"), turn("resolve", answer=42)],
        dialect="json",
        profile=Profile(union_at_root=True),
    )

    assert ran.value == Result(42)
    first = ran.requests[0]
    assert "tools" not in first
    branches = first["response_format"]["json_schema"]["schema"]["anyOf"]
    assert [branch["properties"]["tool"]["const"] for branch in branches][-1] == "resolve"
    assert "- add(a?: integer): add it" in first["messages"][0]["content"]
    texts = [m["content"] for m in ran.requests[2]["messages"][2:]]
    assert texts[1].startswith("Result of add:\n40\n\nThe task: Count.\nIf the results above ")
    assert "not one object" in texts[3]


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (say('{"tool": "add", "args": {"a', finish="length"), "cut off at the output limit"),
        (say('{"tool": 3, "args": {}}'), 'needs the keys "tool" and "args"'),
        (say("[]"), 'needs the keys "tool" and "args"'),
        (turn("addd"), "there is no tool 'addd'"),
        (say('{"tool": "add", "args": [1]}'), "must be a JSON object"),
    ],
)
async def test_the_json_dialect_tells_the_model_what_was_wrong(reply: bytes, words: str) -> None:
    ran = await run([reply, turn("resolve", answer=42)], dialect="json")

    assert ran.value == Result(42)
    assert words in ran.told()[0]
    assert ran.tools.ran == []


async def test_auto_takes_the_dialect_of_the_profile() -> None:
    ran = await run([turn("resolve", answer=1)], dialect="auto", profile=Profile(dialect="json"))
    assert ran.value == Result(1)

    ran = await run([call("resolve", answer=2)], dialect="auto")
    assert ran.value == Result(2)


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({}, "either `provider` or `llm`"),
        ({"llm": ScriptedLlm([]), "tools": Tools.definitions}, "no `tool_handler`"),
        ({"llm": ScriptedLlm([]), "max_rounds": 0}, "at least one"),
        (
            {"llm": ScriptedLlm([]), "tools": [definition("resolve")], "tool_handler": Tools()},
            "rename yours",
        ),
        (
            {
                "llm": ScriptedLlm([]),
                "provider": LlmProvider(base_url="http://h/v1", model="m"),
            },
            "either `provider` or `llm`",
        ),
    ],
)
def test_a_config_that_can_not_work_is_refused(config: dict[str, Any], reason: str) -> None:
    with pytest.raises(ReactConfigError, match=reason):
        ReactAdapterConfig(**config)


async def test_an_adapter_without_tools_resolves_all_the_same() -> None:
    adapter = create_react_adapter(ReactAdapterConfig(llm=ScriptedLlm([RESOLVE])))
    start = StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=0)

    value = await adapter("x", Result)(ThreadContext(thread_id=ThreadId("T"), start=start))
    assert value == Result(42)


async def test_a_dead_provider_ends_the_role_with_its_own_error() -> None:
    dead = LlmProvider(base_url="http://127.0.0.1:9/v1", model="m", max_attempts=1)
    adapter = create_react_adapter(ReactAdapterConfig(provider=dead))
    start = StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=0)

    with pytest.raises(ProviderUnavailable):
        await adapter("x", Result)(ThreadContext(thread_id=ThreadId("T"), start=start))


async def test_of_two_resolves_the_first_valid_one_counts() -> None:
    two = say(None, function("resolve", answer=1, id="a"), function("resolve", answer=2, id="b"))
    assert (await run([two])).value == Result(1)

    bad = say(None, function("resolve", answer="x", id="a"), function("resolve", answer=2, id="b"))
    assert (await run([bad])).value == Result(2)


async def test_a_question_in_a_task_of_the_tool_is_found() -> None:
    async def asks(call: ToolCall, ctx: ThreadContext) -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(ctx.journal.ask, "which", Question(text="Which?"))
        raise AssertionError("unreachable")

    with pytest.raises(Suspended, match="Which"):
        await run([call("add")], tools=asks)


async def test_every_call_of_a_reply_that_runs_together_may_ask() -> None:
    asked: list[str] = []

    async def asks(call: ToolCall, ctx: ThreadContext) -> str:
        asked.append(call.arguments)
        await anyio.lowlevel.checkpoint()
        raise Suspended(f"question {call.arguments}")

    reads = [function("read", a=n, id=f"k{n}") for n in range(3)]
    with pytest.raises(Suspended, match=r'"a": ?0'):
        await run([say(None, *reads)], tools=asks)
    assert len(asked) == 3


async def test_cancelling_a_role_is_no_result_of_its_tool() -> None:
    started = anyio.Event()

    async def hangs(call: ToolCall, ctx: ThreadContext) -> str:
        started.set()
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    journal = Listening()
    async with anyio.create_task_group() as group:
        group.start_soon(partial(run, [call("add")], tools=hangs, journal=journal))
        with anyio.fail_after(5):
            await started.wait()
        group.cancel_scope.cancel()
    (ended,) = [each for each in journal.events if isinstance(each, ToolFinished)]
    assert (ended.ok, ended.error, ended.summary) == (False, "cancelled", "")


async def test_a_warning_comes_once_when_three_replies_are_left() -> None:
    ran = await run([*[call("add", a=n) for n in range(7)], RESOLVE], max_rounds=8)

    warned = [
        number
        for number, request in enumerate(ran.requests)
        if "Only 3 replies are left" in str(request["messages"][-1]["content"])
    ]
    assert warned == [5]
    assert str(ran.requests[-1]["messages"]).count("replies are left") == 1


async def test_requests_grow_by_the_bytes_of_the_turn_only() -> None:
    ran = await run([call("add", a=1), say("hm"), call("long"), RESOLVE], max_result_chars=1000)

    for before, after in pairwise(ran.requests):
        assert after["tools"] == before["tools"]
        assert after["messages"][: len(before["messages"])] == before["messages"]


async def agent(
    replies: Sequence[Reply], dialect: DialectName = "native", **config: Any
) -> tuple[str, list[Request]]:
    llm = ScriptedLlm(replies)
    give = create_react_agent(
        ReactAdapterConfig(
            llm=llm, tools=Tools.definitions, tool_handler=Tools(), dialect=dialect, **config
        )
    )
    start = StartStep(prompt="Count.", workspace=Path("/w"), timestamp_ms=0)
    text = await give(ThreadContext(thread_id=ThreadId("T"), start=start), "You count.")
    for request in llm.requests:
        assert_valid_history(request)
    return text, llm.requests


async def test_an_agent_works_with_tools_until_it_replies_in_text() -> None:
    text, requests = await agent([call("add", a=40), say(""), say("It is 42.")])

    assert text == "It is 42."
    names = [each["function"]["name"] for each in requests[0]["tools"]]
    assert "resolve" not in names
    assert "Your reply is empty" in requests[2]["messages"][-1]["content"]


UNKNOWN = {
    "native": (call("adt"), say("42")),
    "json": (turn("adt"), turn("resolve", value="42")),
    "xml": (say("<action>adt()</action>"), say("<final_answer>42</final_answer>")),
}


@pytest.mark.parametrize("dialect", ["native", "json", "xml"])
async def test_an_unknown_tool_is_answered_with_the_names_that_the_model_was_given(
    dialect: Any,
) -> None:
    _, requests = await agent(UNKNOWN[dialect], dialect=dialect)

    words = str(requests[1]["messages"][-1]["content"]).partition("the tools are ")[2]
    names = re.split(r"\W+", words.partition("\n")[0])
    given = {*(tool.name for tool in Tools.definitions), "read_result"}
    assert names[0] == "add"
    assert set(names) - {""} == given | ({"resolve"} if dialect == "json" else set())


async def test_an_agent_without_tools_is_told_that_there_are_none() -> None:
    llm = ScriptedLlm(UNKNOWN["xml"])
    give = create_react_agent(ReactAdapterConfig(llm=llm, dialect="xml"))
    start = StartStep(prompt="Count.", workspace=Path("/w"), timestamp_ms=0)

    assert await give(ThreadContext(thread_id=ThreadId("T"), start=start), "You count.") == "42"
    told = llm.requests[1]["messages"][-1]["content"]
    assert "there is no tool 'adt'; there are no tools at all" in told


async def test_an_agent_without_a_result_fails_without_a_word_of_resolve() -> None:
    with pytest.raises(MaxRoundsExceeded) as caught:
        await agent([call("add"), call("add", a=1)], max_rounds=2)
    assert str(caught.value) == "the model gave no final result in 2 rounds"


async def test_an_agent_s_last_round_is_for_its_answer() -> None:
    _, requests = await agent([call("add"), say("done")], max_rounds=2)
    assert [request["tool_choice"] for request in requests] == ["auto", "none"]


async def test_an_agent_s_cut_answer_is_not_taken_for_a_whole_one() -> None:
    text, requests = await agent([say("It is forty-", finish="length"), say("42")])

    assert text == "42"
    assert "cut off at the output limit" in requests[1]["messages"][-1]["content"]


BROKEN = [
    (say("It is forty-", finish="error"), "broke off with an error of the provider"),
    (say("It is forty-", finish="content_filter"), "stopped by a content filter"),
    (say("It is forty-", finish="SAFETY"), "stopped by a content filter"),
    (say("It is forty-", finish="abort"), "broke off with an error of the provider"),
    (say("It is forty-", finish="max_tokens"), "cut off at the output limit"),
    (say(None, refusal="I can't help with that."), "or is a refusal"),
    (say("It is", refusal="I can't help with that."), "or is a refusal"),
]


@pytest.mark.parametrize(("broken", "words"), BROKEN)
@pytest.mark.parametrize("dialect", ["native", "json", "xml"])
async def test_a_text_that_broke_off_is_no_result_in_any_dialect(
    dialect: Any, broken: bytes, words: str
) -> None:
    whole = {
        "native": say("42"),
        "json": turn("resolve", value="42"),
        "xml": say("<final_answer>42</final_answer>"),
    }[dialect]
    half = {
        "native": b"It is forty-",
        "json": b'{\\"tool\\": \\"resolve\\", \\"args\\": {\\"value\\": \\"forty-\\"}}',
        "xml": b"<final_answer>It is forty-",
    }[dialect]
    first = broken.replace(b"It is forty-", half)

    text, requests = await agent([first, whole], dialect=dialect)

    assert text == "42"
    assert words in requests[1]["messages"][-1]["content"]


async def test_a_call_that_is_announced_and_missing_is_no_result() -> None:
    text, requests = await agent([say("Let me look.", finish="tool_calls"), say("42")])

    assert text == "42"
    assert "announces a tool call" in requests[1]["messages"][-1]["content"]


async def test_replies_that_all_broke_off_end_in_an_error_that_says_which() -> None:
    with pytest.raises(MaxRoundsExceeded, match="last reply was stopped by a content filter"):
        await agent([say(f"It {n}", finish="content_filter") for n in range(2)], max_rounds=2)


async def test_an_agent_in_the_json_dialect_gives_its_text_by_resolve() -> None:
    text, _ = await agent([turn("add", a=1), turn("resolve", value="It is 1.")], dialect="json")
    assert text == "It is 1."


async def test_the_json_dialect_knows_the_other_names_of_its_keys() -> None:
    other = say('{"name": "add", "arguments": {"a": 3}}')
    ran = await run([other, turn("resolve", answer=42)], dialect="json")
    assert ran.tools.ran == ['add({"a":3})']


async def test_a_whole_object_in_the_json_dialect_counts_though_the_limit_came_after() -> None:
    padded = say('{"tool": "add", "args": {"a": 3}}' + " \n" * 9, finish="length")
    ran = await run([padded, turn("resolve", answer=42)], dialect="json")
    assert ran.tools.ran == ['add({"a":3})']


def offered(request: Request) -> list[str]:
    """The tools that the schema of a turn in the json dialect lets through."""
    schema = request["response_format"]["json_schema"]["schema"]
    branches = schema.get("anyOf", [schema])
    return [branch["properties"]["tool"]["const"] for branch in branches]


async def test_the_json_dialect_bars_repeated_calls_until_there_is_something_new() -> None:
    work = [turn("add", a=1), turn("add", a=1), turn("read"), turn("resolve", answer=42)]
    ran = await run(work, dialect="json", profile=Profile(union_at_root=True))

    assert ["add" in offered(request) for request in ran.requests] == [True, True, False, True]
    assert "the same call gave the same result before" in ran.requests[2]["messages"][-1]["content"]

    circle = [turn("add", a=1), turn("read"), turn("add", a=1), turn("read"), turn("note")]
    ran = await run(
        [*circle, turn("resolve", answer=42)], dialect="json", profile=Profile(union_at_root=True)
    )
    barred = [{"add", "read"} - set(offered(request)) for request in ran.requests]
    assert barred == [set(), set(), set(), {"add"}, {"add", "read"}, set()]


async def test_the_json_dialect_lets_only_resolve_through_after_three_repeated_calls() -> None:
    circle = [turn("add"), turn("add"), turn("read"), turn("add"), turn("long"), turn("read")]
    ran = await run(
        [*circle, turn("resolve", answer="?"), turn("resolve", answer=42)],
        dialect="json",
        profile=Profile(union_at_root=True),
    )
    lengths = [len(offered(request)) for request in ran.requests]
    every = len(offered(ran.requests[0]))
    assert lengths == [every, every, every - 1, every, every - 1, every, 1, every]

    changed = [turn("add"), turn("add"), turn("add"), turn("note"), turn("add"), turn("add")]
    ran = await run(
        [*changed, turn("resolve", answer=42)], dialect="json", profile=Profile(union_at_root=True)
    )
    assert [len(offered(request)) for request in ran.requests][4:] == [every, every, every - 1]


async def test_the_json_dialect_bars_a_refused_result_that_is_given_again() -> None:
    wrong = turn("resolve", answer="no number")
    work = [turn("add"), turn("add"), wrong, wrong, turn("read"), turn("resolve", answer=42)]
    ran = await run(work, dialect="json", profile=Profile(union_at_root=True))

    assert ["add" in offered(each) for each in ran.requests] == [
        True,
        True,
        False,
        True,
        True,
        True,
    ]
    assert ["resolve" in offered(each) for each in ran.requests] == [True] * 4 + [False, True]


async def test_the_json_dialect_never_bars_what_may_be_polled() -> None:
    polls = [turn("poll"), turn("poll"), turn("resolve", answer=42)]
    ran = await run(polls, dialect="json", profile=Profile(union_at_root=True))
    assert "poll" in offered(ran.requests[-1])


@pytest.mark.parametrize("dialect", ["native", "json"])
async def test_the_settings_of_a_role_are_in_each_of_its_requests(dialect: DialectName) -> None:
    first = call("add", a=1) if dialect == "native" else say('{"tool": "nothing", "args": {}}')
    last = say('{"tool": "resolve", "args": {"answer": 1}}')
    replies = [first, call("resolve", answer=1) if dialect == "native" else last]
    ran = await run(replies, dialect=dialect, settings=ModelSettings(temperature=0.5))

    assert [each["temperature"] for each in ran.requests] == [0.5, 0.5]
    assert all("seed" not in each for each in ran.requests)
