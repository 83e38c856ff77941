"""Unions that contain themselves: pydantic tries each member in each member."""

import json
from typing import Annotated, Literal, Union

import msgspec
import pytest
from pydantic import BaseModel, Field

from workflow_protocol import SchemaMismatch, schema_of


class A(BaseModel):
    kind: Literal["a"] = "a"
    next: Union["A", "B", "C", "D", None] = None


class B(BaseModel):
    kind: Literal["b"] = "b"
    next: Union["A", "B", "C", "D", None] = None


class C(BaseModel):
    items: list[Union["A", "B", "C", "D"]]


class D(BaseModel):
    kind: Literal["d"]
    next: Union["A", "B", "C", "D", None] = None


class TaggedA(BaseModel):
    kind: Literal["a"]
    next: "Tagged | None" = None


class TaggedB(BaseModel):
    kind: Literal["b"]
    next: "Tagged | None" = None


class Left(msgspec.Struct, tag=True):
    next: "Left | Right | None" = None
    way: Literal["north", "south"] = "north"


class Right(msgspec.Struct, tag=True):
    next: "Left | Right | None" = None
    way: Literal["north", "south"] = "north"


Tagged = Annotated[TaggedA | TaggedB, Field(discriminator="kind")]
for model in (A, B, C, D, TaggedA, TaggedB):
    model.model_rebuild()


def nested(levels: int, bottom: object, kind: str = "") -> str:
    begin = f'{{"kind": "{kind}", "next": ' if kind else '{"next": '
    return begin * levels + json.dumps(bottom) + "}" * levels


@pytest.mark.timeout(20)  # 4 to the power of 40 would be some more
@pytest.mark.parametrize("bottom", [5, {}, None])
@pytest.mark.parametrize("levels", [20, 40, 190, 5_000])
def test_a_value_that_would_be_tried_without_end_is_refused(levels: int, bottom: object) -> None:
    with pytest.raises(SchemaMismatch, match="nested too deeply"):
        schema_of(A).validate_json(nested(levels, bottom))


def test_the_refusal_says_what_would_help() -> None:
    with pytest.raises(SchemaMismatch, match="in forms that no tag tells apart; nest it less"):
        schema_of(A).validate_json(nested(20, 5))


def test_a_value_of_some_levels_is_validated_as_ever() -> None:
    value = schema_of(A).validate_json(nested(4, {"kind": "b"}, kind="a"))

    assert isinstance(value.next, A)
    with pytest.raises(SchemaMismatch, match=r"\$\.next\.next\.next"):
        schema_of(A).validate_json(nested(3, 5))


def test_with_a_tag_a_value_may_be_as_deep_as_any() -> None:
    value = schema_of(TaggedA).validate_json(nested(100, None, kind="a"))

    assert isinstance(value.next, TaggedA)


@pytest.mark.timeout(20)
def test_the_choices_of_a_wrong_constant_are_found_in_any_depth() -> None:
    value = schema_of(Left | Right)
    text = '{"type": "Left", "next": ' * 40 + '{"type": "Left", "way": "up"}' + "}" * 40

    with pytest.raises(SchemaMismatch, match='expected "north" or "south", got'):
        value.validate_json(text)


def test_a_list_of_very_many_is_no_depth() -> None:
    value = schema_of(C).validate_json(json.dumps({"items": [{"kind": "a"}] * 1000}))

    assert len(value.items) == 1000
