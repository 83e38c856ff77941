"""What a tool with any JSON Schema makes of a call."""

import dataclasses
import json
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor import ToolDefinition, ToolSchemaError, make_call

FIND: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1, "maxLength": 9, "pattern": "^[a-z/]*$"},
        "limit": {"type": "integer", "minimum": 1, "maximum": 9},
        "mode": {"enum": ["r", "w", 1]},
        "fixed": {"const": "x"},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": False},
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True, "maxItems": 3},
        "maybe": {"type": ["number", "null"], "exclusiveMinimum": 0, "multipleOf": 0.5},
        "shape": {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
                    "required": ["kind", "r"],
                },
                {
                    "type": "object",
                    "properties": {"kind": {"const": "box"}, "w": {"type": "number"}},
                    "required": ["kind", "w"],
                },
            ]
        },
        "key": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "both": {"oneOf": [{"type": "integer"}, {"minimum": 0}]},
        "free": {"type": "object", "minProperties": 1},
        "not_a": {"not": {"const": "a"}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def find(parameters: dict[str, Any] = FIND) -> ToolDefinition:
    return ToolDefinition(name="find", description="", parameters=parameters)


def faults(arguments: dict[str, Any], tool: ToolDefinition | None = None) -> list[str]:
    call = make_call("find", json.dumps(arguments), round=0, index=0)
    received = (tool or find()).receive(call)
    if not received.fault:
        return []
    first, *lines = received.fault.splitlines()
    assert first == "the arguments don't fit the tool's parameters:"
    return lines


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({}, ["$.path: required, but missing"]),
        ({"path": 3}, ["$.path: expected a string, got 3"]),
        ({"path": "a", "what": 1, "x": 2}, ["$.what: unknown field", "$.x: unknown field"]),
        ({"path": ""}, ["$.path: expected at least 1 characters"]),
        ({"path": "a" * 10}, ["$.path: expected at most 9 characters"]),
        ({"path": "A"}, ["$.path: expected a string that matches ^[a-z/]*$"]),
        ({"path": "a", "limit": "5"}, ["$.limit: expected an integer, got a string ('5')"]),
        ({"path": "a", "limit": 5.5}, ["$.limit: expected an integer, got 5.5"]),
        ({"path": "a", "limit": True}, ["$.limit: expected an integer, got true"]),
        ({"path": "a", "limit": 0}, ["$.limit: expected at least 1"]),
        ({"path": "a", "limit": 10}, ["$.limit: expected at most 9"]),
        ({"path": "a", "mode": "x"}, ['$.mode: expected "r" or "w" or 1, got a string (\'x\')']),
        ({"path": "a", "fixed": {}}, ['$.fixed: expected "x", got an object']),
        ({"path": "a", "pair": ["a", 1]}, ["$.pair[1]: nothing may stand here"]),
        ({"path": "a", "tags": ["a", "a"]}, ["$.tags: expected items that all differ"]),
        ({"path": "a", "tags": ["a", None]}, ["$.tags[1]: expected a string, got null"]),
        ({"path": "a", "tags": list("abcd")}, ["$.tags: expected at most 3 items"]),
        ({"path": "a", "maybe": 0}, ["$.maybe: expected more than 0"]),
        ({"path": "a", "maybe": 0.7}, ["$.maybe: expected a multiple of 0.5"]),
        ({"path": "a", "maybe": []}, ["$.maybe: expected null or a number, got an array"]),
        ({"path": "a", "shape": {"kind": "box"}}, ["$.shape.w: required, but missing"]),
        (
            {"path": "a", "shape": {"kind": "circle", "r": "1"}},
            ["$.shape.r: expected a number, got a string ('1')"],
        ),
        ({"path": "a", "shape": 1}, ["$.shape: expected an object, got 1"]),
        ({"path": "a", "key": []}, ["$.key: expected a string or an integer, got an array"]),
        (
            {"path": "a", "both": 1},
            ["$.both: fits more than one of the forms that it may have; make it fit one"],
        ),
        ({"path": "a", "free": {}}, ["$.free: expected at least 1 keys"]),
        ({"path": "a", "limit": 3, "maybe": None, "pair": ["x"], "key": 1}, []),
    ],
)
def test_arguments_that_don_t_fit_are_told_by_path_and_what_was_expected(
    arguments: dict[str, Any], lines: list[str]
) -> None:
    assert faults(arguments) == lines


def test_a_rule_without_words_of_ours_is_told_in_the_validator_s() -> None:
    (line,) = faults({"path": "a", "not_a": "a"})

    assert line.startswith("$.not_a: ")
    assert "http" not in line


def test_many_faults_are_ten_lines_and_a_count() -> None:
    lines = faults({"path": "a", **{f"x{n:02}": n for n in range(25)}})

    assert len(lines) == 11
    assert lines[-1] == "and 15 more"


def test_a_null_for_an_optional_parameter_is_as_if_it_weren_t_there() -> None:
    call = make_call("find", '{"path": "a", "limit": null, "maybe": null}', round=0, index=0)
    received = find().receive(call)

    assert received == dataclasses.replace(call, arguments='{"path": "a", "maybe": null}')


def test_a_null_for_an_optional_parameter_that_went_out_strict_is_no_value_of_it() -> None:
    text = '{"path": "a", "limit": null, "maybe": null, "mode": "r"}'
    call = dataclasses.replace(make_call("find", text, round=0, index=0), strict=True)

    assert find().receive(call).arguments == '{"path": "a", "mode": "r"}'


def test_objects_and_arrays_that_are_written_as_strings_are_read() -> None:
    shape = '{"kind": "circle", "r": 1.10}'
    written = {"path": "a", "shape": shape, "tags": '["a"]', "key": "{}"}
    call = make_call("find", json.dumps(written), round=0, index=0)

    received = find().receive(call)

    assert received.fault == ""
    assert received.arguments == f'{{"path": "a", "shape": {shape}, "tags": ["a"], "key": "{{}}"}}'
    assert find().receive(received) is received


def test_what_is_wrong_in_a_string_that_is_read_is_told_by_its_place() -> None:
    assert faults({"path": "a", "tags": "[1]"}) == ["$.tags[0]: expected a string, got 1"]


def test_a_call_that_can_t_be_read_stays_as_it_is() -> None:
    call = make_call("find", '{"path": ', round=0, index=0)

    assert find().receive(call) is call


def test_a_tool_whose_handler_validates_is_not_checked_before() -> None:
    tool = dataclasses.replace(find(), validated=True)

    assert faults({"path": 3}, tool) == []


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({}, 'its root must have `"type": "object"`'),
        ({"type": "array"}, 'its root must have `"type": "object"`'),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, "properties/a/type"),
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, '"(" is not a'),
        ({"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}, "A' does not exist"),
        ({"type": "object", "properties": {"a": {"$ref": "http://h.test/a"}}}, "http://h.test/a"),
        ({"type": "object", "required": "a"}, "required"),
        ({"type": "object", "default": object()}, "a value that JSON has no form for"),
    ],
)
def test_a_schema_that_can_t_be_used_is_refused_when_the_tool_is_made(
    parameters: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ToolSchemaError, match="of the tool 'find' can't be used: ") as caught:
        find(parameters)
    assert reason in str(caught.value)
    assert caught.value.name == "find"


def test_older_drafts_are_checked_by_their_own_rules() -> None:
    tool = find(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"pair": {"items": [{"type": "string"}], "additionalItems": False}},
        }
    )
    assert faults({"pair": ["a"]}, tool) == []
    assert faults({"pair": [1, 2]}, tool) == [
        "$.pair: nothing may stand here",
        "$.pair[0]: expected a string, got 1",
    ]


def test_a_pattern_that_backtracks_for_ever_doesn_t_hang_the_check() -> None:
    tool = find({"type": "object", "properties": {"a": {"pattern": r"^(?=a)((a|a)(?!c))*$"}}})
    started = time.monotonic()

    assert len(faults({"a": "a" * 5000 + "b"}, tool)) == 1
    assert time.monotonic() - started < 5


@given(st.text())
def test_a_call_is_received_or_told_a_fault_whatever_its_arguments_are(text: str) -> None:
    received = find().receive(make_call("find", text, round=0, index=0))

    assert isinstance(json.loads(received.arguments), dict)


def test_the_validator_is_loaded_with_the_first_injected_tool_only() -> None:
    script = (
        "import sys\n"
        "from workflow_reactor import ResultSchema, ToolDefinition\n"
        "ResultSchema(int).tool()\n"
        "assert 'jsonschema_rs' not in sys.modules\n"
        "ToolDefinition(name='t', description='', parameters={'type': 'object'})\n"
        "assert 'jsonschema_rs' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
