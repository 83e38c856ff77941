"""One odd tool never takes its server away, nor makes a request that endpoints refuse."""

import json
import logging

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_agent_react import (
    McpServer,
    ReactAdapterConfig,
    ToolClash,
    Toolset,
    create_react_adapter,
    open_mcp,
)
from workflow_agent_react.tools.mcp._client import Listing
from workflow_agent_react.tools.mcp._lines import read_message
from workflow_agent_react.tools.mcp._listing import instructions_of, remote_tools
from workflow_protocol import Effect
from workflow_reactor.testing import ScriptedLlm, call

from .odd import context, listed, odd, run, tool

HERE = McpServer(command=["x"], name="odd", trust_hints=True)
OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}}

ODD_TOOLS: list[tuple[object, str]] = [
    ({"name": "odd_1"}, "'odd_1': its inputSchema is missing"),
    ({"name": "odd_2", "inputSchema": None}, "'odd_2': its inputSchema is missing"),
    ({"name": "odd_3", "inputSchema": {}}, "'odd_3': its inputSchema is {}"),
    ({"name": "odd_4", "inputSchema": "text"}, "'odd_4': its inputSchema is \"text\""),
    ({"name": "odd_5", "inputSchema": []}, "'odd_5': its inputSchema is []"),
    ({"name": "odd_6", "inputSchema": True}, "'odd_6': its inputSchema is true"),
    ({"name": "odd_7", "inputSchema": {"$ref": "#/$defs/X"}}, "refers to '#/$defs/X'"),
    ({"name": "odd_8", "inputSchema": {"$ref": "http://h/x"}}, "refers to 'http://h/x'"),
    ({"name": "odd_9", "inputSchema": {"type": "array"}}, "is of type 'array'"),
    ({"name": "odd_10", "inputSchema": {"type": 7}}, "is of type 7"),
    ({"name": "odd_11", "inputSchema": {**OBJECT, "required": "a"}}, "'odd_11': the parameters"),
    ({"name": "odd_12", "inputSchema": {**OBJECT, "properties": []}}, "'odd_12': the parameters"),
    ({"name": "odd_13", "inputSchema": {"properties": {"a b": {}}}}, "its parameter 'a b'"),
    (tool("odd_14", execution={"taskSupport": "required"}), "only as a task of MCP"),
    ({"inputSchema": OBJECT}, "number 15: it has no name"),
    ({"name": 7, "inputSchema": OBJECT}, "number 16: it has no name"),
    ("odd", "number 17: it has no name"),
    (None, "number 18: it has no name"),
]


async def test_odd_tools_are_left_out_and_named_and_the_others_work(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with anyio.fail_after(5):
        async with open_mcp(odd(listed(*(each for each, _ in ODD_TOOLS), tool("good")))) as tools:
            assert [each.name for each in tools.tools] == ["good"]
            assert await run(tools, "good") == "done well"
    told = [each.getMessage() for each in caplog.records]
    assert len(told) == len(ODD_TOOLS)
    for message, (_, words) in zip(told, ODD_TOOLS, strict=True):
        assert message.startswith("a tool of the MCP server 'odd' is left out: ")
        assert words in message


def test_what_can_be_read_is_offered() -> None:
    given: list[object] = [
        {"name": "no_type", "inputSchema": {"properties": {"a": {}}}},
        {"name": "type_list", "inputSchema": {"type": ["object"]}},
        {"name": "ref", "inputSchema": {"$ref": "#/$defs/A", "$defs": {"A": OBJECT}}},
        tool("words", description=None, title="Its title"),
        tool("words_2", description=7),
        tool("hints", annotations={"readOnlyHint": True, "idempotentHint": "x"}),
        tool("odd_hints", annotations="none"),
        tool("optional_task", execution={"taskSupport": "optional"}),
        tool("output", outputSchema="text"),
        tool("a.b/c d"),
        tool("a_b/c d"),
        tool("x" * 100),
    ]
    tools = {each.definition.name: each.definition for each in remote_tools(HERE, Listing(given))}
    assert list(tools) == [
        *("no_type", "type_list", "ref", "words", "words_2", "hints", "odd_hints"),
        *("optional_task", "output", "a_b_c_d", "a_b_c_d_2", "x" * 64),
    ]
    assert tools["ref"].parameters["properties"] == OBJECT["properties"]
    assert (tools["words"].description, tools["words_2"].description) == ("Its title", "")
    assert (tools["hints"].effect, tools["odd_hints"].effect) == (Effect.READ, Effect.UNSAFE)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "properties", "items", "$ref", "anyOf", "enum", "required", "x"]
            ),
            below,
            max_size=3,
        )
    ),
    max_leaves=8,
)
FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations", "execution")


@given(st.lists(JSON | st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)), max_size=4))
@settings(max_examples=60, deadline=None)
def test_no_listing_whatever_takes_away_the_good_tool(tools: list[object]) -> None:
    listing = Listing([*tools, tool("good")])
    found = remote_tools(HERE, listing)
    assert found[-1].name == "good"
    names = [each.definition.name for each in found]
    assert len(set(names)) == len(names)
    for each in found:
        sent = json.loads(each.definition.json)["function"]["parameters"]
        assert sent["type"] == "object"
        assert isinstance(sent["properties"], dict)


async def test_reserved_names_get_the_prefix_of_the_server_and_are_said_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with anyio.fail_after(5):
        async with open_mcp(odd(listed(tool("resolve"), tool("read_result")))) as tools:
            assert [each.name for each in tools.tools] == ["odd_resolve", "odd_read_result"]
            assert await run(tools, "odd_resolve") == "done well"
            llm = ScriptedLlm([call("resolve", value="x")])
            config = ReactAdapterConfig(llm=llm, toolset=tools)
            assert await create_react_adapter(config)("p", str)(context()) == "x"
    told = [each.getMessage() for each in caplog.records]
    assert len(told) == 2
    assert "'resolve' of the MCP server 'odd' is offered as 'odd_resolve'" in told[0]


async def test_two_servers_with_the_same_names_are_told_apart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = odd({**listed(tool("get"), tool("one")), "call:get": [["result", text("first")]]})
    second = odd({**listed(tool("get")), "call:get": [["result", text("second")]]}, name="sec.ond")
    with anyio.fail_after(5):
        async with open_mcp(first) as one, open_mcp(second) as two, open_mcp(odd()) as three:
            tools = Toolset.combine(one, two, three, one.only("get"))
            names = [each.name for each in tools.tools]
            assert names == ["get", "one", "sec_ond_get", "add", "odd_get"]
            assert await run(tools, "get") == "first"
            assert await run(tools, "sec_ond_get") == "second"
            assert await run(tools, "odd_get") == "first"
    assert "{'get': 'sec_ond_get'}" in caplog.records[0].getMessage()


async def test_tools_of_ones_own_keep_their_names_beside_a_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with anyio.fail_after(5):
        async with open_mcp(odd()) as tools:
            own = Toolset(tools.tools, tools.handler)  # without a prefix
            assert [each.name for each in Toolset.combine(tools, own).tools] == ["odd_add", "add"]
            with pytest.raises(ToolClash, match="'add'"):
                Toolset.combine(own, own)
    assert "offered under others" in caplog.text


def text(words: str) -> dict[str, object]:
    return {"content": [{"type": "text", "text": words}]}


async def test_many_tools_are_said_and_a_wrong_name_is_answered_with_the_nearest(
    caplog: pytest.LogCaptureFixture,
) -> None:
    many = [tool(f"make_{kind}_{each}") for kind in ("report", "user") for each in range(120)]
    llm = ScriptedLlm([call("make_report_7x"), call("resolve", value="x")])
    with anyio.fail_after(10):
        async with open_mcp(odd(listed(*many))) as tools:
            config = ReactAdapterConfig(llm=llm, toolset=tools)
            assert await create_react_adapter(config)("p", str)(context()) == "x"
            few = ReactAdapterConfig(
                llm=ScriptedLlm([call("resolve", value="x")]), toolset=tools.only("make_user_1")
            )
            assert await create_react_adapter(few)("p", str)(context()) == "x"
            with pytest.raises(ToolClash, match="the nearest of 240 tools are make_user_1"):
                tools.only("make_user_1000")
    (warning,) = [each.getMessage() for each in caplog.records]
    assert "a role is offered 240 tools" in warning
    assert ".only(" in warning
    answer = llm.requests[1]["messages"][-1]["content"]
    assert answer.startswith("Error: there is no tool 'make_report_7x'; the nearest of 242 tools")
    assert "make_report_7," in answer
    assert len(answer) < 400


async def test_long_schemas_are_said(caplog: pytest.LogCaptureFixture) -> None:
    llm = ScriptedLlm([call("resolve", value="x")])
    with anyio.fail_after(5):
        async with open_mcp(odd({"tools/list": [["long", 210_000]]})) as tools:
            config = ReactAdapterConfig(llm=llm, toolset=tools)
            assert await create_react_adapter(config)("p", str)(context()) == "x"
    assert "a role is offered 1 tools of 210 kB" in caplog.records[0].getMessage()


async def test_instructions_and_cut_descriptions_reach_the_model_in_each_round() -> None:
    hello = {"protocolVersion": "2025-11-25", "instructions": "Ask for the key first."}
    plan = {
        "initialize": [["result", hello]],
        **listed(tool("add", description="Adds. " * 300), tool("short", description="Short.")),
    }
    llm = ScriptedLlm([call("add"), call("resolve", value="x")])
    with anyio.fail_after(5):
        async with open_mcp(odd(plan)) as tools:
            config = ReactAdapterConfig(llm=llm, toolset=tools.without("short"))
            assert await create_react_adapter(config)("Be good.", str)(context()) == "x"
    first, second = (each["messages"][0]["content"] for each in llm.requests)
    assert first == second
    assert first.startswith(
        "Be good.\n\n## About the tools of odd\n\nAsk for the key first.\n\nadd: "
    )
    assert "Adds. " * 299 in first
    sent = llm.requests[0]["tools"][0]["function"]
    assert len(sent["description"]) <= 1024


async def test_a_server_without_tools_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    no_tools = {"tools/list": [["error", {"code": -32601, "message": "no such method"}]]}
    with anyio.fail_after(5):
        async with open_mcp(odd(no_tools)) as tools:
            assert tools.tools == ()
    assert "offers no tools that can be used" in caplog.records[0].getMessage()
    assert caplog.records[0].levelno == logging.WARNING


def test_long_instructions_are_cut() -> None:
    listing = Listing([], "i" * 20_000)
    assert len(instructions_of(HERE, listing, [])) < 8_100


async def test_pages_are_joined() -> None:
    plan = {"tools/list": [["page", [[tool("a")], [tool("b")], [tool("c")]]]]}
    with anyio.fail_after(5):
        async with open_mcp(odd(plan)) as tools:
            assert [each.name for each in tools.tools] == ["a", "b", "c"]


def test_halves_of_surrogate_pairs_do_not_get_in() -> None:
    message = read_message(b'{"id": 1, "result": {"a": "\\ud800 \\ud83d\\ude00"}}')
    assert message["result"] == {"a": "? 😀"}
