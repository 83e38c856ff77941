import dataclasses
import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
import anyio.lowlevel
import msgspec
import pydantic
import pytest

from workflow_agent_react import ToolClash, ToolDefinitionError, ToolError, Toolset, tool
from workflow_agent_react._errors import BadArguments
from workflow_agent_react.dialects._describe import tool_line
from workflow_agent_react.dialects._xml_dialect import XmlDialect
from workflow_agent_react.tools._function import read_docstring
from workflow_protocol import Effect, StartStep, ThreadContext, ThreadId, WorkflowError
from workflow_reactor import Profile, ResultSchema, ToolCall, ToolNameError

CTX = ThreadContext(
    thread_id=ThreadId("01J"),
    start=StartStep(prompt="p", workspace=Path("/nowhere"), timestamp_ms=0),
)


async def run(tools: Toolset | Callable[..., object], name: str, /, **arguments: object) -> str:
    text = msgspec.json.encode(arguments).decode()
    return await Toolset.combine(tools).handler(ToolCall(id="1", name=name, arguments=text), CTX)


@tool(effect=Effect.READ, timeout_s=5, pollable=True)
def weather(city: str, days: int = 1) -> str:
    """Say the weather
    of a city.

    More that the model needs not know.

    Args:
        city: its name,
            in English
        days: how many days ahead

    Returns:
        not: a parameter
    """
    return f"{city}: sun for {days}"


def test_a_function_gives_the_whole_definition() -> None:
    (definition,) = Toolset.combine(weather).tools

    assert dataclasses.asdict(definition) == {
        "name": "weather",
        "description": "Say the weather of a city.",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "its name, in English"},
                "days": {"type": "integer", "default": 1, "description": "how many days ahead"},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
        "effect": Effect.READ,
        "unsafe_if": "",
        "effect_is_declared": True,
        "timeout_s": 5,
        "ask_if_unknown": False,
        "pollable": True,
        "max_result_chars": None,
        "validated": True,
        "reader": definition.reader,
    }


def test_without_options_a_tool_is_unsafe_to_repeat() -> None:
    @tool
    def plain() -> None:
        """Do it."""

    (definition,) = Toolset.combine(plain).tools
    assert (definition.name, definition.effect, definition.timeout_s) == (
        "plain",
        Effect.UNSAFE,
        300.0,
    )
    assert definition.parameters == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


async def test_a_plain_function_runs_in_a_worker_thread() -> None:
    @tool
    def where() -> str:
        return threading.current_thread().name

    assert await run(where, "where") != threading.current_thread().name
    assert await run(weather, "weather", city="Rome", days=2) == "Rome: sun for 2"


async def test_an_async_function_runs_where_it_is_called() -> None:
    @tool(name="here")
    async def anything() -> str:
        await anyio.lowlevel.checkpoint()
        return threading.current_thread().name

    assert await run(anything, "here") == threading.current_thread().name


async def test_an_async_function_that_looks_like_a_plain_one_is_awaited() -> None:
    async def double(number: int) -> int:
        await anyio.lowlevel.checkpoint()
        return 2 * number

    @functools.wraps(double)
    def logged(**arguments: int) -> object:
        return double(**arguments)

    assert await run(tool(logged), "double", number=21) == "42"


async def test_the_thread_is_given_and_not_offered() -> None:
    @tool
    def folder(name: str, *, thread: ThreadContext) -> str:
        return f"{thread.start.workspace}/{name}"

    assert list(Toolset.combine(folder).tools[0].parameters["properties"]) == ["name"]
    assert await run(folder, "folder", name="x") == "/nowhere/x"
    with pytest.raises(BadArguments, match="unknown parameter 'thread'"):
        await run(folder, "folder", name="x", thread="mine")


class Point(msgspec.Struct, forbid_unknown_fields=True):
    title: str
    x: int


class Model(pydantic.BaseModel):
    size: Literal["s", "l"]


@dataclass
class Box:
    points: list[Point]


async def test_parameters_and_results_may_be_of_any_schema() -> None:
    @tool
    def draw(
        box: Box, model: Model, note: Annotated[str | None, msgspec.Meta(description="why")] = None
    ) -> object:
        return [box, model.size, note]

    @tool
    def make() -> Model:
        return Model(size="l")

    parameters = Toolset.combine(draw).tools[0].parameters
    points = parameters["properties"]["box"]["properties"]["points"]
    assert points["items"] == {"$ref": "#/$defs/Point"}
    assert parameters["$defs"]["Point"]["properties"] == {
        "title": {"type": "string"},
        "x": {"type": "integer"},
    }
    assert parameters["properties"]["note"]["description"] == "why"
    assert parameters["required"] == ["box", "model"]
    box = {"points": [{"title": "t", "x": 1}]}
    assert await run(draw, "draw", box=box, model={"size": "s"}) == (
        '[{"points":[{"title":"t","x":1}]},"s",null]'
    )
    assert await run(make, "make") == '{"size":"l"}'


@pytest.mark.parametrize(("value", "text"), [("as is", "as is"), (None, "done"), ([1], "[1]")])
async def test_a_result_is_text(value: object, text: str) -> None:
    @tool
    def give() -> object:
        return value

    assert await run(give, "give") == text


async def test_all_faults_of_a_call_are_told_with_the_parameters() -> None:
    @tool
    def put(
        box: Point, count: int, name: Annotated[str, msgspec.Meta(description="its name")] = "n"
    ) -> None:
        pass

    with pytest.raises(BadArguments) as caught:
        await run(put, "put", box={"x": "one", "title": "t"}, nam="y", name=5)

    assert str(caught.value) == (
        "unknown parameter 'nam'; parameter 'box' at box.x: expected an integer, got a string; "
        "missing parameter 'count'; parameter 'name': expected a string, got an integer. "
        "Parameters:\n"
        "- box (object, required)\n- count (integer, required)\n"
        "- name (string, optional): its name"
    )
    assert len(caught.value.faults) == 4


@pytest.mark.parametrize("arguments", ["[]", "nonsense", '{"a":', '"text"'])
async def test_arguments_that_are_no_object_are_told(arguments: str) -> None:
    with pytest.raises(BadArguments, match="must be one JSON object"):
        await Toolset.combine(weather).handler(
            ToolCall(id="1", name="weather", arguments=arguments), CTX
        )


async def test_a_value_of_the_wrong_type_is_read_where_it_is_plain_what_it_means() -> None:
    @tool
    def take(count: int, flag: bool, names: list[str], text: str) -> object:
        return [count, flag, names, text]

    assert await run(take, "take", count="10", flag="true", names='["a"]', text="10") == (
        '[10,true,["a"],"10"]'
    )
    assert await run(take, "take", count=10.0, flag=True, names=[], text="") == '[10,true,[],""]'
    with pytest.raises(BadArguments, match="parameter 'count'"):
        await run(take, "take", count=10.5, flag=True, names=[], text="")


async def test_null_for_an_optional_parameter_means_its_default() -> None:
    assert await run(weather, "weather", city="Rome", days=None) == "Rome: sun for 1"
    with pytest.raises(BadArguments, match="parameter 'city'"):
        await run(weather, "weather", city=None)

    @tool
    def stop(after: int | None = 5) -> object:
        return [after]

    assert await run(stop, "stop", after=None) == "[null]"  # a value of its own
    assert await run(stop, "stop") == "[5]"


class Folder(pydantic.BaseModel):
    name: str
    folders: list["Folder"] = []
    parent: "Folder | None" = None


async def test_parameters_may_be_of_types_that_contain_themselves() -> None:
    @tool
    def size(root: Folder, others: list[Folder]) -> object:
        return [len(root.folders), [each.name for each in others]]

    (definition,) = Toolset.combine(size).tools
    assert definition.parameters["$defs"].keys() == {"Folder"}
    assert "$ref" in definition.json.decode()
    assert "$" not in definition.sent(Profile(refs=False)).decode()
    assert tool_line(definition) == (
        "- size(root: {name: string, folders?: [Folder, …], parent?: Folder | null}, "
        "others: [Folder, …]): \n"
        "    Folder = {name: string, folders?: [Folder, …], parent?: Folder | null}"
    )
    text = XmlDialect([definition, ResultSchema(int).tool()]).system_text("Do it.")
    assert 'size(root={"name": "…", "folders": [], "parent": ' in text
    root = {"name": "r", "folders": [{"name": "s"}]}
    assert await run(size, "size", root=root, others=[root]) == '[1,["r"]]'
    bad: list[dict[str, Any]] = [{"name": "o", "folders": [{}]}]
    with pytest.raises(BadArguments, match=r"at others\[0\].folders\[0\].name: required"):
        await run(size, "size", root=root, others=bad)


async def test_objects_and_arrays_written_as_strings_are_read_at_any_depth() -> None:
    @tool
    def take(root: Folder, names: list[str] | None = None, either: list[str] | str = "") -> object:
        return [root.model_dump(exclude_unset=True), names, either]

    inner = msgspec.json.encode([{"name": "[]", "parent": '{"name": "p"}'}]).decode()
    assert await run(
        take, "take", root={"name": "r", "folders": inner}, names='["a"]', either='["a"]'
    ) == ('[{"name":"r","folders":[{"name":"[]","parent":{"name":"p"}}]},["a"],"[\\"a\\"]"]')
    with pytest.raises(BadArguments, match=r"at root.folders\[0\].name: required, but missing"):
        await run(take, "take", root={"name": "r", "folders": "[{}]"})


def test_a_function_that_cannot_be_offered_is_refused_when_it_is_defined() -> None:
    def unannotated(x) -> None: ...  # type: ignore[no-untyped-def]

    def many(*x: int) -> None: ...

    def unknown(x: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    def impossible(x: threading.Thread) -> None: ...

    cases: list[tuple[Callable[..., object], str]] = [
        (unannotated, "the parameter 'x' needs a type annotation"),
        (many, "a model gives arguments by name"),
        (unknown, "its annotations can't be resolved"),
        (impossible, "the parameter 'x'"),
    ]
    for fn, reason in cases:
        with pytest.raises(ToolDefinitionError, match=reason):
            tool(fn)
    with pytest.raises(ToolDefinitionError, match="is no name for a tool"):
        tool(name="no name")(many)


async def test_toolsets_are_combined_in_order_and_each_runs_its_own() -> None:
    @tool
    def other() -> str:
        return "other"

    both = Toolset.combine(weather, other)

    assert [item.name for item in both.tools] == ["weather", "other"]
    assert await run(both, "other") == "other"
    assert await run(both, "weather", city="Oslo") == "Oslo: sun for 1"
    assert Toolset.combine().tools == ()


async def test_an_unknown_tool_is_told_with_the_tools_there_are() -> None:
    with pytest.raises(ToolError, match="there is no tool 'wether'; the tools are: weather"):
        await run(weather, "wether")


async def test_toolsets_are_filtered(tmp_path: Path) -> None:
    @tool
    def other() -> str:
        return "other"

    both = Toolset.combine(weather, other)

    assert [item.name for item in both.only("other", "weather").tools] == ["weather", "other"]
    assert [item.name for item in both.without("weather").tools] == ["other"]
    with pytest.raises(ToolError, match="there is no tool 'weather'"):
        await run(both.without("weather"), "weather", city="Oslo")


async def test_a_renamed_tool_answers_to_its_new_name_only() -> None:
    renamed = Toolset.combine(weather).renamed({"weather": "forecast"})

    assert [item.name for item in renamed.tools] == ["forecast"]
    assert await run(renamed, "forecast", city="Oslo") == "Oslo: sun for 1"
    with pytest.raises(ToolError, match="there is no tool 'weather'; the tools are: forecast"):
        await run(renamed, "weather", city="Oslo")


@pytest.mark.parametrize("name", ["", "two words", "a.b", "größe", "x" * 65])
def test_a_name_that_providers_would_refuse_is_refused_here(name: str) -> None:
    with pytest.raises(ToolNameError, match="use letters, digits, _ and -, at most 64"):
        Toolset.combine(weather).renamed({"weather": name})


async def test_two_tools_can_swap_their_names() -> None:
    @tool
    def other() -> str:
        return "other"

    swapped = Toolset.combine(weather, other).renamed({"weather": "other", "other": "weather"})

    assert await run(swapped, "weather") == "other"


def test_names_that_clash_or_are_not_there_are_an_error() -> None:
    @tool
    def other() -> None: ...

    both = Toolset.combine(weather, other)
    for make in (
        lambda: Toolset.combine(weather, weather),
        lambda: both.renamed({"other": "weather"}),
        lambda: both.renamed({"gone": "x"}),
        lambda: both.only("gone"),
        lambda: both.without("gone"),
    ):
        with pytest.raises(ToolClash) as caught:
            make()
        assert caught.value.names in {("weather",), ("gone",)}
        assert isinstance(caught.value, WorkflowError)


async def test_cancelling_waits_for_a_function_that_changes_things_and_not_for_one_that_reads() -> (
    None
):
    release = threading.Event()
    ended: list[str] = []

    def wait(name: str) -> None:
        release.wait(5)
        ended.append(name)

    @tool(effect=Effect.READ)
    def look() -> None:
        wait("look")

    @tool(effect=Effect.UNSAFE)
    def change() -> None:
        wait("change")

    with anyio.fail_after(3), anyio.move_on_after(0.05):
        await run(look, "look")
    assert ended == []

    async with anyio.create_task_group() as group:
        group.start_soon(run, change, "change")
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
        threading.Timer(0.1, release.set).start()
    assert "change" in ended


def test_a_docstring_without_sections_is_a_description() -> None:
    assert read_docstring("") == ("", {})
    assert read_docstring("One\nline.") == ("One line.", {})
    assert read_docstring("D.\n\nArgs:\n    a (int): first\n\n    b: second\n") == (
        "D.",
        {"a": "first", "b": "second"},
    )
