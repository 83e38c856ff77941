"""Types as public packages have them: what a model writes is kept, and what is sent allows it."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import random
import typing
from typing import Any, cast

import jsonschema_rs
import msgspec
import pydantic
import pytest

from workflow_agent_llm import create_llm_adapter
from workflow_cas import MemoryStore
from workflow_execute import Engine, create_workflow
from workflow_execute.testing import adapter_of
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    RoleDefinition,
    SchemaMismatch,
    ThreadContext,
    WorkflowDefinition,
    schema_of,
    stored_form,
)
from workflow_reactor import Profile, ResultSchema, make_call
from workflow_reactor.testing import ScriptedLlm, say

PLAIN_ENDPOINT = Profile(refs=False)

STRINGS: dict[str, list[str]] = {
    "date-time": ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00.25+02:00"],
    "date": ["2026-01-31"],
    "time": ["12:00:00"],
    "duration": ["PT1H30M", "P1D"],
    "uuid": ["12345678-1234-5678-1234-567812345678"],
    "email": ["a@b.example"],
    "uri": ["https://a.example/x?y=1"],
    "byte": ["YQ=="],
    "": ["", "a", "Ab c", "é", "[1]", "null"],
}


class Json:
    """Writes JSON of a schema, with its optional keys or without."""

    def __init__(self, root: dict[str, Any], seed: str) -> None:
        self._root = root
        self._random = random.Random(seed)

    def of(self, node: Any, depth: int = 0) -> Any:
        """A value that has the schema's types, constants, keys and bounds of size."""
        choose = self._random.choice
        if not isinstance(node, dict) or not node:
            return choose([None, 1, "x", [1.5], {"k": 1}])
        schema = cast("dict[str, Any]", node)
        if "$ref" in schema:
            return self.of(self._root["$defs"][schema["$ref"].rpartition("/")[2]], depth + 1)
        if "const" in schema or "enum" in schema:
            return choose(schema.get("enum", [schema.get("const")]))
        options: list[Any] = schema.get("anyOf") or schema.get("oneOf") or []
        if options:  # far inside the shortest, which comes to an end
            return self.of(choose(options) if depth < 6 else min(options, key=_size), depth + 1)
        match schema.get("type", "object" if "properties" in schema else ""):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "string":
                text = choose(STRINGS.get(schema.get("format", ""), STRINGS[""]))
                return text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")]
            case "integer" | "number" as type_:
                lowest = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
                return lowest + choose([0, 1] if type_ == "integer" else [0, 1, 0.25])
            case "boolean":
                return choose([True, False])
            case "null":
                return None
            case _:
                return choose([None, 1, "x"])

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        fields = {
            name: self.of(below, depth + 1)
            for name, below in schema.get("properties", {}).items()
            if name in required or (depth < 4 and self._random.random() < 0.4)
        }
        others = schema.get("additionalProperties")
        if isinstance(others, dict) and depth < 4:
            fields["more"] = self.of(others, depth + 1)
        return fields

    def _array(self, schema: dict[str, Any], depth: int) -> list[Any]:
        if "prefixItems" in schema:
            return [self.of(each, depth + 1) for each in schema["prefixItems"]]
        least = schema.get("minItems", 0)
        count = self._random.randint(least, least + 2) if depth < 4 else least
        return [self.of(schema.get("items"), depth + 1) for _ in range(count)]


def _size(schema: Any) -> int:
    return len(str(schema))


def types_of(module: str) -> list[Any]:
    """The classes of a package that can be schemas."""
    found = vars(importlib.import_module(module)).values()
    return [each for each in found if isinstance(each, type) and _is_a_type_of_values(each)]


def _is_a_type_of_values(class_: type[Any]) -> bool:
    if issubclass(class_, enum.Enum):
        return class_.__module__ != "enum"
    return (
        (issubclass(class_, pydantic.BaseModel | msgspec.Struct) and bool(class_.__annotations__))
        or dataclasses.is_dataclass(class_)
        or typing.is_typeddict(class_)
    )


MODULES = [
    "geojson_pydantic",
    *(pytest.param(each, marks=pytest.mark.slow) for each in ("openapi_pydantic", "mcp.types")),
]


@pytest.mark.parametrize("module", MODULES)
def test_what_a_model_writes_for_a_type_of_a_package_is_kept_and_allowed(module: str) -> None:
    types = types_of(module)
    read: set[Any] = set()
    for type_ in types:
        schema, result = schema_of(type_), ResultSchema(type_)
        json_schema = schema.json_schema()
        plain = result.tool().sent(PLAIN_ENDPOINT)
        allows = jsonschema_rs.validator_for(
            msgspec.json.decode(plain)["function"]["parameters"]
        ).is_valid
        for seed in range(3):
            json = Json(json_schema, f"{type_.__name__}{seed}").of(json_schema)
            data = msgspec.json.encode(json)
            try:
                value = schema.validate_json(data)
            except SchemaMismatch:  # a validator of the type wants more than its schema says
                continue
            read.add(type_)
            kept, back = stored_form(schema, value, data)
            assert back == value
            assert schema.restore(kept) == value
            arguments = {"value": json} if result.wrapped else json
            assert allows(arguments)
            call = make_call("resolve", arguments, round=0, index=0)
            assert result.read_call(call).value == value
    assert len(read) > 0.9 * len(types)


def looked_at(type_: Any, text: str, seen: list[Any]) -> Any:
    """A workflow whose model gives a value, and whose code looks at it."""
    giver: RoleDefinition[Any] = RoleDefinition(name="giver", system_prompt="Give.", schema=type_)
    looker = RoleDefinition(name="looker", system_prompt="", schema=int)

    async def look(ctx: ThreadContext) -> int:
        step = ctx.last(giver)
        assert step is not None
        seen.append(step.meta)
        return 0

    return create_workflow(
        WorkflowDefinition(
            table={
                START: giver,
                giver: looker,
                looker: END,
            },
        ),
        AdapterBinding(
            create_llm_adapter(ScriptedLlm([say(text)])),
            overrides={"looker": adapter_of(look)},
        ),
    )


@pytest.mark.parametrize("module", MODULES)
async def test_the_next_role_a_fork_and_a_replay_get_the_same_value(module: str) -> None:
    types = types_of(module)
    for type_ in random.Random(module).sample(types, 6):
        schema = schema_of(type_)
        json_schema = schema.json_schema()
        data = msgspec.json.encode(Json(json_schema, type_.__name__).of(json_schema))
        try:
            expected = schema.validate_json(data)
        except SchemaMismatch:
            continue
        seen: list[Any] = []
        run = looked_at(type_, data.decode(), seen)
        engine = Engine(MemoryStore())

        result = await engine.start(run, "Go.")
        fork = await engine.fork(result.thread_id, at_step=1)
        await engine.resume(run, fork)
        await engine.replay(run, result.thread_id)

        assert [*seen, result.steps[0].meta] == [expected] * 4
