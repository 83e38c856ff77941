"""A call that did happen is told as done, however odd its result is."""

import json
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_agent_react import ToolError, open_mcp
from workflow_agent_react.tools.mcp._result import result_text

from .odd import listed, odd, run, tool

DONE = "(The call was carried out. "


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


RESULTS: list[tuple[Any, str]] = [
    ({"content": [text("a"), text("b")]}, "a\nb"),
    ({"content": []}, "done"),
    ({}, "done"),
    ({"content": None}, f"done\n{DONE}Its `content` is null, where a list is due.)"),
    ({"content": text("a")}, f"a\n{DONE}Its `content` is an object, where a list is due.)"),
    ({"content": "a"}, "a\n" + DONE + "Its `content` is a string, where a list is due. "
     "A block of its content is bare text.)"),
    (None, f"done\n{DONE}Its result is null, where an object is due.)"),
    (["a", 1], f'["a", 1]\n{DONE}Its result is an array, where an object is due.)'),
    ("a", f"a\n{DONE}Its result is a string, where an object is due.)"),
    ({"content": [text("a"), {"type": "video", "x": 1}]}, 'a\n{"type": "video", "x": 1}\n'
     f"{DONE}A block of its content is of the unknown type 'video'.)"),
    ({"content": [None, text("a")]}, f"null\na\n{DONE}A block of its content is null.)"),
    ({"content": [text("a"), {"type": "text"}]}, 'a\n{"type": "text"}\n'
     f"{DONE}A block of its content is of the unknown type 'text'.)"),
    ({"content": [text("a")], "structuredContent": {"n": 1}}, 'a\n{"n": 1}'),
    ({"content": [text('{"n":1}')], "structuredContent": {"n": 1}}, '{"n":1}'),
    ({"content": [text("7")], "structuredContent": {"result": 7}}, "7"),
    ({"content": [text("a")], "structuredContent": {"result": "a"}}, "a"),
    ({"content": [text("a"), text("2")], "structuredContent": {"result": ["a", 2]}}, "a\n2"),
    ({"structuredContent": {"result": []}}, '{"result": []}'),
    ({"structuredContent": [1]}, "[1]"),
    ({"task": {"taskId": "t"}}, '{"task": {"taskId": "t"}}'),
    ({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]},
     "(image, image/png, 3 bytes, not shown)"),
    ({"content": [{"type": "audio", "data": "AAA="}]}, "(audio, 2 bytes, not shown)"),
    ({"content": [{"type": "resource_link", "name": "r", "uri": "file:///r", "size": 12345,
                   "mimeType": "text/csv", "description": "All rows."}]},
     "(link to r, file:///r, text/csv, 12,345 bytes: All rows.)"),
    ({"content": [{"type": "resource", "resource": {"uri": "f:r", "blob": "AAAA"}}]},
     "(resource, f:r, 3 bytes, not shown)"),
    ({"content": [{"type": "resource", "resource": {"uri": "f:r", "text": "rows"}}]},
     "(resource, f:r)\nrows"),
]  # fmt: skip


async def test_what_came_is_kept_and_what_was_wrong_is_added() -> None:
    plan = listed(*(tool(f"r{each}") for each in range(len(RESULTS))))
    plan |= {f"call:r{each}": [["result", given]] for each, (given, _) in enumerate(RESULTS)}
    with anyio.fail_after(10):
        async with open_mcp(odd(plan)) as tools:
            for each, (_, expected) in enumerate(RESULTS):
                assert await run(tools, f"r{each}") == expected


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"content": [text("a")]}, "The server announced structured content, and gave none."),
        (
            {"content": [text("a")], "structuredContent": {"n": "x"}},
            "Its structured content isn't as announced: n: expected an integer, got a string",
        ),
        (
            {"content": [text("a")], "structuredContent": [1]},
            "Its structured content isn't as announced: expected an object, got an array",
        ),
    ],
)
def test_structured_content_that_is_not_as_announced_is_noted(result: Any, expected: str) -> None:
    given = result_text(result, SCHEMA)
    assert given.startswith("a\n")
    assert f"{DONE}{expected}" in given.replace("$.", "").replace("$: ", "")


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"isError": True, "content": [text("no disk")]}, "no disk"),
        ({"isError": True}, "the tool failed and gave no reason"),
        ({"isError": "true", "content": [text("a")]}, "a"),
        ({"isError": True, "structuredContent": {"code": 7}}, '{"code": 7}'),
    ],
)
def test_a_failed_call_says_what_the_server_said(result: Any, expected: str) -> None:
    with pytest.raises(ToolError) as caught:
        result_text(result, SCHEMA)
    assert str(caught.value) == expected


async def test_an_error_of_the_protocol_is_told_with_its_code() -> None:
    plan = {"call:add": [["error", {"code": -32602, "message": "no such tool"}]]}
    with anyio.fail_after(5):
        async with open_mcp(odd(plan)) as tools:
            with pytest.raises(ToolError) as caught:
                await run(tools, "add")
    words = "the MCP server 'odd' gave no result of add: no such tool (-32602)"
    assert str(caught.value) == words


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda below: (
        st.lists(below, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "resource", "uri", "data", "size", "name", "blob"]),
            below,
            max_size=4,
        )
    ),
    max_leaves=8,
)
KEYS = ("content", "structuredContent", "isError", "resultType", "_meta")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(KEYS, JSON)))
@settings(max_examples=150, deadline=None)
def test_no_result_whatever_breaks_the_reading_of_it(result: dict[str, Any]) -> None:
    result = json.loads(json.dumps(result))
    try:
        words = result_text(result, SCHEMA)
    except ToolError as error:
        words = str(error)
    assert words
