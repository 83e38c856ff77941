"""Roles of every kind of schema, and tools of any JSON Schema, on every kind of endpoint."""

import decimal
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import pydantic
import pytest

from workflow_agent_react import (
    Allow,
    Decision,
    ProposedCall,
    ReactAdapterConfig,
    Toolset,
    create_react_adapter,
    tool,
)
from workflow_protocol import DirectJournal, Effect, StartStep, ThreadContext, ThreadId
from workflow_reactor import Profile, ToolCall, ToolDefinition
from workflow_reactor.testing import Reply, ScriptedLlm, call, function, say, turn


@dataclass
class Item:
    n: int
    note: str = ""


class A(msgspec.Struct, tag=True):
    a: int


class B(msgspec.Struct, tag=True):
    b: int


PROFILES: Mapping[str, Profile] = {
    "lax": Profile(),
    "strict": Profile(strict_schemas=True, union_at_root=False),
    "plain": Profile(refs=False, union_at_root=False),
    "json": Profile(dialect="json"),
    "json-strict": Profile(dialect="json", strict_schemas=True, union_at_root=False),
}
CASES: list[tuple[Any, Any, Any]] = [
    (str, "hi", "hi"),
    (int, 3, 3),
    (list[Item], [Item(1)], [{"n": 1, "note": None}]),
    (Literal["go", "stop"], "go", "go"),
    (A | B, B(2), {"type": "B", "b": 2}),
    (type(None), None, None),
]


def context() -> ThreadContext:
    start = StartStep(prompt="Do it.", workspace=Path("/"), timestamp_ms=0)
    return ThreadContext(
        thread_id=ThreadId("t"), depth=0, bundle_hash=None, start=start, journal=DirectJournal()
    )


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
@pytest.mark.parametrize("bare", [False, True], ids=["wrapped", "bare"])
@pytest.mark.parametrize(("type_", "value", "written"), CASES, ids=lambda each: str(each)[:30])
async def test_a_role_of_any_schema_ends_with_the_bare_value(
    type_: Any, value: Any, written: Any, bare: bool, profile: Profile
) -> None:
    arguments = written if bare else {"value": written}
    if profile.dialect == "json":
        reply = say(json.dumps({"tool": "resolve", "args": arguments}))
    else:
        reply = say(None, function("resolve", json.dumps(arguments)))
    llm = ScriptedLlm([reply], profile)
    role = create_react_adapter(ReactAdapterConfig(llm=llm))("Work.", type_)

    assert await role(context()) == value
    (request,) = llm.requests
    if profile.dialect == "native":
        parameters = request["tools"][-1]["function"]["parameters"]
        assert parameters["type"] == "object"
        assert not parameters.keys() & {"anyOf", "oneOf", "$ref"}


PARAMETERS: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "limit": {"type": "integer", "default": 9},
        "where": {"$ref": "#/definitions/Where"},
    },
    "required": ["path"],
    "definitions": {"Where": {"enum": ["here", "there"]}},
}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
async def test_an_injected_tool_s_arguments_are_checked_before_it_runs(profile: Profile) -> None:
    ran: list[str] = []

    async def handler(call: ToolCall, ctx: ThreadContext) -> str:
        del ctx
        json.loads(call.arguments)["path"] = "changed"  # its own copy
        ran.append(call.arguments)
        return "found"

    tool = ToolDefinition(
        name="find", description="Find it.", parameters=PARAMETERS, effect=Effect.UNSAFE
    )
    write = turn if profile.dialect == "json" else call
    replies: list[Reply] = [
        write("find", path="", limit="x", where="nowhere"),
        write("find", path="a", limit=None, where=None),
        write("resolve", value=1),
    ]
    llm = ScriptedLlm(replies, profile)
    config = ReactAdapterConfig(llm=llm, tools=[tool], tool_handler=handler)

    assert await create_react_adapter(config)("Work.", int)(context()) == 1
    assert [json.loads(each) for each in ran] == [{"path": "a"}]
    told = llm.requests[1]["messages"][-1]["content"]
    for line in (
        "$.path: expected at least 1 characters",
        "$.limit: expected an integer, got a string ('x')",
        """$.where: expected "here" or "there", got a string ('nowhere')""",
    ):
        assert line in told.splitlines() or f"{line};" in told


class Search(pydantic.BaseModel):
    limit: int | None = 20
    must: int | None
    below: list["Search"] = []
    price: decimal.Decimal | None = None


SEARCH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "limit": {"type": ["integer", "null"]},
        "must": {"type": ["integer", "null"]},
        "below": {"type": "array", "items": {"$ref": "#/$defs/S"}},
    },
    "required": ["must", "below"],
    "additionalProperties": False,
    "$defs": {
        "S": {
            "type": "object",
            "properties": {"limit": {"type": ["integer", "null"]}},
            "additionalProperties": False,
        }
    },
}


def _asks_never(call: ProposedCall, ctx: ThreadContext) -> Decision:
    del call, ctx
    return Allow()


@pytest.mark.parametrize("guarded", [False, True], ids=["free", "guarded"])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
async def test_null_for_an_optional_key_is_absent_where_the_schema_went_out_strict(
    profile: Profile, guarded: bool
) -> None:
    found: list[object] = []

    @tool(effect=Effect.READ)
    def search(what: Search, limit: int | None = 20) -> None:
        found.append((what, limit))

    async def handler(call: ToolCall, ctx: ThreadContext) -> str:
        del ctx
        found.append(json.loads(call.arguments))
        return "found"

    find = ToolDefinition(name="find", description="", parameters=SEARCH, effect=Effect.READ)
    toolset = Toolset.combine(search, Toolset((find,), handler))
    price = "12345678901234567.89"
    what = {"limit": None, "must": None, "below": [{"limit": None, "must": 1}], "price": price}
    write = turn if profile.dialect == "json" else call
    replies: list[Reply] = [
        write("search", what=what, limit=None),
        write("find", must=None, limit=None, below=[{"limit": None}]),
        write("resolve", **what),
    ]
    config = ReactAdapterConfig(
        llm=ScriptedLlm(replies, profile),
        toolset=toolset,
        guards=[_asks_never] if guarded else [],
    )

    value = await create_react_adapter(config)("Work.", Search)(context())

    strict = profile.strict_schemas
    expected = Search.model_validate(
        {"must": None, "below": [{"must": 1}], "price": price}
        if strict
        else {**what, "below": [{"limit": None, "must": 1}]}
    )
    assert value == expected
    assert found == [
        (expected, 20 if strict else None),
        {"must": None, "below": [{}]}
        if strict
        else {"must": None, "limit": None, "below": [{"limit": None}]},
    ]


@pytest.mark.parametrize("guarded", [False, True], ids=["free", "guarded"])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=list(PROFILES))
async def test_what_was_written_as_a_string_of_json_runs_and_is_judged_as_it_is_meant(
    profile: Profile, guarded: bool
) -> None:
    ran: list[object] = []
    judged: list[object] = []

    @tool(effect=Effect.READ)
    def search(what: Search) -> None:
        ran.append(what)

    async def handler(call: ToolCall, ctx: ThreadContext) -> str:
        del ctx
        ran.append(call.arguments)
        return "found"

    def look(call: ProposedCall, ctx: ThreadContext) -> Decision:
        del ctx
        judged.append(call.arguments.get("below", call.arguments.get("what")))
        return Allow()

    parameters = {
        "type": "object",
        "properties": {"below": {"type": "array", "items": {"type": "number"}}},
        "required": ["below"],
        "additionalProperties": False,
    }
    find = ToolDefinition(name="find", description="", parameters=parameters, effect=Effect.READ)
    below = json.dumps([{"must": 1, "below": "[]"}])
    write = turn if profile.dialect == "json" else call
    config = ReactAdapterConfig(
        llm=ScriptedLlm(
            [
                write("search", what=json.dumps({"must": 2, "below": below})),
                write("find", below="[1.10, 12345678901234567.89]"),
                write("resolve", must=3, below=below),
            ],
            profile,
        ),
        toolset=Toolset.combine(search, Toolset((find,), handler)),
        guards=[look] if guarded else [],
    )

    value = await create_react_adapter(config)("Work.", Search)(context())

    inner: list[dict[str, Any]] = [{"must": 1, "below": []}]
    assert value == Search.model_validate({"must": 3, "below": inner})
    assert ran[0] == Search.model_validate({"must": 2, "below": inner})
    assert str(ran[1]).replace(" ", "") == '{"below":[1.10,12345678901234567.89]}'
    if guarded:
        what, numbers, result = judged
        assert isinstance(what, dict)
        assert what["below"][0]["must"] == 1
        assert numbers == [1.1, 12345678901234567.89]
        assert isinstance(result, list)
        assert result[0]["must"] == 1
