"""How schemas look in the json dialect."""

from typing import Any

import jsonschema_rs
import msgspec
import pydantic

from workflow_agent_react import JsonDialect
from workflow_reactor import Profile, ResultSchema, ToolDefinition


class Item(pydantic.BaseModel):
    name: str
    kind: str = pydantic.Field(description="what it is")


class Report(pydantic.BaseModel):
    items: list[Item]
    best: Item | None = None


def turn_schema(dialect: JsonDialect, *, only_resolve: bool) -> dict[str, Any]:
    options = dialect.options(only_resolve=only_resolve).response_format
    assert options is not None
    return options["json_schema"]["schema"]


def test_definitions_of_all_tools_live_at_the_root_without_clashing() -> None:
    other = ToolDefinition(
        name="other",
        description="",
        parameters={
            "type": "object",
            "properties": {"item": {"$ref": "#/$defs/Item"}, "$ref": {"type": "string"}},
            "$defs": {"Item": {"type": "integer"}},
        },
    )
    dialect = JsonDialect([other, ResultSchema(Report).tool()], Profile(union_at_root=True))

    schema = turn_schema(dialect, only_resolve=False)
    assert schema["$defs"].keys() == {"other.Item", "resolve.Item"}
    args = [branch["properties"]["args"] for branch in schema["anyOf"]]
    assert args[0]["properties"]["item"] == {"$ref": "#/$defs/other.Item"}
    assert args[0]["properties"]["$ref"] == {"type": "string"}
    assert args[1]["properties"]["items"]["items"] == {"$ref": "#/$defs/resolve.Item"}


def test_references_of_any_kind_lead_to_the_same_in_the_schema_of_a_turn() -> None:
    parameters = {
        "type": "object",
        "properties": {
            "ids": {"type": "array", "items": {"type": "integer"}},
            "first": {"$ref": "#/properties/ids/items"},
            "old": {"$ref": "#/definitions/Old"},
            "again": {"$ref": "#"},
        },
        "definitions": {"Old": {"enum": ["x"]}},
    }
    find = ToolDefinition(name="find", description="", parameters=parameters)
    given = {"ids": [1], "first": 2, "old": "x", "again": {"first": 3}}
    tools = [find, ResultSchema(int).tool()]
    dialects = [JsonDialect(tools, Profile(union_at_root=joined)) for joined in (True, False)]

    for dialect in (*dialects, JsonDialect([find], Profile())):
        fits = jsonschema_rs.validator_for(turn_schema(dialect, only_resolve=False)).is_valid
        assert fits({"tool": "find", "args": given})
        for wrong in ({"first": "x"}, {"old": "y"}, {"again": {"first": "x"}}):
            assert not fits({"tool": "find", "args": {**given, **wrong}})


def test_data_that_looks_like_a_reference_stays_as_it_is() -> None:
    data = {"$ref": "#/$defs/Item"}
    link = {"type": "object", "default": data, "examples": [data], "enum": [data, {"const": data}]}
    linker = ToolDefinition(
        name="link",
        description="",
        parameters={
            "type": "object",
            "properties": {"to": link, "default": {"const": data}, "enum": data},
            "$defs": {"Item": {"type": "string"}},
        },
    )
    dialect = JsonDialect([linker, ResultSchema(str).tool()], Profile())

    branches = turn_schema(dialect, only_resolve=False)["anyOf"]
    sent = branches[0]["properties"]["args"]["properties"]
    renamed = {"$ref": "#/$defs/link.Item"}
    assert sent == {"to": link, "default": {"const": data}, "enum": renamed}


def test_the_last_round_has_the_one_branch() -> None:
    dialect = JsonDialect([ResultSchema(int).tool()], Profile())
    schema = turn_schema(dialect, only_resolve=True)

    assert schema["properties"]["tool"] == {"const": "resolve"}
    assert "$defs" not in schema


def test_endpoints_without_schemas_get_what_they_can() -> None:
    tools = [ResultSchema(int).tool()]

    loose = JsonDialect(tools, Profile(response_format="json_object"))
    assert loose.options(only_resolve=False).response_format == {"type": "json_object"}
    none = JsonDialect(tools, Profile(response_format="none"))
    assert none.options(only_resolve=True).response_format is None


def test_parameters_are_described_in_a_line_each() -> None:
    tool = ToolDefinition(
        name="find",
        description="Find it.",
        parameters={
            "type": "object",
            "properties": {
                "mode": {"enum": ["a", "b"]},
                "fixed": {"const": 1},
                "many": {"type": "array", "items": {"type": "string"}},
                "either": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "open": {"type": "object"},
                "near": {
                    "type": "object",
                    "properties": {"x": {"type": "number"}, "y": {"type": ["integer", "null"]}},
                    "required": ["x"],
                },
                "item": {"$ref": "#/$defs/Item", "description": "which one"},
                "any": {},
                "all": True,
                "some": {"type": "array", "items": True},
            },
            "required": ["mode"],
            "$defs": {"Item": {"type": "string"}},
        },
    )
    text = JsonDialect([tool, ResultSchema(Report).tool()], Profile()).system_text("Do it.")

    assert text.startswith("Do it.\n")
    assert (
        '- find(mode: "a" | "b", fixed?: 1, many?: [string, …], either?: string | null, '
        "open?: object, near?: {x: number, y?: integer | null}, item?: Item, any?: any, "
        "all?: any, some?: [any, …]): Find it.\n"
        "    item: which one\n"
        "    Item = string\n"
    ) in text
    assert "- resolve(items: [Item, …], best?: Item | null): Submit" in text
    assert text.endswith("\n    Item = {name: string, kind: string}")
    assert msgspec.json.encode(text)
