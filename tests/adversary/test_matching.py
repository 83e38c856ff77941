"""Fitting a value to a schema is bounded by their sizes, also where unions contain themselves."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from workflow_protocol import JsonObject
from workflow_reactor import (
    Profile,
    ResultSchema,
    ToolDefinition,
    ToolSchemaError,
    make_call,
    response_format,
)

from .tool_schemas import PROFILES
from .work import lines_run

NODE = {"$ref": "#/$defs/Node"}


def member(number: int, tag: JsonObject, **more: Any) -> JsonObject:
    properties = {"tag": tag, f"k{number}": {"type": "integer"}, "next": NODE}
    items = {"type": "array", "items": NODE}
    return {"type": "object", "properties": {**properties, "items": items}, **more}


def union(keyword: str, members: list[JsonObject]) -> JsonObject:
    node: JsonObject = {keyword: [*members, {"type": "string"}]}
    return {"type": "object", "properties": {"root": NODE}, "$defs": {"Node": node}}


KINDS: dict[str, Callable[[int], JsonObject]] = {
    "nothing tells them apart": lambda i: member(i, {}),
    "constants": lambda i: member(i, {"const": f"t{i}"}),
    "enums": lambda i: member(i, {"enum": [f"t{i}", f"s{i}"]}),
    "required keys": lambda i: member(i, {}, required=[f"k{i}"]),
    "closed": lambda i: member(i, {}, additionalProperties=False),
    "parts": lambda i: {"allOf": [member(i, {}), {"properties": {"next": NODE}}]},
}
SCHEMAS = {
    f"{keyword}, {kind}": union(keyword, [make(i) for i in range(5)])
    for keyword, (kind, make) in itertools.product(("anyOf", "oneOf"), KINDS.items())
} | {
    "all": union("allOf", [member(i, {}) for i in range(3)]),
    "defined one by one": {
        "type": "object",
        "properties": {"root": {"anyOf": [{"$ref": f"#/$defs/N{i}"} for i in range(5)]}},
        "$defs": {
            f"N{i}": member(i, {"const": f"t{i}"})
            | {"properties": {"next": {"oneOf": [{"$ref": f"#/$defs/N{j}"} for j in range(5)]}}}
            for i in range(5)
        },
    },
}


def deep(levels: int, bottom: object) -> object:
    value = bottom
    for level in range(levels):
        value = {"tag": f"t{level % 5}", f"k{level % 5}": None, "next": value}
    return value


def wide(size: int, bottom: object) -> object:
    return {"tag": "t1", "items": [{"tag": "t2", "k2": None}] * size + [bottom]}


def broad(size: int, bottom: object) -> object:
    """An object with many keys, which hold JSON as strings."""
    return {"tag": "t1", "next": bottom} | {f"z{number}": "[1]" for number in range(4 * size)}


def folded(size: int, bottom: object) -> object:
    """Parts that are strings of JSON, in each of which there are more."""
    value = bottom
    for _ in range(5):
        inner = json.dumps({"tag": "t0", "next": value})
        value = {"tag": "t1", "items": [inner] + ["{}"] * size, "next": inner}
    return value


def called(schema: JsonObject, value: object) -> Callable[[], object]:
    tool = ToolDefinition(name="f", description="", parameters=schema)
    call = make_call("f", json.dumps({"root": value}), round=0, index=0)
    return lambda: tool.receive(call)


MORE: list[object] = [5, "x", []]
BOTTOMS = [None, {"k1": "x"}, *(pytest.param(each, marks=pytest.mark.slow) for each in MORE)]


@pytest.mark.timeout(30)  # 5 to the power of 32 takes longer
@pytest.mark.parametrize("bottom", BOTTOMS, ids=str)
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_work_grows_with_the_value_and_not_with_its_power(
    schema: JsonObject, bottom: object
) -> None:
    for make in (deep, wide, broad, folded):
        few, many = (lines_run(called(schema, make(size, bottom))) for size in (8, 32))

        assert many < 8 * few + 1000


@pytest.mark.timeout(30)
@pytest.mark.parametrize("levels", [10, 60, 100, 199, 5_000])
@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=list(SCHEMAS))
def test_no_depth_is_an_untyped_error(schema: JsonObject, levels: int) -> None:
    text = '{"root": ' + '{"next": ' * levels + "null" + "}" * levels + "}"
    tool = ToolDefinition(name="f", description="", parameters=schema)

    received = tool.receive(make_call("f", text, round=0, index=0))

    assert json.loads(received.arguments or "{}") is not None


def test_nulls_go_by_the_member_that_a_value_belongs_to() -> None:
    schema = {
        "type": "object",
        "properties": {"root": NODE},
        "$defs": {
            "Node": {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"tag": {"const": "a"}, "x": {"type": ["integer", "null"]}},
                        "required": ["tag"],
                    },
                    {
                        "type": "object",
                        "properties": {"tag": {"const": "b"}, "x": {"type": "integer"}},
                        "required": ["tag"],
                    },
                ]
            }
        },
    }
    tool = ToolDefinition(name="f", description="", parameters=schema)

    def kept(tag: str) -> object:
        arguments = json.dumps({"root": {"tag": tag, "x": None}})
        received = tool.receive(make_call("f", arguments, round=0, index=0))
        return received.fault or json.loads(received.arguments)["root"]

    assert kept("a") == {"tag": "a", "x": None}
    assert kept("b") == {"tag": "b"}


def multiplied(keyword: str, levels: int, *, by_name: bool = False) -> JsonObject:
    """Each definition applies the next one twice to the same value: 2 ** levels in all."""
    definitions: JsonObject = {}
    for level in range(levels):
        ref = {"$ref": f"#n{level + 1}" if by_name else f"#/$defs/D{level + 1}"}
        both: Any = [ref, ref] if keyword != "dependentSchemas" else {"a": ref, "b": ref}
        definitions[f"D{level}"] = {keyword: both, **({"$anchor": f"n{level}"} if by_name else {})}
    last = {"type": "integer", **({"$anchor": f"n{levels}"} if by_name else {})}
    definitions[f"D{levels}"] = last
    first = {"$ref": "#n0" if by_name else "#/$defs/D0"}
    return {"type": "object", "properties": {"a": first}, "$defs": definitions}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf", "dependentSchemas"])
def test_a_schema_whose_references_multiply_is_refused(
    keyword: str, by_name: bool, validated: bool
) -> None:
    with pytest.raises(ToolSchemaError, match="its references multiply"):
        ToolDefinition(
            name="f",
            description="",
            parameters=multiplied(keyword, 40, by_name=by_name),
            validated=validated,
        )
    few = multiplied(keyword, 8, by_name=by_name)
    assert ToolDefinition(name="f", description="", parameters=few, validated=validated)


@pytest.mark.timeout(20)  # 12 to the power of 8 would be some more
@pytest.mark.parametrize("profile", PROFILES, ids=str)
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_a_union_of_itself_is_sent_in_no_time(keyword: str, profile: Profile) -> None:
    parts = [{"$ref": "#"}, {"$ref": "#/$defs/More"}] * 6
    parameters: JsonObject = {
        "type": "object",
        "properties": {"a": {"$ref": "#"}},
        keyword: parts,
        "$defs": {"More": {"type": "object", "properties": {"b": {}}, keyword: parts}},
    }
    tool = ToolDefinition(name="f", description="", parameters=parameters, validated=True)

    assert tool.sent(profile)
    assert response_format(parameters, profile)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({f"D{i}": {"$ref": f"#/$defs/D{i + 1}"} for i in range(20_000)}, "lead from one to the"),
        ({"A": json.loads('{"not":' * 200 + "{}" + "}" * 200)}, "nested deeper than 100"),
        ({"A": {"description": "x" * (1 << 20)}}, "bytes; 1048576 are allowed"),
    ],
    ids=["chain", "depth", "size"],
)
def test_a_schema_that_is_too_much_to_walk_through_is_refused(
    schema: JsonObject, reason: str
) -> None:
    parameters = {"type": "object", "properties": {"a": {"$ref": "#/$defs/D0"}}, "$defs": schema}
    with pytest.raises(ToolSchemaError, match=reason):
        ToolDefinition(name="f", description="", parameters=parameters, validated=True)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("refs", [False, True])
@pytest.mark.parametrize("strict", [False, True])
def test_a_long_chain_of_definitions_can_be_sent(refs: bool, strict: bool) -> None:
    definitions: JsonObject = {
        f"D{i}": {
            "type": "object",
            "properties": {"next": {"$ref": f"#/$defs/D{i + 1}"}},
            "required": ["next"],
            "additionalProperties": False,
        }
        for i in range(400)
    }
    definitions["D400"] = {"type": "integer"}
    parameters = {**definitions["D0"], "$defs": definitions}
    tool = ToolDefinition(name="f", description="", parameters=parameters)

    assert tool.sent(Profile(refs=refs, strict_schemas=strict))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("profile", PROFILES, ids=str)
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf", "allOf"])
def test_a_long_chain_of_unions_can_be_sent_and_called(keyword: str, profile: Profile) -> None:
    definitions: JsonObject = {
        f"D{i}": {keyword: [{"$ref": f"#/$defs/D{i + 1}"}]} for i in range(400)
    }
    definitions["D400"] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    parameters = {"type": "object", keyword: [{"$ref": "#/$defs/D0"}], "$defs": definitions}
    tool = ToolDefinition(name="f", description="", parameters=parameters)

    assert tool.sent(profile)
    for arguments in ('{"a": 1}', '{"a": null}', '{"a": "[1]"}'):
        assert tool.receive(make_call("f", arguments, round=0, index=0)).arguments


def test_very_many_faults_are_no_more_work_than_their_number() -> None:
    schema = ResultSchema(list[int]).json_schema
    tool = ToolDefinition(name="f", description="", parameters=schema)

    def faults(count: int) -> int:
        call = make_call("f", json.dumps({"value": ["x"] * count}), round=0, index=0)
        return lines_run(lambda: tool.receive(call))

    assert faults(20_000) < 150 * faults(200)
