"""Walking over JSON Schemas."""

from typing import Any

from workflow_reactor import map_schemas


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
