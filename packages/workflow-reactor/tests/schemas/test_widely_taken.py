"""Parameters as every endpoint takes them allow whatever the original allows."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_reactor import Profile, ToolDefinition, schema_faults
from workflow_reactor.schemas._walk import walk
from workflow_reactor.schemas._widely_taken import widely_taken

A: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
B = {
    "type": "object",
    "properties": {"b": {"type": "integer"}, "a": {"const": 1}},
    "required": ["a", "b"],
}
PROFILES = [
    Profile(),
    Profile(strict_schemas=True),
    Profile(refs=False),
    Profile(strict_schemas=True, refs=False),
]


def sent(parameters: dict[str, Any], profile: Profile) -> dict[str, Any]:
    tool = ToolDefinition(name="t", description="", parameters=parameters)
    return json.loads(tool.sent(profile))["function"]["parameters"]


FOLDED: list[tuple[dict[str, Any], dict[str, Any], list[str]]] = [
        ({"anyOf": [A, B]}, {"a": {"anyOf": [{"type": "string"}, {"const": 1}]},
                            "b": {"type": "integer"}}, ["a"]),
        ({"oneOf": [A]}, A["properties"], ["a"]),
        ({"allOf": [A, {"required": ["c"], "properties": {"c": {}}}]},
         {"a": {"type": "string"}, "c": {}}, ["a", "c"]),
        ({"properties": {"c": {}}, "required": ["c"], "anyOf": [A, B, {"type": "null"}]},
         {"c": {}, "a": {"anyOf": [{"type": "string"}, {"const": 1}]}, "b": {"type": "integer"}},
         ["c", "a"]),
        ({"properties": {"c": {}, "d": {}}, "anyOf": [{"required": ["c"]}, {"required": ["d"]}]},
         {"c": {}, "d": {}}, []),
        ({"$ref": "#/$defs/A", "$defs": {"A": A}}, A["properties"], ["a"]),
        ({"anyOf": [{"$ref": "#/$defs/A"}], "$defs": {"A": A}}, A["properties"], ["a"]),
        ({"properties": {"c": {}}, "not": {"required": ["c"]}, "if": {}, "then": {}, "else": {}},
         {"c": {}}, []),
        ({"enum": [{"c": 1}], "properties": {"c": {}}}, {"c": {}}, []),
]  # fmt: skip


@pytest.mark.parametrize(("root", "properties", "required"), FOLDED)
def test_unions_at_the_root_are_folded_into_it(
    root: dict[str, Any], properties: dict[str, Any], required: list[str]
) -> None:
    given = sent({"type": "object", **root}, Profile())
    assert given["properties"] == properties
    assert given["required"] == required
    assert given["type"] == "object"


def test_the_check_here_keeps_the_original() -> None:
    tool = ToolDefinition(name="t", description="", parameters={"type": "object", "anyOf": [A, B]})
    assert schema_faults(tool.parameters, {"a": 1})


def test_a_list_of_items_becomes_one_schema() -> None:
    pair = {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]}
    draft = "http://json-schema.org/draft-07/schema#"
    root = {"$schema": draft, "type": "object", "properties": {"pair": pair}}
    given = sent(root, Profile())
    items = given["properties"]["pair"]["items"]
    assert items == {"anyOf": [{"type": "string"}, {"type": "integer"}]}


NAMES = st.sampled_from(["a", "b", "c"])
LEAVES = st.sampled_from([{"type": "string"}, {"type": "integer"}, {"const": 1}, {}])
OBJECTS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "properties": st.dictionaries(NAMES, LEAVES, max_size=3),
        "additionalProperties": st.just(False),
    },
    optional={"type": st.just("object"), "required": st.lists(NAMES, unique=True, max_size=2)},
)


def with_union(own: dict[str, Any], key: str, members: list[Any]) -> dict[str, Any]:
    return {**own, key: members}


ROOTS: st.SearchStrategy[dict[str, Any]] = st.recursive(
    OBJECTS | st.just({"type": "string"}) | st.just({"$ref": "#/$defs/x"}),
    lambda below: st.builds(
        with_union,
        OBJECTS,
        st.sampled_from(["anyOf", "oneOf", "allOf"]),
        st.lists(below, min_size=1, max_size=3),
    ),
    max_leaves=6,
)
VALUES = st.dictionaries(NAMES, st.sampled_from(["x", 1, 2.5]), max_size=3)


@given(ROOTS, OBJECTS, VALUES)
@settings(max_examples=100, deadline=None)
def test_whatever_the_original_allows_is_allowed(
    root: dict[str, Any], definition: dict[str, Any], value: dict[str, Any]
) -> None:
    parameters = {**root, "type": "object", "$defs": {"x": definition}}
    for profile in PROFILES:
        given = sent(parameters, profile)
        assert {"anyOf", "oneOf", "allOf", "not", "enum", "$ref"}.isdisjoint(given)
        assert isinstance(given.get("properties", {}), dict)
        assert all(not isinstance(each.get("items"), list) for each in walk(given))
    # A member that isn't closed allows any value of a key that only others name: that isn't sent.
    if not schema_faults(parameters, value):
        assert not schema_faults(sent(parameters, PROFILES[0]), value)


def test_a_union_that_contains_itself_many_times_is_folded_at_once() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "$defs": {"node": {"anyOf": [{"$ref": "#/$defs/node"}] * 20 + [{"required": ["a"]}]}},
        "anyOf": [{"anyOf": [{"$ref": "#/$defs/node"}] * 20}] * 20,
    }

    sent = widely_taken(schema)

    assert sent["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "$ref"} & sent.keys()
    assert sent["$defs"] == schema["$defs"]
