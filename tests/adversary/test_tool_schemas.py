"""A tool of any JSON Schema is refused when it is made, or works: never an untyped error."""

import random
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_agent_react.dialects._describe import tool_line
from workflow_protocol import JsonObject
from workflow_reactor import ToolDefinition, ToolSchemaError, make_call
from workflow_reactor.schemas._check import compile_check

from .tool_schemas import as_parameters, exercise, random_schema, random_value, suite


def made_of(cases: list[tuple[Any, list[Any]]]) -> int:
    """How many of the schemas could be a tool's; others refer to documents that aren't there."""
    count = 0
    for schema, values in cases:
        alone, *within = [exercise(each, values[:2]) for each in as_parameters(schema)]
        count += alone or any(within)
    return count


def test_schemas_of_the_test_suite_work_in_every_dialect() -> None:
    cases = suite()[::25]

    assert made_of(cases) > 0.75 * len(cases)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_each_schema_of_the_test_suite_works_in_every_dialect(part: int) -> None:
    cases = suite()[part::8]

    assert made_of(cases) > 0.75 * len(cases)


@settings(max_examples=100)
@given(st.randoms(use_true_random=False))
def test_a_random_schema_works_in_every_dialect_or_is_refused(rng: random.Random) -> None:
    for parameters in as_parameters(random_schema(rng)):
        exercise(parameters, [random_value(rng)])


ODD_FORMS: list[dict[Any, Any]] = [
    {"$defs": {"Any": True}},
    {"$defs": {"No": False, "X": {"anyOf": [True, False]}}},
    {"definitions": {"a": []}},
    {"properties": {"a": {"$ref": 3}}},
    {"properties": {"a": {"enum": [None, ["x"], {"a": 1}]}}},
    {"properties": {"a": {"const": "x", "enum": "x"}}},
    {"properties": {"value": {"type": "string", "enum": ["a", 1, None]}}},
    {"properties": {"a": {"items": [True, {"type": "string"}]}}},
    {"properties": {"a": {"prefixItems": {"a": 1}}}},
    {"properties": [], "required": "ab"},
    {"properties": {"a": {"anyOf": {"b": 1}}, "b": {"oneOf": ["x"]}}},
    {"properties": {"a": {"type": ["string", 3, None]}}},
    {"properties": {"a": {"$ref": "#/allOf/99999999999999999999"}}},
    {"properties": {"a": {"$ref": "#/allOf/" + "9" * 5000}}, "allOf": [{}]},
    {"properties": {"a": {"format": [], "pattern": {}}}},
    {"properties": {"a": {"description": ["x"], "default": 1e400}}},
    {"allOf": {"a": 1}, "additionalProperties": {"allOf": [False]}},
    {"properties": {"\ud800": {"description": "\udfff"}}},
    {"properties": {1: {}}},
    {"properties": {"a": {"maximum": 10**400}}},
]


@pytest.mark.parametrize("parameters", ODD_FORMS, ids=lambda each: str(each)[:60])
def test_no_form_of_a_schema_is_an_untyped_error(parameters: Any) -> None:
    exercise({"type": "object", **parameters}, [{"a": 1}, {"a": None}, {"a": ["x"]}, "x", None])


def test_a_boolean_definition_is_described_in_a_word() -> None:
    parameters: JsonObject = {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/Any"}, "b": False, "c": {"anyOf": [True, False]}},
        "$defs": {"Any": True},
    }
    tool = ToolDefinition(name="f", description="Do it.", parameters=parameters)

    assert tool_line(tool) == (
        "- f(a?: Any, b?: nothing, c?: any | nothing): Do it.\n    Any = any"
    )


def test_halves_of_surrogate_pairs_are_named_when_the_tool_is_made() -> None:
    with pytest.raises(ToolSchemaError, match=r"a value that JSON has no form for: .*surrogates"):
        ToolDefinition(
            name="f", description="", parameters={"type": "object", "description": "\ud800"}
        )


def test_a_union_of_which_one_member_is_a_list_of_rules_is_explained() -> None:
    union = {"anyOf": [{"allOf": [{"type": "string"}], "minimum": 3}, {"type": "null"}]}
    (fault,) = compile_check(union)(1)

    assert str(fault.message) == "expected a string or null, got 1"


def test_a_value_that_doesnt_fit_always_has_a_fault() -> None:
    """What the explanation can't see is still no fit."""
    for schema, values in suite():
        for parameters in as_parameters(schema)[-1:]:
            try:
                tool = ToolDefinition(name="f", description="", parameters=parameters)
            except ToolSchemaError:
                continue
            validator = jsonschema_rs.validator_for(parameters, validate_formats=False)
            for value in values:
                call = make_call("f", msgspec.json.encode({"x": value}).decode(), round=0, index=0)
                if call.fault or "null" in call.arguments:
                    continue
                fits = validator.is_valid({"x": value})
                assert bool(tool.receive(call).fault) is not fits, (parameters, value)
