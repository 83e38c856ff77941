import json
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pydantic
import pytest

from workflow_protocol import SchemaMismatch
from workflow_reactor import RESOLVE, ResultSchema, make_call


@dataclass
class Item:
    n: int


class A(msgspec.Struct, tag=True):
    a: int


class B(msgspec.Struct, tag=True):
    b: int


class Tree(pydantic.BaseModel):
    value: int
    children: list["Tree"] = []


CASES: list[tuple[Any, Any, str]] = [
    (str, "hi", '"hi"'),
    (int, 3, "3"),
    (list[Item], [Item(1)], '[{"n": 1}]'),
    (Literal["go", "stop"], "go", '"go"'),
    (A | B, B(2), '{"type": "B", "b": 2}'),
    (None, None, "null"),
]


@pytest.mark.parametrize(("type_", "value", "text"), CASES, ids=lambda each: str(each)[:20])
def test_a_type_that_is_no_object_is_wrapped_and_unwrapped(
    type_: Any, value: Any, text: str
) -> None:
    result = ResultSchema(type_)
    parameters = result.tool().parameters

    assert parameters["type"] == "object"
    assert not parameters.keys() & {"anyOf", "oneOf", "$ref"}
    assert result.read_json(f'{{"value": {text}}}').value == value


@pytest.mark.parametrize(("type_", "value", "text"), CASES, ids=lambda each: str(each)[:20])
def test_the_bare_value_is_accepted_from_a_careless_model(
    type_: Any, value: Any, text: str
) -> None:
    result = ResultSchema(type_)
    call = make_call(RESOLVE, text, round=0, index=0)

    assert result.read_call(call).value == value
    assert result.read_text(f"```json\n{text}\n```" if text[0] in "{[" else text).value == value


class Holder(msgspec.Struct, tag=True):
    value: int


def test_a_bare_object_with_the_wrapping_s_own_key_is_still_understood() -> None:
    result = ResultSchema(Holder | B)
    bare = '{"type": "Holder", "value": 1}'

    assert result.read_json(bare).value == Holder(1)
    assert result.read_json(f'{{"value": {bare}}}').value == Holder(1)
    assert ResultSchema(dict[str, int]).read_json('{"value": 1}').value == {"value": 1}
    assert ResultSchema(dict[str, int] | None).read_json('{"value": 1}').value == {"value": 1}
    with pytest.raises(
        SchemaMismatch, match=r"\$\.value: expected an object or null, got a string"
    ):
        ResultSchema(dict[str, int] | None).read_json('{"value": "x"}')


@pytest.mark.parametrize(
    ("type_", "arguments", "value"),
    [
        (str, "all is well", "all is well"),
        (Literal["go", "stop"], "stop", "stop"),
        (int | str, "3", 3),
        (int | str, "three", "three"),
        (type(None), None, None),
    ],
)
def test_text_that_is_no_json_is_a_string_where_one_is_wanted(
    type_: Any, arguments: object, value: Any
) -> None:
    call = make_call(RESOLVE, arguments, round=0, index=0)

    assert ResultSchema(type_).read_call(call).value == value


@pytest.mark.parametrize(
    ("type_", "arguments"),
    [(str, '{"value": "x'), (str, '"x'), (str, "[x"), (str, '{"value": "x"} {'), (int, "three")],
)
def test_broken_json_is_no_string(type_: Any, arguments: str) -> None:
    with pytest.raises(SchemaMismatch):
        ResultSchema(type_).read_call(make_call(RESOLVE, arguments, round=0, index=0))


def test_text_that_was_cut_off_is_no_string() -> None:
    call = make_call(RESOLVE, "all is w", round=0, index=0, cut=True)

    with pytest.raises(SchemaMismatch, match="cut off"):
        ResultSchema(str).read_call(call)


@pytest.mark.parametrize("type_", [int | None, str, list[int]])
@pytest.mark.parametrize("arguments", [None, "", "{}"])
def test_no_arguments_are_no_value(type_: Any, arguments: object) -> None:
    with pytest.raises(SchemaMismatch):
        ResultSchema(type_).read_call(make_call(RESOLVE, arguments, round=0, index=0))


def test_an_object_is_offered_as_it_is() -> None:
    result = ResultSchema(Tree)
    call = make_call(RESOLVE, '{"value": 1, "children": [{"value": 2}]}', round=0, index=0)

    assert not result.wrapped or "$defs" in result.json_schema
    assert result.read_call(call).value == Tree(value=1, children=[Tree(value=2)])
    assert json.loads(result.tool().json)["function"]["name"] == "resolve"


@pytest.mark.parametrize(
    ("type_", "arguments", "reason"),
    [
        (Item, '{"n": "x"}', r"\$.n: expected an integer, got a string"),
        (Item, "[1]", "must be a JSON object"),
        (Item, '{"n": 1, "n": 2}', "stands twice"),
        (int, '{"value": "x"}', r"\$.value: expected an integer"),
        (int, '{"n": 1}', "the one key 'value'"),
        (int, '"x"', "must be a JSON object"),
        (str, '{"value": "a', "cut off"),
    ],
)
def test_a_misfit_says_what_is_wrong(type_: Any, arguments: str, reason: str) -> None:
    with pytest.raises(SchemaMismatch, match=reason):
        ResultSchema(type_).read_call(make_call(RESOLVE, arguments, round=0, index=0))


def test_text_without_a_value_is_a_misfit() -> None:
    with pytest.raises(SchemaMismatch, match="not one JSON value"):
        ResultSchema(Item).read_text("I don't know")
