"""References written out in their places."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from workflow_reactor.schemas import _inline_refs
from workflow_reactor.schemas._inline_refs import inline_refs
from workflow_reactor.schemas._walk import walk


def has_refs(schema: dict[str, Any]) -> bool:
    return any(node.keys() & {"$ref", "$defs", "definitions"} for node in walk(schema))


def stubs(schema: dict[str, Any]) -> list[str]:
    return [
        node["description"]
        for node in walk(schema)
        if str(node.get("description", "")).startswith("another ")
    ]


def wide(keys: int, fields: int) -> dict[str, Any]:
    """An object like a chat's message: many optional keys, whose classes lead to each other."""
    definitions: dict[str, Any] = {
        f"C{number}": {
            "type": "object",
            "properties": {
                f"f{field}": {"anyOf": [{"$ref": f"#/$defs/C{(number + field) % keys}"},
                                        {"type": "null"}]}
                for field in range(fields)
            },
        }
        for number in range(keys)
    }  # fmt: skip
    properties = {
        f"k{number}": {"anyOf": [{"$ref": f"#/$defs/C{number}"}, {"type": "null"}]}
        for number in range(keys)
    }
    return {"type": "object", "properties": properties, "$defs": definitions}


def test_no_key_of_the_schema_itself_is_cut_however_deep_the_first_of_them_leads() -> None:
    schema = inline_refs(wide(keys=127, fields=12))

    assert not has_refs(schema)
    for below in schema["properties"].values():
        assert len(below["anyOf"][0]["properties"]) == 12
    assert sum(1 for _ in walk(schema)) < _inline_refs.MAX_FIRST_SCHEMAS


def test_what_is_smaller_is_written_out_level_by_level() -> None:
    tree: dict[str, Any] = {
        "type": "object",
        "properties": {"below": {"type": "array", "items": {"$ref": "#"}}},
    }

    schema, levels = inline_refs(tree), 0
    while "properties" in schema:
        schema, levels = schema["properties"]["below"]["items"], levels + 1

    assert levels == 1 + 1 + _inline_refs.MAX_RECURSION
    assert schema == {"type": "object", "description": "another of the same"}


def test_a_union_that_was_cut_takes_whatever_fits_any_of_its_members() -> None:
    node: dict[str, Any] = {
        "type": "object",
        "properties": {
            "next": {
                "oneOf": [
                    {"$ref": "#/$defs/Node"},
                    {"type": "object", "properties": {"end": {"const": True}}, "required": ["end"]},
                ]
            },
            "not": {"not": {"$ref": "#/$defs/Node"}},
        },
        "required": ["next"],
    }
    schema = {"type": "object", "properties": {"n": {"$ref": "#/$defs/Node"}},
              "$defs": {"Node": node}}  # fmt: skip
    value: Any = {"end": True}
    for _ in range(8):
        value = {"next": value}

    assert jsonschema_rs.is_valid(schema, {"n": value})
    sent = inline_refs(schema)
    assert not has_refs(sent)
    assert jsonschema_rs.is_valid(sent, {"n": value})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        # what stands beside a reference holds too, or not at all
        ({"$ref": "#/$defs/A", "minContains": 2, "$defs": {"A": {"contains": {"const": 1}}}}, [1]),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/A",
          "type": "string", "definitions": {"A": {"type": "integer"}}}, 1),
        ({"dependencies": {"a": {"$ref": "#/definitions/A"}},
          "$schema": "http://json-schema.org/draft-07/schema#",
          "definitions": {"A": {"required": ["b"]}}}, {"a": 1, "b": 1}),
        ({"$id": "urn:x", "properties": {"a": {"$ref": "#"}}}, {"a": {"a": {}}}),
        ({"properties": {"a": {"$ref": "#nowhere"}, "b": {"not": {"$ref": "#nowhere"}}}},
         {"a": 1}),
        ({"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
          "discriminator": {"propertyName": "k", "mapping": {"a": "#/$defs/A"}},
          "$defs": {"A": {"properties": {"k": {"const": "a"}}, "required": ["k"]},
                    "B": {"properties": {"k": {"const": "b"}}, "required": ["k"]}}}, {"k": "a"}),
    ],
)  # fmt: skip
def test_what_is_valid_stays_valid(schema: dict[str, Any], value: Any) -> None:
    sent = inline_refs(schema)

    assert not has_refs(sent)
    assert "#/" not in str(sent).replace("schema#", "")
    assert jsonschema_rs.is_valid(sent, value)


leaves: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "integer"},
        {"type": "string"},
        {"const": 1},
        {"type": ["null", "array"]},
        {"type": "object", "required": ["a"]},
        {"properties": {"a": False}},
    ]
)
refs: st.SearchStrategy[Any] = st.sampled_from(
    [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}, {"$ref": "#"}]
)


def schemas_of(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(below, min_size=1, max_size=3)
    return st.one_of(
        st.fixed_dictionaries(
            {"properties": st.dictionaries(st.sampled_from("ab"), below, max_size=2)},
            optional={"additionalProperties": st.just(False), "type": st.just("object")},
        ),
        st.fixed_dictionaries({"items": below}, optional={"prefixItems": some}),
        st.fixed_dictionaries({"contains": below}, optional={"maxContains": st.integers(1, 2)}),
        st.fixed_dictionaries({"allOf": some}, optional={"unevaluatedProperties": st.just(False)}),
        st.fixed_dictionaries({"anyOf": some}, optional={"oneOf": some}),
        st.fixed_dictionaries({"oneOf": some}),
        st.fixed_dictionaries({"not": below}),
        st.fixed_dictionaries({"if": below}, optional={"then": below, "else": below}),
        st.tuples(refs, below).map(lambda pair: {**pair[1], **pair[0]}),
    )


schemas = st.recursive(leaves | refs, schemas_of, max_leaves=8)
values: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([None, 1, "x", {}, []]),
    lambda below: (
        st.dictionaries(st.sampled_from("abc"), below, max_size=2) | st.lists(below, max_size=2)
    ),
    max_leaves=8,
)


@given(schemas, schemas, schemas, st.lists(values, min_size=1, max_size=6), st.integers(1, 12))
def test_whatever_is_valid_is_valid_by_what_is_sent(
    root: dict[str, Any], one: dict[str, Any], other: dict[str, Any], given: list[Any], size: int
) -> None:
    schema = {**root, "$defs": {"A": one, "B": other}}
    try:
        before = jsonschema_rs.validator_for(schema)
        valid = [value for value in given if before.is_valid(value)]
    except ValueError:  # a definition that only leads back to itself
        assume(False)
        return

    with pytest.MonkeyPatch.context() as patch:  # so that small schemas are cut as well
        patch.setattr(_inline_refs, "MAX_SCHEMAS", size)
        patch.setattr(_inline_refs, "MAX_FIRST_SCHEMAS", 3 * size)
        sent = inline_refs(schema)

    assert not has_refs(sent)
    for value in valid:
        assert jsonschema_rs.is_valid(sent, value)
