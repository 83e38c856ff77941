"""The xml dialect through `create_react_adapter`, and how it binds arguments."""

from pathlib import Path
from typing import Any, Literal

import msgspec
import pydantic
import pytest

from workflow_agent_react import (
    ReactAdapterConfig,
    Toolset,
    XmlDialect,
    create_react_adapter,
    create_react_agent,
    tool,
)
from workflow_protocol import Effect, StartStep, ThreadContext, ThreadId
from workflow_reactor import (
    AssistantMessage,
    NoProgress,
    Profile,
    ResultSchema,
    ToolDefinition,
    read_reply,
)
from workflow_reactor.testing import Reply, Request, ScriptedLlm, say


class Result(msgspec.Struct):
    answer: int


class Adding:
    """`add(a, b)`, and how often it ran."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, int]] = []

    def toolset(self) -> Toolset:
        @tool(effect=Effect.READ, max_result_chars=100)
        def add(a: int, b: int) -> str:
            """Add two numbers."""
            self.ran.append((a, b))
            return f"{a + b}"

        return Toolset.combine(add)


async def run(
    replies: list[Reply], schema: Any = Result, adding: Adding | None = None
) -> tuple[Any, list[Request]]:
    llm = ScriptedLlm(replies, Profile(dialect="xml"))
    toolset = (adding or Adding()).toolset()
    adapter = create_react_adapter(ReactAdapterConfig(llm=llm, toolset=toolset, max_rounds=8))
    start = StartStep(prompt="Add 40 and 2.", workspace=Path("/w"), timestamp_ms=0)
    value = await adapter("You add.", schema)(ThreadContext(thread_id=ThreadId("T"), start=start))
    return value, llm.requests


ANSWER = say('<thought>done</thought><final_answer>{"answer": 42}</final_answer>')


@pytest.mark.parametrize(
    "text",
    [
        '<thought>add them</thought><action>add(a="40", b="2")</acti',
        '<thought>add them</thought><action>add(a="40", b="2")',
        '<action>add(b="2", a="40")</action><observation>42</observation>'
        '<final_answer>{"answer": 7}</final_answer>',
        "<action>add(40, 2)</action>",
        '<action>add({"a": 40, "b": 2})</action>',
        "```\nadd(a=40, b=2)\n```",
        '{"name": "add", "arguments": {"a": 40, "b": 2}}',
    ],
)
async def test_one_call_is_found_in_whatever_form_it_comes(text: str) -> None:
    adding = Adding()
    llm = ScriptedLlm([say(text), ANSWER], Profile(dialect="xml", text_tool_calls=True))
    adapter = create_react_adapter(ReactAdapterConfig(llm=llm, toolset=adding.toolset()))
    start = StartStep(prompt="Add 40 and 2.", workspace=Path("/w"), timestamp_ms=0)

    value = await adapter("x", Result)(ThreadContext(thread_id=ThreadId("T"), start=start))
    assert value == Result(42)
    assert adding.ran == [(40, 2)]
    reply, observation = llm.requests[1]["messages"][-2:]
    assert "7" not in reply["content"]
    assert "tool_calls" not in reply
    assert observation["role"] == "user"
    assert observation["content"] == (
        "<observation>\n42\n</observation>\n\nThe task: Add 40 and 2.\n"
        "If the observations are enough for this, reply with <final_answer>…</final_answer> now. "
        "Otherwise go on with another <action>."
    )


async def test_what_was_invented_after_the_action_is_not_in_the_history() -> None:
    text = "<action>add(a=40, b=2)</action>\n<observation>0</observation>"
    _, requests = await run([say(text), ANSWER])

    assert requests[1]["messages"][2]["content"] == "<action>add(a=40, b=2)</action>"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<action>add(a=</action><observation>0</observation>", "<action>add(a=</action>"),
        ("<thought>so</thought><observation>42</observation><action>", "<thought>so</thought>"),
        ("<action>add(a=1 b=2)", "<action>add(a=1 b=2)"),
    ],
)
async def test_what_was_invented_after_an_action_that_can_not_be_read_is_not_either(
    text: str, kept: str
) -> None:
    _, requests = await run([say(text), ANSWER])

    assert requests[1]["messages"][2]["content"] == kept


async def test_requests_stop_where_the_turn_ends_and_offer_no_tools() -> None:
    _, requests = await run([ANSWER])

    assert requests[0]["stop"] == ["</action>", "</final_answer>", "<observation>"]
    assert "tools" not in requests[0]


async def test_the_prompt_is_made_of_the_tools_and_the_schema() -> None:
    _, requests = await run([ANSWER])

    text = requests[0]["messages"][0]["content"]
    assert text.startswith("You add.\n\n## How to work\n")
    assert "<action>add(a=1, b=1)</action>" in text
    assert '<final_answer>{"answer":1}</final_answer>' in text
    assert "The final answer is JSON of answer: integer\n" in text
    assert text.endswith("## Tools\n\n- add(a: integer, b: integer): Add two numbers.")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I think 42.", "no <action> and no <final_answer>"),
        ("", "no <action> and no <final_answer>"),
        ('<action>add(a="4', "no closing quote"),
        ("<action>add(a=1, 2)</action>", "the argument 'a' is given by name and by place"),
        ("<action>add(1, 2, 3)</action>", "add(a: integer, b: integer) takes 2 arguments, not 3"),
        ("<action>resolve(41, 42)</action>", "resolve(answer: integer) takes 1 arguments, not 2"),
        ("<action>resolve(41, answer=42)</action>", "'answer' is given by name and by place"),
        ("<action>add(a=1, c=2)</action>", "unknown argument 'c'; missing argument 'b'"),
        ('<action>add(a="x", b=2)</action>', "the argument 'a' must be integer, not string"),
        ("<action>sub(a=1, b=2)</action>", "there is no tool 'sub'; the tools are add\n"),
        ("<observation>42</observation>", "only I write observations"),
        ('<final_answer>{"answer": "many"}</final_answer>', "not valid; mend it"),
        ("<final_answer>forty-two</final_answer>", "not valid; mend it"),
    ],
)
async def test_every_fault_is_told_and_the_role_goes_on(text: str, words: str) -> None:
    adding = Adding()
    value, requests = await run([say(text), ANSWER], adding=adding)

    assert value == Result(42)
    assert adding.ran == []
    told = requests[1]["messages"][-1]
    assert told["role"] == "user"
    assert words in told["content"]


@pytest.mark.parametrize("text", ["<action>add(a=", "<action>add(a=1", "<final_answer>{"])
async def test_a_reply_that_the_output_limit_cut_is_not_used(text: str) -> None:
    _, requests = await run([say(text, finish="length"), ANSWER])
    assert "cut off at the output limit" in requests[1]["messages"][-1]["content"]


async def test_a_whole_action_before_the_cut_is_used() -> None:
    adding = Adding()
    text = "<action>add(a=40, b=2)</action><observation>and so on and"
    await run([say(text, finish="length"), ANSWER], adding=adding)
    assert adding.ran == [(40, 2)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("<final_answer>It is 42.</final_answer>", "It is 42."),
        ('<final_answer>{"value": "x"}</final_answer>', "x"),
        ('<final_answer>{"other": 1}</final_answer>', '{"other": 1}'),
        ("<final_answer>42</final_answer>", "42"),
        ('<action>resolve(value="x")</action>', "x"),
        ('<action>resolve("x")</action>', "x"),
    ],
)
async def test_a_role_whose_value_is_text_answers_in_text(text: str, value: str) -> None:
    assert (await run([say(text)], str))[0] == value


async def test_an_agent_answers_in_text() -> None:
    llm = ScriptedLlm([say("<action>add(1, 2)</action>"), say("<final_answer>It is 3.")])
    toolset = Adding().toolset()
    agent = create_react_agent(ReactAdapterConfig(llm=llm, toolset=toolset, dialect="xml"))
    start = StartStep(prompt="Add.", workspace=Path("/w"), timestamp_ms=0)

    assert await agent(ThreadContext(thread_id=ThreadId("T"), start=start), "x") == "It is 3."


async def test_a_model_that_never_complies_is_a_typed_error() -> None:
    with pytest.raises(NoProgress):
        await run([say("Hm.")] * 8)


def definition(**properties: Any) -> ToolDefinition:
    parameters = {"type": "object", "properties": properties, "additionalProperties": False}
    return ToolDefinition(name="f", description="", parameters=parameters)


@pytest.mark.parametrize(
    ("schema", "written", "value"),
    [
        ({"type": "integer"}, '"40"', 40),
        ({"type": "integer"}, "4.0", 4),
        ({"type": "number"}, "4", 4),
        ({"type": "string"}, "4", "4"),
        ({"type": "string"}, "007", "007"),
        ({"type": "boolean"}, '"True"', True),
        ({"type": ["integer", "null"]}, '"null"', None),
        ({"type": "array"}, '"[1, 2]"', [1, 2]),
        ({"type": ["array", "null"]}, "'[\"Ada\"]'", ["Ada"]),
        ({"type": "object"}, "'{\"a\": 1}'", {"a": 1}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, '"3"', 3),
        ({"enum": ["1", "2"]}, "2", "2"),
        ({"const": 5}, '"5"', 5),
        ({}, '"5"', "5"),
        (True, '"5"', "5"),
        ({"$ref": "#/$defs/X"}, '"5"', "5"),
    ],
)
def test_arguments_get_the_type_of_the_schema(schema: Any, written: str, value: object) -> None:
    parameters = {
        "type": "object",
        "properties": {"x": schema},
        "$defs": {"X": {"type": "string"}},
    }
    tools = [ToolDefinition(name="f", description="", parameters=parameters)]
    dialect = XmlDialect([*tools, ResultSchema(int).tool()])

    (call,) = dialect.read(reply(f"<action>f(x={written})</action>"), 0).calls
    assert (call.fault, msgspec.json.decode(call.arguments)) == ("", {"x": value})


def test_a_number_whose_digits_may_matter_is_not_made_a_string() -> None:
    dialect = XmlDialect([definition(version={"type": "string"}), ResultSchema(int).tool()])

    (call,) = dialect.read(reply("<action>f(version=1.10)</action>"), 0).calls
    assert call.fault == "the argument 'version' must be string, not number"


def test_an_object_that_a_tool_takes_is_not_taken_apart() -> None:
    dialect = XmlDialect([definition(x={"type": "object"}), ResultSchema(int).tool()])

    (call,) = dialect.read(reply('<action>f({"x": 1})</action>'), 0).calls
    assert msgspec.json.decode(call.arguments) == {"x": {"x": 1}}


def test_reasoning_to_be_sent_back_stays_with_a_shortened_turn() -> None:
    said = say("<action>f()</action> and more", reasoning_content="because")
    dialect = XmlDialect([definition(), ResultSchema(int).tool()])

    message = dialect.read(read_reply(said, Profile()), 0).message
    assert message.data == {
        "role": "assistant",
        "content": "<action>f()</action>",
        "reasoning_content": "because",
    }


def test_what_a_text_may_be_is_in_the_prompt() -> None:
    class Way(pydantic.BaseModel):
        value: Literal["go", "stop"] = pydantic.Field(description="which way to go")

    text = XmlDialect([ResultSchema(Way).tool()]).system_text("Do it.")
    assert "<final_answer>the answer</final_answer>" in text
    assert text.endswith(
        "The final answer is one of: go, stop\n\nThe final answer: which way to go"
    )
    assert "The final answer" not in XmlDialect([ResultSchema(str).tool()]).system_text("Do it.")


def test_a_schema_with_definitions_is_shown_whole() -> None:
    class Item(msgspec.Struct):
        name: str

    class Report(msgspec.Struct):
        items: list[Item]

    text = XmlDialect([ResultSchema(Report).tool()]).system_text("Do it.")
    assert '<final_answer>JSON of this schema: {"' in text
    assert "## Tools" not in text


def reply(text: str) -> AssistantMessage:
    return read_reply(say(text), Profile())
