"""Schemas in words."""

from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from workflow_protocol import (
    END,
    START,
    JsonObject,
    RoleDefinition,
    WorkflowDefinition,
    describe,
)
from workflow_register import SchemaField, schema_fields


class Phase(BaseModel):
    title: Annotated[str, Field(min_length=1, max_length=300, description="one sentence")]
    kind: Literal["build", "test"]


class Tree(BaseModel):
    name: str
    kids: list["Tree"] = []


class Plan(BaseModel):
    zeta: int = Field(3, ge=0, lt=10)
    phases: list[Phase] = Field(min_length=1)
    by_name: dict[str, Phase] = {}
    maybe: Phase | None = None
    tree: Tree
    pair: tuple[int, str] = (1, "x")
    raw: Any = None


def schema_of(type: Any) -> JsonObject:
    """The schema as a description has it."""
    role = RoleDefinition(name="r", system_prompt="p", schema=type)
    definition = WorkflowDefinition(description="d", table={START: role, role: END})
    return describe(definition).roles["r"].schema


def lines(schema: JsonObject) -> list[str]:
    return [
        " | ".join([each.path, each.type, each.rules]) + ("" if each.required else " | optional")
        for each in schema_fields(schema)
    ]


def test_fields_are_in_their_order_with_what_they_may_hold() -> None:
    assert lines(schema_of(Plan)) == [
        "zeta | integer | ≥ 0; < 10; default 3 | optional",
        "phases | list of Phase | at least 1 items",
        "phases[].title | string | 1 to 300 characters",
        'phases[].kind | "build" or "test" | ',
        "by_name | object of Phase | default {} | optional",
        "by_name.*.title | string | 1 to 300 characters",
        'by_name.*.kind | "build" or "test" | ',
        "maybe | Phase or null | default null | optional",
        "maybe.title | string | 1 to 300 characters",
        'maybe.kind | "build" or "test" | ',
        "tree | Tree | ",
        "tree.name | string | ",
        "tree.kids | list of Tree | default [] | optional",
        'pair | [integer, string] | exactly 2 items; default [1, "x"] | optional',
        "raw | anything | default null | optional",
    ]
    (title,) = [each for each in schema_fields(schema_of(Phase)) if each.path == "title"]
    assert title == SchemaField(
        path="title",
        type="string",
        required=True,
        rules="1 to 300 characters",
        description="one sentence",
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string"}, [" | string | "]),
        ({}, [" | anything | "]),
        ({"enum": list(range(20))}, [f" | {' or '.join(map(str, range(12)))} or 8 others | "]),
        ({"type": ["string", "null"], "pattern": "^a"}, [" | string or null | pattern ^a"]),
        ({"type": "array", "uniqueItems": True}, [" | list | no item twice"]),
        ({"type": "array", "items": {"type": "object", "properties": {"x": {"const": 1}}}},
         [" | list of object | ", "[].x | 1 |  | optional"]),
        ({"$ref": "#/nowhere"}, [" | anything | "]),
        ({"$ref": "#"}, [" | anything | "]),
        ({"properties": {"x": False, "y": True}},
         ["x | nothing |  | optional", "y | anything |  | optional"]),
        ({"type": "object", "maxProperties": 3, "additionalProperties": {"type": "integer"}},
         [" | object of integer | at most 3 entries"]),
    ],
)  # fmt: skip
def test_each_form_of_a_schema_has_words(schema: JsonObject, expected: list[str]) -> None:
    assert lines(schema) == expected


def test_schemas_that_multiply_are_cut() -> None:
    definitions: dict[str, object] = {}
    for number in range(40):
        below = {"$ref": f"#/$defs/d{number + 1}"}
        definitions[f"d{number}"] = {"anyOf": [below, {"items": below}]}
    wide = {f"f{n}": {"type": "string"} for n in range(500)}
    assert len(schema_fields({"type": "object", "properties": wide})) == 200
    assert len(schema_fields({"$ref": "#/$defs/d0", "$defs": definitions})) == 1
    deep: JsonObject = {"type": "string"}
    for _ in range(50):
        deep = {"type": "object", "properties": {"x": deep}}
    assert [each.path for each in schema_fields(deep)][-1] == ".".join("x" * 7)
