"""Schemas that a tool may bring, and one run of each through all that reads them.

The JSON Schema test suite (drafts 4 to 2020-12) is beside this file, a line a schema with its
values. What `random_schema` makes uses every keyword of these drafts, now and then wrongly.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, cast

from workflow_agent_react.dialects._choice import choose_dialect
from workflow_agent_react.dialects._dialect import DialectName
from workflow_agent_react.dialects._xml_call import print_action
from workflow_protocol import JsonObject
from workflow_reactor import (
    RESOLVE,
    Framer,
    Profile,
    RequestOptions,
    ToolCall,
    ToolDefinition,
    ToolSchemaError,
    make_call,
    read_reply,
    tool_result,
)
from workflow_reactor.testing import function

DIALECTS: tuple[DialectName, ...] = ("native", "json", "xml")
PROFILES = (
    Profile(),
    Profile(strict_schemas=True, union_at_root=False),
    Profile(refs=False, union_at_root=False),
    Profile(refs=False, strict_schemas=True),
)
ANSWER: JsonObject = {"type": "object", "properties": {"value": {"type": "string"}}}


@cache
def suite() -> list[tuple[Any, list[Any]]]:
    """Each schema of the test suite with the values that it is tried with."""
    text = Path(__file__).with_name("json_schema_test_suite.jsonl").read_text("utf-8")
    return [tuple(json.loads(line)) for line in text.splitlines()]


def as_parameters(schema: Any) -> list[JsonObject]:
    """The schema as the parameters of a tool: itself as an MCP server's, and as one parameter."""
    inner: JsonObject = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    if not isinstance(schema, dict):
        return [inner]
    fields = cast("JsonObject", schema)
    kept = {key: fields[key] for key in ("$schema", "$defs", "definitions") if key in fields}
    return [{**fields, "type": "object"}, {**kept, **inner}]


def exercise(parameters: JsonObject, values: Iterable[Any]) -> bool:
    """Describe, send and call a tool of these parameters in each dialect; whether it could be made.

    Whatever is not a `ToolSchemaError` when it is made is a fault, and so is a call whose arguments
    are no object.
    """
    answer = ToolDefinition(name=RESOLVE, description="", parameters=ANSWER, validated=True)
    made = False
    for validated in (False, True):
        try:
            tool = ToolDefinition(
                name="f", description="Do it.", parameters=parameters, validated=validated
            )
            result = ToolDefinition(
                name=RESOLVE, description="", parameters=parameters, validated=True
            )
        except ToolSchemaError:
            continue
        made = made or not validated
        for profile in PROFILES:
            Framer("m", profile).frame([tool, result], RequestOptions()).body([])
        for dialect in DIALECTS:
            for tools in ([tool, answer], [tool, result]):
                _talk(dialect, tools, list(values))
    return made


def _talk(name: DialectName, tools: list[ToolDefinition], values: list[Any]) -> None:
    known = {tool.name: tool for tool in tools}
    for profile in PROFILES[:1] if name == "xml" else PROFILES:
        dialect = choose_dialect(name, profile, tools, task="t")
        dialect.system_text("p").encode()
        for only_resolve in (False, True):
            options = dialect.options(only_resolve=only_resolve)
            Framer("m", profile).frame(dialect.offered, options).body([])
    dialect = choose_dialect(name, Profile(), tools, task="t")
    for value in values:
        for called in known:
            for text in _WRITTEN[name](called, value):
                turn = dialect.read(read_reply(text, Profile(), tools=dialect.offered), 0)
                for call in turn.calls:
                    _receive(known, call)
                dialect.show([(call, "done") for call in turn.calls])


def _receive(known: dict[str, ToolDefinition], call: ToolCall) -> None:
    for receive in ("receive", "receive_strictly"):
        received: ToolCall = getattr(known[call.name], receive)(call)
        if not isinstance(json.loads(received.arguments), dict):
            raise AssertionError(f"no object: {received}")
        tool_result(received, received.fault)


def reply(text: str | None, *calls: JsonObject, finish: str = "stop") -> bytes:
    """A reply's body; texts may hold halves of surrogate pairs, which go out as escapes."""
    message = {"role": "assistant", "content": text, "tool_calls": calls}
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}]}).encode()


def _native(called: str, value: Any) -> list[bytes]:
    texts = [json.dumps(value), json.dumps({"x": value})]
    return [reply(None, function(called, text)) for text in texts]


def _json(called: str, value: Any) -> list[bytes]:
    return [
        reply(json.dumps({"tool": called, "args": value})),
        reply(json.dumps({"name": called, "arguments": {"x": value}})),
    ]


def _xml(called: str, value: Any) -> list[bytes]:
    named = cast("JsonObject", value) if isinstance(value, dict) else {"x": value}
    answers = [json.dumps(value), json.dumps({"x": value}), "text"]
    return [
        reply(f"<action>{print_action(called, named)}</action>"),
        reply(f"<action>{called}({json.dumps(value)})</action>"),
        *[reply(f"<final_answer>{answer}</final_answer>") for answer in answers],
    ]


_WRITTEN: dict[DialectName, Callable[[str, Any], list[bytes]]] = {
    "native": _native,
    "json": _json,
    "xml": _xml,
}

_NAMES = ["a", "b", "x", "$ref", "type", "properties", "a b", "a/b~c", "é", "", "__proto__", "1"]
_TYPES = ["null", "boolean", "integer", "number", "string", "array", "object", "any", "text"]
_SCHEMA_KEYS = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if"),
    *("items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"),
)
_LIST_KEYS = ("allOf", "anyOf", "oneOf", "prefixItems", "items", "extends")
_NAMED_KEYS = (
    *("$defs", "definitions", "dependentSchemas", "dependencies", "patternProperties"),
    "properties",
)
_NUMBER_KEYS = (
    *("maximum", "minimum", "exclusiveMaximum", "exclusiveMinimum", "multipleOf", "maxLength"),
    *("minLength", "maxItems", "minItems", "maxProperties", "minProperties", "maxContains"),
    "minContains",
)
_TEXT_KEYS = (
    *("title", "description", "format", "pattern", "$comment", "contentEncoding", "$anchor"),
    *("contentMediaType", "$id", "id", "$dynamicAnchor"),
)
_REFS = (
    *("#", "#/$defs/a", "#/definitions/b", "#/properties/x", "#/$defs/a%20b", "#a", "#/", "#//"),
    *("#/allOf/0", "#/allOf/99999999999999999999", "http://h.test/a", "a.json", "", "#/$defs/ab"),
    "http://json-schema.org/draft-07/schema#",
)
_TEXTS = ["", "a", "^a*$", "(", "é\U0001f600", "\ud800", "date", "x" * 300, "\x00", "(a+)+$"]
_NUMBERS = [0, 1, -1, 0.5, 10**30, 1e300, -0.0, True, 2**64]
_DRAFTS = (
    *("http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-06/schema#"),
    *("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2019-09/schema"),
    *("https://json-schema.org/draft/2020-12/schema", "http://h.test/schema"),
)


def random_value(rng: random.Random, levels: int = 3) -> Any:
    """Any JSON value, of names and constants that the schemas use."""
    match rng.randrange(8 if levels else 6):
        case 0:
            return None
        case 1:
            return rng.random() < 0.5
        case 2:
            return rng.choice(_NUMBERS)
        case 3 | 4:
            return rng.choice([*_TEXTS, "1", "true", "null", "{}"])
        case 5:
            return [] if rng.random() < 0.5 else {}
        case 6:
            return [random_value(rng, levels - 1) for _ in range(rng.randint(0, 4))]
        case _:
            names = rng.choices(_NAMES, k=rng.randint(0, 4))
            return {name: random_value(rng, levels - 1) for name in names}


def random_schema(rng: random.Random, levels: int = 3) -> Any:
    """Any schema of any draft, mostly a valid one."""
    if not levels or rng.random() < 0.1:
        return rng.choice([True, False, {}, {"type": rng.choice(_TYPES[:7])}, {"$ref": "#"}])
    schema: JsonObject = {}
    for _ in range(rng.randint(1, 4)):
        key, value = _keyword(rng, levels - 1)
        schema[key] = random_value(rng, 1) if rng.random() < 0.02 else value
    return schema


def _keyword(rng: random.Random, levels: int) -> tuple[str, Any]:
    def below() -> Any:
        return random_schema(rng, levels)

    match rng.randrange(12):
        case 0 | 1:
            many = rng.random() < 0.3
            return "type", rng.sample(_TYPES[:7], k=2) if many else rng.choice(_TYPES)
        case 2 | 3:
            names = rng.sample(_NAMES, k=rng.randint(0, 3))
            return rng.choice([*_NAMED_KEYS, "properties", "$defs"]), {n: below() for n in names}
        case 4:
            return rng.choice(_SCHEMA_KEYS), below()
        case 5 | 6:
            return rng.choice(_LIST_KEYS), [below() for _ in range(rng.randint(1, 3))]
        case 7:
            return rng.choice(_NUMBER_KEYS), rng.choice(_NUMBERS)
        case 8:
            return rng.choice(_TEXT_KEYS), rng.choice(_TEXTS)
        case 9:
            key = rng.choice(["$ref", "$ref", "$ref", "$dynamicRef", "$recursiveRef", "$schema"])
            return key, rng.choice(_DRAFTS if key == "$schema" else _REFS)
        case 10:
            values = [random_value(rng, 1) for _ in range(rng.randint(1, 3))]
            key = rng.choice(["const", "default", "enum", "examples"])
            return key, values if key in ("enum", "examples") else values[0]
        case _:
            key = rng.choice(["required", "dependentRequired", "uniqueItems", "nullable"])
            names = rng.sample(_NAMES, k=rng.randint(1, 3))
            many = {"required": names, "dependentRequired": {"a": names}}
            return key, many.get(key, True)


def random_call(rng: random.Random) -> ToolCall:
    """A call with any arguments."""
    return make_call("f", json.dumps(random_value(rng)), round=0, index=0)
