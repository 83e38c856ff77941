"""JSON that a model wrote as a string."""

import json
import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor import unfold_json

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "items": {"type": "array", "items": {"$ref": "#"}},
        "map": {"type": "object", "additionalProperties": {"$ref": "#"}},
        "maybe": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"$ref": "#"}]},
        "n": {"type": "number"},
        "text": {"type": "string"},
        "either": {"anyOf": [{"type": "string"}, {"type": "array"}]},
        "free": {},
        "note": {"type": "string"},
    },
    "additionalProperties": False,
}
PATTERNS: dict[str, Any] = {
    "properties": {"c": {"type": "array"}},
    "patternProperties": {"^a[0-9]$": {"type": "array"}, "^(c+)+$": {}},
}
SHAPES: dict[str, Any] = {
    "anyOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": "a"}, "v": {"type": "array"}},
            "required": ["kind"],
        },
        {
            "type": "object",
            "properties": {"kind": {"const": "b"}, "v": {"type": "string"}},
            "required": ["kind"],
        },
    ]
}


READ: list[tuple[dict[str, Any], Any, Any]] = [
    (TREE, {"items": '[{"n": 1}]'}, {"items": [{"n": 1}]}),
    (TREE, {"items": ['{"n": 1}']}, {"items": [{"n": 1}]}),
    (TREE, {"items": ' [{"items": "[{}]"}]\n'}, {"items": [{"items": [{}]}]}),
    (TREE, {"items": json.dumps("[]")}, {"items": []}),
    (TREE, {"map": {"k": "{}"}}, {"map": {"k": {}}}),
    (TREE, {"maybe": "{}"}, {"maybe": {}}),
    (TREE, {"pair": ["[]", "{}"]}, {"pair": ["[]", {}]}),
    (TREE, {"items": '[{"note": null, "n": 1}]'}, {"items": [{"n": 1}]}),
    (TREE, json.dumps({"n": 1}), {"n": 1}),
    (PATTERNS, {"a1": "[1]", "b": "[1]", "c": "[1]"}, {"a1": [1], "b": "[1]", "c": [1]}),
    (SHAPES, {"kind": "a", "v": "[1]"}, {"kind": "a", "v": [1]}),
]


@pytest.mark.parametrize(("schema", "value", "meant"), READ)
def test_an_object_or_array_that_is_due_is_read_out_of_a_string(
    schema: dict[str, Any], value: Any, meant: Any
) -> None:
    unfolded = unfold_json(schema, json.dumps(value))

    assert unfolded is not None
    assert json.loads(unfolded) == meant


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (TREE, {"text": "[1]", "either": "[1]", "free": "{}"}),
        (TREE, {"items": "none", "maybe": "null", "n": "1"}),
        (TREE, {"items": "{}"}),  # not what is due
        (TREE, {"items": "[1"}),
        (TREE, {"unknown": "[]"}),
        (SHAPES, {"kind": "b", "v": "[1]"}),
        (SHAPES, {"kind": "c", "v": "[1]"}),
    ],
)
def test_where_a_string_may_stand_or_nothing_better_is_in_it_it_stays(
    schema: dict[str, Any], value: Any
) -> None:
    assert unfold_json(schema, json.dumps(value)) is None


def test_numbers_and_all_around_stay_as_they_were_written() -> None:
    text = '{"n": 1.10 , "items": "[{\\"n\\": 12345678901234567.89}]"}'

    assert unfold_json(TREE, text) == '{"n": 1.10 , "items": [{"n": 12345678901234567.89}]}'


leaves: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {}, optional={"n": st.integers(), "text": st.text(max_size=3)}
)


def below_of(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries(
        {},
        optional={
            "items": st.lists(below, max_size=2),
            "map": st.dictionaries(st.sampled_from("ab"), below, max_size=2),
            "maybe": below,
            "either": st.sampled_from(["[1]", "x"]),
            "free": st.sampled_from(["{}", [1]]),
        },
    )


@given(st.recursive(leaves, below_of, max_leaves=8), st.data())
def test_whatever_is_folded_is_found_again(tree: Any, data: st.DataObject) -> None:
    def folded(value: dict[str, Any], level: int) -> dict[str, Any]:
        inner: dict[str, Any] = {}
        for key, each in value.items():
            new: Any = each
            if key == "items":
                new = [folded(item, level + 1) for item in each]
            elif key == "map":
                new = {name: folded(item, level + 1) for name, item in each.items()}
            elif key == "maybe":
                new = folded(each, level + 1)
            if key in {"items", "map", "maybe"} and level < 3 and data.draw(st.booleans()):
                new = json.dumps(new)
            inner[key] = new
        return inner

    text = json.dumps(folded(tree, 0))
    assert json.loads(unfold_json(TREE, text) or text) == tree
    assert jsonschema_rs.is_valid(TREE, tree)


def test_the_work_is_bounded_for_unions_that_contain_themselves() -> None:
    option = {
        "type": "object",
        "properties": {"below": {"$ref": "#/$defs/A"}, "x": {"type": "array"}},
    }
    schema = {"$defs": {"A": {"anyOf": [dict(option) for _ in range(8)]}}, "$ref": "#/$defs/A"}
    value: Any = {"x": "[]"}
    for _ in range(60):
        value = {"below": value, "x": "[]"}
    started = time.perf_counter()

    unfolded = unfold_json(schema, json.dumps(value))

    assert unfolded is not None
    assert '"[]"' not in unfolded
    assert time.perf_counter() - started < 2
