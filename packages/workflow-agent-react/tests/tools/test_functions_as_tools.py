"""Functions under `@tool` stay functions, compose with other tools, and see what guards see."""

import inspect
import logging
from pathlib import Path
from typing import Annotated

import anyio.lowlevel
import pytest

from workflow_agent_react import (
    CallHistory,
    ReactAdapterConfig,
    ToolClash,
    ToolDefinitionError,
    ToolPart,
    Toolset,
    create_react_adapter,
    mcp_toolset,
    tool,
    workspace_tools,
)
from workflow_protocol import Effect, StartStep, ThreadContext, ThreadId
from workflow_reactor.testing import ScriptedLlm, call, function, say

CTX = ThreadContext(
    thread_id=ThreadId("01J"),
    start=StartStep(prompt="the task", workspace=Path("/nowhere"), timestamp_ms=0),
)


@tool(effect=Effect.READ)
async def look_up(ctx: ThreadContext, history: CallHistory, word: str) -> str:
    """Find a word."""
    before = ", ".join(f"{each.name} {each.arguments} {each.text}" for each in history.calls)
    return f"{word} for {ctx.start.prompt}; before: {before or 'nothing'}"


@tool(effect=Effect.READ, name="add_numbers")
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def plain(text: str) -> str:
    """Say it again."""
    return text


def adapter_of(llm: ScriptedLlm, *parts: ToolPart) -> ReactAdapterConfig:
    return ReactAdapterConfig(llm=llm, toolset=parts)


async def test_a_function_under_tool_is_called_as_the_plain_function() -> None:
    assert add(1, b=2) == 3
    assert await look_up(CTX, CallHistory(), "a") == "a for the task; before: nothing"
    assert inspect.iscoroutinefunction(look_up)
    assert list(inspect.signature(add).parameters) == ["a", "b"]
    assert (add.__name__, add.__doc__) == ("add", "Add two numbers.")


async def test_one_function_may_be_several_tools() -> None:
    one = tool(name="one", effect=Effect.READ)(plain)
    two = tool(name="two")(plain)

    tools = Toolset.combine(one, two, plain).tools
    assert [(each.name, each.effect, each.effect_is_declared) for each in tools] == [
        ("one", Effect.READ, True),
        ("two", Effect.UNSAFE, False),
        ("plain", Effect.UNSAFE, False),
    ]


async def test_functions_toolsets_and_plain_functions_compose() -> None:
    llm = ScriptedLlm(
        [
            say(None, function("add_numbers", a=1), function("plain", text="p")),
            call("resolve", value="x"),
        ]
    )
    config = adapter_of(llm, add, plain, workspace_tools(shell=False).only("read_file"))

    assert await create_react_adapter(config)("role", str)(CTX) == "x"
    assert [each["function"]["name"] for each in llm.requests[0]["tools"]] == [
        "add_numbers",
        "plain",
        "read_file",
        "read_result",
        "resolve",
    ]
    assert [m["content"] for m in llm.requests[1]["messages"] if m["role"] == "tool"] == ["2", "p"]


async def test_a_tool_sees_the_calls_of_its_turn_and_is_not_asked_for_them() -> None:
    llm = ScriptedLlm(
        [
            call("add_numbers", a=1),
            say(None, function("look_up", word="x"), function("look_up", word="y")),
            call("resolve", value="done"),
        ]
    )
    await create_react_adapter(adapter_of(llm, look_up, add))("role", str)(CTX)

    offered = llm.requests[0]["tools"][0]["function"]
    assert list(offered["parameters"]["properties"]) == ["word"]
    told = [m["content"] for m in llm.requests[2]["messages"] if m["role"] == "tool"]
    # Calls that run together see what guards see of them: what was before the group.
    seen = "for the task; before: add_numbers {'a': 1} 2"
    assert told == ["2", f"x {seen}", f"y {seen}"]


async def test_an_annotation_with_more_to_it_is_the_same_type() -> None:
    @tool
    def where(ctx: Annotated[ThreadContext, "the thread"]) -> str:
        """Say where."""
        return str(ctx.start.workspace)

    (definition,) = Toolset.combine(where).tools
    assert definition.parameters["properties"] == {}


def test_names_that_clash_are_one_error_with_the_places() -> None:
    @tool(name="read_file")
    def mine() -> str:
        """Mine."""
        return ""

    with pytest.raises(ToolClash) as caught:
        adapter_of(ScriptedLlm([]), mine, plain, workspace_tools(shell=False), plain)
    assert caught.value.names == ("plain", "read_file")
    assert str(caught.value) == (
        "'plain', 'read_file': two tools have one name ('plain' in parts 2 and 4 of 4; "
        "'read_file' in parts 1 and 3 of 4); give one another name, with tool(name='…') or "
        "Toolset.renamed"
    )


@pytest.mark.parametrize("part", [workspace_tools, mcp_toolset, Toolset, ThreadContext, "x", None])
def test_what_gives_tools_or_is_no_function_is_refused(part: object) -> None:
    with pytest.raises(ToolDefinitionError, match=r"call it: |give a function"):
        adapter_of(ScriptedLlm([]), part)  # pyright: ignore[reportArgumentType]


async def test_undeclared_tools_run_one_by_one_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    at_work: list[int] = []

    async def slow(number: int) -> int:
        """Work."""
        at_work.append(number)
        await anyio.lowlevel.checkpoint()
        assert at_work == [number]
        at_work.remove(number)
        return number

    two = say(None, function("slow", number=1), function("slow", number=2))
    llm = ScriptedLlm([call("slow", number=0), two, two, call("resolve", value="x")])
    with caplog.at_level(logging.WARNING, logger="workflow_agent_react"):
        await create_react_adapter(adapter_of(llm, slow))("role", str)(CTX)

    assert [record.getMessage() for record in caplog.records] == [
        "a reply called 2 tools that don't say what running them twice means (slow), so they ran "
        "one after the other; those that only read run together with @tool(effect=Effect.READ)"
    ]


async def test_declared_tools_are_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    both = say(None, function("add_numbers", a=1), function("add_numbers", a=2))
    llm = ScriptedLlm([both, call("resolve", value="x")])
    await create_react_adapter(adapter_of(llm, add, plain))("role", str)(CTX)

    assert caplog.records == []
