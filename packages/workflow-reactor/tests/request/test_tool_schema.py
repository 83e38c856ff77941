"""Schemas of every kind on their way to an endpoint, and values on their way back."""

import datetime as dt
import decimal
import enum
import json
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NotRequired, cast, get_args

import jsonschema_rs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypedDict

from workflow_reactor import (
    RESOLVE,
    Profile,
    ResultSchema,
    ToolDefinition,
    make_call,
    response_format,
)

STRICT_ENDPOINT = Profile(strict_schemas=True, union_at_root=False)
PLAIN_ENDPOINT = Profile(refs=False)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    """Only pydantic takes values of two types."""

    ONE = 1
    TWO = "two"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Cat(msgspec.Struct, tag=True):
    lives: int = 9


class Dog(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    name: str
    owner: str | None = None


class Scalars(msgspec.Struct):
    when: dt.datetime
    price: decimal.Decimal
    data: bytes
    id: uuid.UUID
    level: Level
    colour: Colour = Colour.RED
    ratio: float = 0.5
    on: bool = False


class Chain(msgspec.Struct):
    count: Annotated[int, msgspec.Meta(ge=0)]
    next: "Chain | None" = None


class Awkward(msgspec.Struct):
    """Fields with the names of keywords."""

    title: str
    default: int = 1
    ref: str = msgspec.field(name="$ref", default="")
    defs: list[int] = msgspec.field(name="$defs", default_factory=list[int])
    any_of: str = msgspec.field(name="anyOf", default="")
    properties: Literal["a", "b"] = "a"
    required: bool = False
    type: str = "t"
    enum: str = "e"


class Lion(pydantic.BaseModel):
    kind: Literal["lion"]
    mane: bool = True


class Zebra(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    kind: Literal["zebra"]
    stripes: Annotated[int, pydantic.Field(gt=0)] = 20
    herd: list["Zebra"] = []


class Zoo(pydantic.BaseModel):
    """What it has: unions by a tag, mixed constants, scalars."""

    star: Annotated[Lion | Zebra, pydantic.Field(discriminator="kind")]
    mixed: Mixed = Mixed.ONE
    price: decimal.Decimal = decimal.Decimal("1.5")
    when: dt.datetime | None = None
    day: dt.date = dt.date(2026, 1, 2)
    data: bytes = b""
    code: Annotated[str, pydantic.Field(min_length=2, pattern="^[a-z]+$")] = "ab"
    answer: Literal["yes", "no", 3] = "yes"


class Tree(pydantic.BaseModel):
    value: int
    children: list["Tree"] = []


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


@dataclass
class Plain:
    movie: Movie
    tags: list[str] = field(default_factory=list[str])
    best: Colour | None = None


WHEN = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
SCALARS = Scalars(WHEN, decimal.Decimal("1.50"), b"\x00\xff", uuid.UUID(int=7), Level.HIGH)
ZOO = Zoo(star=Zebra(kind="zebra", herd=[Zebra(kind="zebra", stripes=3)]), when=WHEN)

EXPRESSIBLE: list[tuple[Any, Any]] = [
    (str, "hi"),
    (int, 3),
    (float, 0.5),
    (bool, True),
    (type(None), None),
    (bytes, b"\x00\xff"),
    (dt.datetime, WHEN),
    (decimal.Decimal, decimal.Decimal("0.1")),
    (Literal["go", "stop"], "stop"),
    (Annotated[Literal["go", 3], pydantic.Field(description="what next")], 3),
    (Colour, Colour.BLUE),
    (int | str | None, None),
    (list[Cat], [Cat(1), Cat()]),
    (Cat | Dog, Dog("Rex")),
    (list[Cat | Dog | None], [Cat(3), None, Dog("Rex", "Ada")]),
    (Scalars, SCALARS),
    (Chain, Chain(1, Chain(2))),
    (Awkward, Awkward("t", ref="r", defs=[1], any_of="x", properties="b")),
    (Zoo, ZOO),
    (Lion | Zebra, Zebra(kind="zebra")),
    (Tree, Tree(value=1, children=[Tree(value=2, children=[Tree(value=3)])])),
    (list[Tree], [Tree(value=1)]),
    (Movie, {"title": "M"}),
    (Plain, Plain({"title": "M", "year": 1999}, best=Colour.RED)),
]
"""Types that have a strict form, with a value of each."""

INEXPRESSIBLE: list[tuple[Any, Any, str]] = [
    (dict[str, int], {"a": 1}, "any keys"),
    (tuple[int, str], (1, "a"), "prefixItems"),
    (list[Any], [1, "a"], "array of anything"),
    (Any, {"a": [None]}, "any type"),
    (dict[str, Chain], {"a": Chain(1)}, "any keys"),
    (list[dict[str, Tree]], [{"a": Tree(value=1)}], "any keys"),
]
"""Types that have none, with what stands in the way."""

names = st.sampled_from(["a", "b", "title", "default", "$ref", "anyOf", "properties", "type"])
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=2),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(names, each, max_size=3),
    max_leaves=8,
)


def _objects(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    @st.composite
    def build(draw: st.DrawFn) -> dict[str, Any]:
        properties = draw(st.dictionaries(names, below, max_size=3))
        required = [name for name in properties if draw(st.booleans())]
        node: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
        if draw(st.booleans()):
            node["additionalProperties"] = False
        return node

    return build()


_scalars: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 1, "default": "x", "title": "T"},
        {"type": ["integer", "null"], "minimum": -2},
        {"type": "integer", "description": "n"},
        {"type": "null"},
        {"type": "boolean"},
        {"enum": ["a", "b", 1, None]},
        {"const": "a"},
        {"$ref": "#/$defs/Node"},
        {"$ref": "#/$defs/Word", "description": "a word"},
    ]
)
_TAGGED: dict[str, Any] = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"kind": {"const": name}, "size": {"type": below}, "note": {"enum": [1]}},
            "required": ["kind"],
        }
        for name, below in (("a", "integer"), ("b", ["string", "null"]))
    ],
    "discriminator": {"propertyName": "kind"},
}
_nodes = st.recursive(
    _scalars,
    lambda below: (
        _objects(below)
        | below.map(lambda each: {"type": "array", "items": each})
        | st.lists(below, min_size=1, max_size=3).map(lambda each: {"anyOf": each})
        | below.map(lambda each: {"allOf": [each], "title": "one"})
        | st.just(_TAGGED)
    ),
    max_leaves=6,
)
_DEFINITIONS = {
    "Node": {
        "type": "object",
        "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}},
        "required": ["value"],
        "additionalProperties": False,
    },
    "Word": {"type": "string", "pattern": "^[ab]*$"},
}
object_schemas: st.SearchStrategy[dict[str, Any]] = _objects(_nodes).map(
    lambda each: {**each, "$defs": _DEFINITIONS}
)
"""Parameters of tools, as any library might write them."""


def sent(parameters: dict[str, Any], profile: Profile) -> tuple[dict[str, Any], bool]:
    """Parameters as they go out, and whether strictly."""
    tool = ToolDefinition(name="t", description="d", parameters=parameters)
    function = json.loads(tool.sent(profile))["function"]
    assert function.keys() - {"strict"} == {"name", "description", "parameters"}
    return function["parameters"], function.get("strict", False)


def schemas_in(node: Any) -> list[dict[str, Any]]:
    """Each schema in one, by its own reading of the keywords that hold schemas."""
    found = [node]
    for key in ("properties", "$defs", "patternProperties"):
        found += [each for below in node.get(key, {}).values() for each in schemas_in(below)]
    for key in ("items", "additionalProperties", "not"):
        if isinstance(node.get(key), dict):
            found += schemas_in(node[key])
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        found += [each for below in node.get(key, ()) for each in schemas_in(below)]
    return found


PUBLISHED = frozenset(
    [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "anyOf",
        "enum",
        "$ref",
        "$defs",
        "title",
        "description",
        "pattern",
        "format",
        "multipleOf",
        "maximum",
        "exclusiveMaximum",
        "minimum",
        "exclusiveMinimum",
        "minItems",
        "maxItems",
    ]
)


def assert_follows_the_published_rules(schema: dict[str, Any]) -> None:
    assert schema["type"] == "object"
    assert "anyOf" not in schema
    for node in schemas_in(schema):
        assert node.keys() <= PUBLISHED, node
        if "$ref" in node:
            assert node.keys() == {"$ref"}
        elif "anyOf" not in node:
            assert "type" in node, node
        if node.get("type") == "object":
            assert node["required"] == list(node["properties"])
            assert node["additionalProperties"] is False
        if node.get("type") == "array":
            assert "items" in node


def written_out(root: dict[str, Any], node: dict[str, Any], given: object) -> Any:
    """The value as a model in strict mode writes it: with null for each absent key."""
    value: Any = given
    if "$ref" in node:
        return written_out(root, root["$defs"][node["$ref"].rpartition("/")[2]], value)
    if "anyOf" in node:
        definitions = root.get("$defs", {})
        for each in node["anyOf"]:
            candidate = written_out(root, each, value)
            if jsonschema_rs.is_valid({**each, "$defs": definitions}, candidate):
                return candidate
        return value
    if isinstance(value, dict) and "properties" in node:
        fields = cast("dict[str, Any]", value)
        named = {
            name: written_out(root, below, fields[name]) if name in fields else None
            for name, below in node["properties"].items()
        }
        return {**fields, **named}
    if isinstance(value, list) and "items" in node:
        return [written_out(root, node["items"], each) for each in cast("list[Any]", value)]
    return given


def named(case: Any) -> str:
    name = case.__name__ if isinstance(case, type) and not get_args(case) else str(case)
    return name.replace(f"{__name__}.", "")


@pytest.mark.parametrize(("type_", "value"), EXPRESSIBLE, ids=named)
def test_a_strict_schema_follows_the_rules_and_its_values_come_back(type_: Any, value: Any) -> None:
    result = ResultSchema(type_)
    function = json.loads(result.tool().sent(STRICT_ENDPOINT))["function"]
    assert function["strict"] is True
    assert_follows_the_published_rules(function["parameters"])

    bare = json.loads(result.schema.encode(value))
    given = {"value": bare} if result.wrapped else bare
    as_written = written_out(function["parameters"], function["parameters"], given)
    assert jsonschema_rs.is_valid(function["parameters"], as_written)
    call = make_call(RESOLVE, json.dumps(as_written), round=0, index=0)
    assert result.read_call(call).value == value
    assert result.read_text(json.dumps(as_written)).value == value


@pytest.mark.parametrize(("type_", "value", "reason"), INEXPRESSIBLE, ids=named)
def test_what_has_no_strict_form_is_sent_as_it_is(type_: Any, value: Any, reason: str) -> None:
    del reason
    result = ResultSchema(type_)
    function = json.loads(result.tool().sent(STRICT_ENDPOINT))["function"]

    assert "strict" not in function
    assert function["parameters"] == result.json_schema
    bare = json.loads(result.schema.encode(value))
    given = json.dumps({"value": bare} if result.wrapped else bare)
    assert result.read_call(make_call(RESOLVE, given, round=0, index=0)).value == value


@pytest.mark.parametrize("type_", [each[0] for each in [*EXPRESSIBLE, *INEXPRESSIBLE]], ids=named)
def test_the_root_is_an_object_for_every_kind_of_endpoint(type_: Any) -> None:
    tool = ResultSchema(type_).tool()
    for strict in (True, False):
        for refs in (True, False):
            profile = Profile(strict_schemas=strict, refs=refs)
            parameters = json.loads(tool.sent(profile))["function"]["parameters"]
            assert parameters["type"] == "object"
            assert not parameters.keys() & {"anyOf", "oneOf", "allOf", "$ref"}
            if not refs:
                assert not any("$ref" in node or "$defs" in node for node in schemas_in(parameters))


def test_an_optional_key_takes_null_and_keeps_its_description() -> None:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "path": {"type": "string", "minLength": 1},
            "limit": {"type": "integer", "default": 9, "minimum": 1, "description": "lines"},
            "mode": {"enum": ["r", "w"], "description": "how"},
            "edit": {"$ref": "#/$defs/Edit", "description": "what"},
            "key": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "required": ["path"],
        "$defs": {"Edit": {"type": "object", "properties": {"new": {"type": "string"}}}},
    }
    assert sent(parameters, STRICT_ENDPOINT) == (
        {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": ["integer", "null"], "minimum": 1, "description": "lines"},
                "mode": {
                    "description": "how",
                    "anyOf": [{"type": "string", "enum": ["r", "w"]}, {"type": "null"}],
                },
                "edit": {"anyOf": [{"$ref": "#/$defs/Edit"}, {"type": "null"}]},
                "key": {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]},
            },
            "required": ["path", "limit", "mode", "edit", "key"],
            "additionalProperties": False,
            "$defs": {
                "Edit": {
                    "type": "object",
                    "properties": {"new": {"type": ["string", "null"]}},
                    "required": ["new"],
                    "additionalProperties": False,
                }
            },
        },
        True,
    )


@pytest.mark.parametrize(
    "below",
    [
        {},
        {"type": "object"},
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {"type": "null"}}, "required": ["b"]},
        {"type": "object", "patternProperties": {"^x": {"type": "string"}}},
        {"type": "array"},
        {"type": "array", "prefixItems": [{"type": "string"}]},
        {"allOf": [{"minimum": 1}, {"type": "integer"}]},
        {"type": "string", "if": {"const": "a"}, "then": {"minLength": 1}},
        {"enum": [[1]]},
        {"$ref": "#/properties/a", "minLength": 3},
        {"anyOf": [{"required": ["a"]}], "properties": {"a": {"type": "null"}}},
        {"type": "string", "enum": [f"{n:0>50}" for n in range(400)]},
        {"enum": list(range(1001))},
        {
            "type": "object",
            "properties": {f"p{n}": {"type": "null"} for n in range(5001)},
            "required": [],
        },
    ],
    ids=lambda each: json.dumps(each)[:50],
)
def test_a_part_without_a_strict_form_makes_the_whole_lax(below: dict[str, Any]) -> None:
    parameters = {"type": "object", "properties": {"a": {"type": "string"}, "b": below}}

    assert sent(parameters, STRICT_ENDPOINT) == (parameters, False)


def test_objects_may_nest_ten_levels() -> None:
    def nested(levels: int) -> dict[str, Any]:
        node: dict[str, Any] = {"type": "string"}
        for _ in range(levels):
            node = {"type": "object", "properties": {"in": node}, "required": ["in"]}
        return node

    assert sent(nested(10), STRICT_ENDPOINT)[1]
    assert not sent(nested(11), STRICT_ENDPOINT)[1]


def test_definitions_of_older_drafts_and_lookaround_don_t_stop_strict_mode() -> None:
    schema, strict = sent(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "a": {"$ref": "#/definitions/A"},
                "b": {"type": "string", "pattern": "^(?!x)", "format": "uri"},
                "c": {"allOf": [{"type": "string", "pattern": "^c"}], "title": "C"},
            },
            "required": ["a", "b", "c"],
            "definitions": {"A": {"type": ["string", "number"]}},
        },
        STRICT_ENDPOINT,
    )
    assert strict
    assert schema["$defs"] == {"A": {"anyOf": [{"type": "string"}, {"type": "number"}]}}
    assert schema["properties"] == {
        "a": {"$ref": "#/$defs/A"},
        "b": {"type": "string"},
        "c": {"type": "string", "pattern": "^c", "title": "C"},
    }


def test_recursion_is_written_out_three_times_and_then_named() -> None:
    parameters = ResultSchema(Chain).json_schema
    schema, _ = sent(parameters, PLAIN_ENDPOINT)

    node: dict[str, Any] = schema
    for _ in range(4):
        (node,) = [each for each in node["properties"]["next"]["anyOf"] if each != {"type": "null"}]
    (stub,) = [each for each in node["properties"]["next"]["anyOf"] if each != {"type": "null"}]
    assert stub == {"type": "object", "description": "another Chain"}


def test_a_schema_that_explodes_when_written_out_is_cut() -> None:
    definitions: dict[str, Any] = {
        f"L{n}": {
            "type": "object",
            "properties": {key: {"$ref": f"#/$defs/L{n + 1}"} for key in "abcd"},
        }
        for n in range(12)
    }
    definitions["L12"] = {"type": "string"}
    parameters = {
        "type": "object",
        "properties": {"top": {"$ref": "#/$defs/L0"}},
        "$defs": definitions,
    }
    schema, _ = sent(parameters, PLAIN_ENDPOINT)

    assert len(schemas_in(schema)) < 10_000
    assert not any("$ref" in node for node in schemas_in(schema))


def test_a_description_beside_a_reference_survives_writing_it_out() -> None:
    parameters: dict[str, Any] = {
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/W", "description": "which"},
            "b": {"$ref": "#/$defs/W", "minLength": 2},
            "c": {"$ref": "#/properties/a"},
        },
        "$defs": {"W": {"type": "string", "minLength": 1, "description": "a word"}},
    }
    assert sent(parameters, PLAIN_ENDPOINT)[0]["properties"] == {
        "a": {"type": "string", "minLength": 1, "description": "which"},
        "b": {
            "allOf": [{"type": "string", "minLength": 1, "description": "a word"}, {"minLength": 2}]
        },
        "c": {"type": "string", "minLength": 1, "description": "which"},
    }


def test_a_union_of_turns_is_one_object_where_no_root_may_be_a_union() -> None:
    turns = {
        "anyOf": [
            {
                "type": "object",
                "properties": {"tool": {"const": name}, "args": args},
                "required": ["tool", "args"],
                "additionalProperties": False,
            }
            for name, args in (
                ("add", {"type": "object", "properties": {"a": {"type": "integer"}}}),
                ("say", {"type": "object", "properties": {"text": {"type": "string"}}}),
            )
        ]
    }
    assert response_format(turns, Profile()) == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": turns},
    }
    asked = response_format(turns, STRICT_ENDPOINT)
    assert asked is not None
    assert asked["json_schema"]["strict"] is True
    schema = asked["json_schema"]["schema"]
    assert_follows_the_published_rules(schema)
    assert schema["properties"]["tool"] == {"type": "string", "enum": ["add", "say"]}
    assert len(schema["properties"]["args"]["anyOf"]) == 2


def test_a_reply_s_schema_is_sent_as_far_as_the_endpoint_takes_it() -> None:
    schema = ResultSchema(Tree).json_schema

    strict = response_format(schema, STRICT_ENDPOINT)
    assert strict is not None
    assert_follows_the_published_rules(strict["json_schema"]["schema"])
    assert response_format(schema, Profile(response_format="json_object")) == {
        "type": "json_object"
    }
    assert response_format(schema, Profile(response_format="none")) is None


def test_each_form_of_a_tool_is_encoded_once() -> None:
    tool = ResultSchema(Zoo).tool()

    for profile in (STRICT_ENDPOINT, PLAIN_ENDPOINT, Profile()):
        assert tool.sent(profile) is tool.sent(profile)
    assert tool.json is tool.sent(Profile())


@st.composite
def schemas_with_values(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    schema = draw(object_schemas)
    return schema, draw(values_of(schema, schema))


def values_of(root: dict[str, Any], node: dict[str, Any], depth: int = 3) -> st.SearchStrategy[Any]:
    """Values that fit one of these schemas."""
    if "$ref" in node:
        return values_of(root, root["$defs"][node["$ref"].rpartition("/")[2]], depth - 1)
    if "anyOf" in node or "oneOf" in node:
        options = node.get("anyOf") or node["oneOf"]
        return st.one_of([values_of(root, each, depth) for each in options])
    if "allOf" in node:
        return values_of(root, node["allOf"][0], depth)
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if "const" in node:
        return st.just(node["const"])
    match node["type"]:
        case "object":
            required = {
                name: values_of(root, below, depth)
                for name, below in node["properties"].items()
                if name in node["required"]
            }
            optional = {
                name: values_of(root, below, depth)
                for name, below in node["properties"].items()
                if name not in node["required"] and depth > 0
            }
            return st.fixed_dictionaries(required, optional=optional)
        case "array":
            return st.lists(values_of(root, node["items"], depth - 1), max_size=2)
        case "string":
            return st.text("ab", min_size=1, max_size=3)
        case "integer":
            return st.integers(-2, 3)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
        case ["string", "null"]:
            return st.none() | st.text("ab", max_size=3)
        case _:
            return st.none() | st.integers(-2, 3)


@given(schemas_with_values())
def test_any_valid_value_survives_strict_mode(case: tuple[dict[str, Any], Any]) -> None:
    parameters, value = case
    tool = ToolDefinition(name="t", description="", parameters=parameters)
    schema, strict = sent(parameters, STRICT_ENDPOINT)
    assert strict
    assert_follows_the_published_rules(schema)

    as_written = written_out(schema, schema, value)
    assert jsonschema_rs.is_valid(schema, as_written)
    received = tool.receive(make_call("t", json.dumps(as_written), round=0, index=0))
    assert received.fault == ""
    assert tool.receive(received) == received
    as_is = tool.receive(make_call("t", json.dumps(value), round=0, index=0))
    assert as_is.fault == ""
    assert json.loads(as_is.arguments) == value


@given(schemas_with_values())
def test_any_valid_value_fits_what_is_sent_to_an_endpoint_without_references(
    case: tuple[dict[str, Any], Any],
) -> None:
    parameters, value = case
    schema, strict = sent(parameters, PLAIN_ENDPOINT)

    assert not strict
    assert not any("$ref" in node or "$defs" in node for node in schemas_in(schema))
    assert jsonschema_rs.is_valid(schema, value)
    assert schema["properties"].keys() == parameters["properties"].keys()


@given(object_schemas, json_values)
def test_a_fault_is_told_exactly_when_the_schema_says_so(
    parameters: dict[str, Any], value: Any
) -> None:
    tool = ToolDefinition(name="t", description="", parameters=parameters)
    call = make_call("t", json.dumps(value), round=0, index=0)

    received = tool.receive(call)
    if not call.fault:
        valid = jsonschema_rs.is_valid(parameters, json.loads(received.arguments))
        assert (received.fault == "") == valid
        if jsonschema_rs.is_valid(parameters, value):
            assert json.loads(received.arguments) == value
