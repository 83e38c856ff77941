"""Walking over JSON Schemas."""

from typing import Any

import pytest

from workflow_reactor import find_schema, map_schemas


def test_schemas_are_mapped_and_names_and_data_are_not() -> None:
    data = {"type": "string"}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"default": data, "enum": {"enum": [data]}},
        "items": [data, True],
        "additionalProperties": False,
        "default": data,
        "const": data,
        "examples": [data],
    }

    seen = map_schemas(schema, lambda below: {"seen": below})

    assert seen == schema | {
        "properties": {"default": {"seen": data}, "enum": {"seen": {"enum": [data]}}},
        "items": [{"seen": data}, True],
    }


@pytest.mark.parametrize(
    ("ref", "found"),
    [
        ("#/$defs/a~1b", {"type": "integer"}),
        ("#/properties/list/prefixItems/0", {"type": "string"}),
        ("#/properties/list/prefixItems/1", None),
        ("#/properties/list/prefixItems", None),
        ("#/properties/missing/items", None),
        ("#anchor", None),
        ("other.json#/$defs/x", None),
    ],
)
def test_a_reference_is_found_where_it_leads_in_the_schema_itself(ref: str, found: object) -> None:
    schema: dict[str, Any] = {
        "$defs": {"a/b": {"type": "integer"}},
        "properties": {"list": {"prefixItems": [{"type": "string"}]}},
    }

    assert find_schema(schema, ref) == found
    assert find_schema(schema, "#") is schema
