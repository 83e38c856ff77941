"""A role's value is the same for the next role, after a resume, in a fork and in a replay."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Optional

import anyio
import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field
from typing_extensions import TypedDict

from workflow_agent_llm import create_llm_adapter
from workflow_agent_react import ReactAdapterConfig, create_react_adapter
from workflow_cas import MemoryStore, open_store
from workflow_execute import ChildTask, Engine, create_workflow, run_child, workflow_adapter
from workflow_execute.testing import adapter_of, in_turn
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    AdapterFn,
    RoleDefinition,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
    schema_of,
)
from workflow_reactor.testing import ScriptedLlm, call, say


class Colour(enum.Enum):
    RED = "r"
    BLUE = "b"


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Twice(msgspec.Struct):
    n: int

    def __post_init__(self) -> None:
        self.n *= 2


@dataclasses.dataclass
class Span:
    start: int
    end: int | None = None


class Row(TypedDict):
    name: str
    size: NotRequired[int]


class Node(pydantic.BaseModel):
    label: str = "root"
    below: list[Node] = []


class Cents(pydantic.BaseModel):
    amount: Annotated[int, pydantic.BeforeValidator(lambda value: round(float(value) * 100))]


PLAIN: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (int, st.integers(-(2**53), 2**53)),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (str, st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
    (bool, st.booleans()),
    (Optional[int], st.none() | st.integers(0, 9)),  # noqa: UP045
    (list[int], st.lists(st.integers(0, 9), max_size=3)),
    (dict[str, int], st.dictionaries(st.sampled_from("abc"), st.integers(0, 9))),
    (Literal["go", "stop"], st.sampled_from(["go", "stop"])),
    (Colour, st.sampled_from(["r", "b"])),
    (dt.date, st.dates().map(str)),
    (decimal.Decimal, st.decimals(0, 10**6, places=2).map(str)),
    (uuid.UUID, st.uuids().map(str)),
    (tuple[int, str], st.tuples(st.integers(0, 9), st.just("t"))),
]
"""Types that both libraries take, with JSON of them."""

OF_PYDANTIC: list[tuple[Any, st.SearchStrategy[Any]]] = [
    *PLAIN,
    (Annotated[int, pydantic.BeforeValidator(lambda v: int(v) + 1)], st.integers(0, 9)),
    (Annotated[str, pydantic.AfterValidator(str.swapcase)], st.sampled_from(["Ab", "xY"])),
    (Annotated[str, pydantic.StringConstraints(strip_whitespace=True)], st.just(" a ")),
    (pydantic.Json[list[int]], st.just("[1, 2]")),
    (pydantic.ByteSize, st.sampled_from(["1kb", "2 MiB"])),
    (Cents, st.fixed_dictionaries({"amount": st.sampled_from(["1.5", 2])})),
    (Node, st.just({"below": [{"label": "x"}, {}]})),
    (Span | Node, st.sampled_from([{"start": 1}, {"label": "x"}])),
]
OF_MSGSPEC: list[tuple[Any, st.SearchStrategy[Any]]] = [
    *PLAIN,
    (Point, st.sampled_from([{"x": 1}, {"x": 1, "y": 2}])),
    (Twice, st.fixed_dictionaries({"n": st.integers(0, 99)})),
    (Row, st.sampled_from([{"name": "n"}, {"name": "n", "size": 3}])),
    (Span, st.sampled_from([{"start": 1}, {"start": 1, "end": None}])),
]


@st.composite
def pydantic_types(draw: st.DrawFn) -> tuple[Any, Any]:
    fields: dict[str, Any] = {}
    json: dict[str, Any] = {}
    for name in draw(st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)):
        type_, values = draw(st.sampled_from(OF_PYDANTIC))
        options: dict[str, Any] = draw(
            st.sampled_from(
                [
                    {},
                    {"alias": name.upper()},
                    {"validation_alias": f"in_{name}"},
                    {"serialization_alias": f"out_{name}"},
                    {"exclude": True},
                ]
            )
        )
        if optional := draw(st.booleans()):
            options["default"] = draw(st.sampled_from([None, 0, "r", ()]))  # fitting or not
        fields[name] = (type_, Field(**options))
        if not optional or draw(st.booleans()):
            json[options.get("validation_alias") or options.get("alias") or name] = draw(values)
    config = pydantic.ConfigDict(extra=draw(st.sampled_from(["ignore", "forbid"])))
    model: Any = pydantic.create_model("Made", __config__=config, **fields)
    ways: list[tuple[Any, Any]] = [(model, json), (list[model], [json, json])]
    return draw(st.sampled_from(ways))


@st.composite
def msgspec_types(draw: st.DrawFn) -> tuple[Any, Any]:
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    json: dict[str, Any] = {}
    rename: Any = draw(st.sampled_from([None, "upper"]))
    for name in sorted(draw(st.sets(st.sampled_from("abcdef"), min_size=1, max_size=4))):
        type_, values = draw(st.sampled_from(OF_MSGSPEC))
        if optional := draw(st.booleans()):
            fields.append((name, type_, None))  # which may not be of the type
        else:
            fields.append((name, type_))
        if not optional or draw(st.booleans()):
            json[name.upper() if rename else name] = draw(values)
    made: Any = msgspec.defstruct(
        "Made", fields, kw_only=True, rename=rename, omit_defaults=draw(st.booleans())
    )
    return draw(st.sampled_from([(made, json), (dict[str, made], {"k": json})]))


@st.composite
def dataclass_types(draw: st.DrawFn) -> tuple[Any, Any]:
    type_, values = draw(st.sampled_from([*PLAIN, (Row, st.just({"name": "n"}))]))
    made: Any = dataclasses.make_dataclass("Made", [("only", type_)])
    other: Any = dataclasses.make_dataclass("Other", [("none_of_it", int)])
    json = {"only": draw(values)}
    return draw(st.sampled_from([(made, json), (made | other, json), (list[made | other], [json])]))


TYPES = st.one_of(pydantic_types(), msgspec_types(), dataclass_types())


def flow(first: AdapterFn, schema: Any, seen: list[Any], *, fails: bool) -> Any:
    """A role that gives a value, and one that looks at it; that one may fail at its first turn."""
    giver: RoleDefinition[Any] = RoleDefinition(name="giver", system_prompt="Give.", schema=schema)
    looker = RoleDefinition(name="looker", system_prompt="", schema=int)
    failing = [fails]

    async def look(ctx: ThreadContext) -> int:
        step = ctx.last(giver)
        assert step is not None
        seen.append(step.meta)
        if failing.pop() if failing else False:
            raise RuntimeError("once")
        return 0

    return create_workflow(
        WorkflowDefinition(
            table={
                START: giver,
                giver: looker,
                looker: END,
            },
        ),
        AdapterBinding(first, overrides={"looker": adapter_of(look)}),
    )


def fields_set(value: Any) -> Any:
    """The fields that were given, of all models in a value."""
    if isinstance(value, pydantic.BaseModel):
        below = {name: fields_set(each) for name, each in value.__dict__.items()}
        return value.model_fields_set, below
    if isinstance(value, list | tuple):
        return [fields_set(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return type(value).__name__


async def all_readers(adapter: AdapterFn, schema: Any) -> list[Any]:
    """The value as the next role, a resume, a fork and a replay get it."""
    seen: list[Any] = []
    run = flow(adapter, schema, seen, fails=True)
    engine = Engine(MemoryStore())
    failed = await engine.start(run, "Go.")
    assert failed.state == "failed", failed.error
    assert str(failed.error) == "once", failed.error
    resumed = await engine.resume(run, failed.thread_id)
    assert resumed.state == "completed", resumed.error
    fork = await engine.fork(failed.thread_id, at_step=1)
    assert (await engine.resume(run, fork)).state == "completed"
    await engine.replay(run, failed.thread_id)
    seen.append(resumed.steps[0].meta)
    assert len(seen) == 5  # failed, resumed, forked, replayed, and in the result
    return seen


@given(TYPES)
@settings(max_examples=150)
async def test_every_later_reader_gets_the_value_that_the_model_s_json_gives(
    made: tuple[Any, Any],
) -> None:
    type_, json = made
    expected = schema_of(type_).validate_json(msgspec.json.encode(json))

    llm = ScriptedLlm([say(msgspec.json.encode(json).decode())])
    seen = await all_readers(create_llm_adapter(llm), type_)

    for value in seen:
        assert value == expected
        assert fields_set(value) == fields_set(expected)


@pytest.mark.parametrize(
    ("type_", "json"),
    [
        (Cents, {"amount": "12.50"}),
        (Twice, {"n": 2}),
        (list[Cents], [{"amount": "12.50"}]),
        (Span | Node, {"start": 1}),
    ],
)
async def test_so_does_a_react_role(type_: Any, json: Any) -> None:
    expected = schema_of(type_).validate_json(msgspec.json.encode(json))
    arguments: dict[str, Any] = {"value": json} if isinstance(json, list) else json
    llm = ScriptedLlm([call("resolve", **arguments)])

    seen = await all_readers(create_react_adapter(ReactAdapterConfig(llm=llm)), type_)

    assert seen == [expected] * 5


class Ticket(pydantic.BaseModel):
    id: uuid.UUID = Field(default_factory=uuid.uuid4)
    amount: int = 1


@dataclasses.dataclass
class DataTicket:
    id: uuid.UUID = dataclasses.field(default_factory=uuid.uuid4)


class StructTicket(msgspec.Struct):
    id: uuid.UUID = msgspec.field(default_factory=uuid.uuid4)


class FilledTicket(pydantic.BaseModel):
    id: uuid.UUID | None = None

    @pydantic.model_validator(mode="after")
    def _fill(self) -> FilledTicket:
        self.id = self.id or uuid.uuid4()
        return self


TICKETS = [Ticket, DataTicket, StructTicket, FilledTicket]


@pytest.mark.parametrize("class_", TICKETS)
async def test_a_default_that_is_made_anew_each_time_is_made_once(class_: Any) -> None:
    seen = await all_readers(create_llm_adapter(ScriptedLlm([say("{}")])), class_)

    assert len({each.id for each in seen}) == 1


@pytest.mark.parametrize("class_", [Ticket, DataTicket, StructTicket])
async def test_so_is_one_of_a_role_of_code(class_: Any) -> None:
    async def give(ctx: ThreadContext) -> Any:
        return [class_()]

    seen = await all_readers(adapter_of(give), list[class_])

    assert len({each.id for [each] in seen}) == 1


@dataclasses.dataclass(slots=True)
class SlottedSpan:
    start: int = 0


async def test_a_dataclass_with_slots_is_a_value_like_others() -> None:
    llm = ScriptedLlm([say('{"start": 1}')])

    assert await all_readers(create_llm_adapter(llm), SlottedSpan) == [SlottedSpan(1)] * 5


class Constants(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_inf_nan="constants")
    x: float


async def test_a_child_s_value_that_is_no_json_is_refused_where_it_is_given() -> None:
    async def give(ctx: ThreadContext) -> Constants:
        return Constants(x=float("nan"))

    child = in_turn(give, schema=Constants)
    parent = flow(workflow_adapter("child", child), Constants, [], fails=False)
    result = await Engine(MemoryStore()).start(parent, "Go.")

    assert "$.x: NaN and infinity are no JSON numbers" in str(result.error)


class Words(pydantic.BaseModel):
    words: set[str]
    more: frozenset[str] = frozenset({"one", "two", "three"})


async def replay_words(path: str, thread_id: str) -> None:
    """Run or replay a role whose value has sets: in a process of its own."""
    words = '{"words":["alpha","beta","gamma","delta","epsilon"]}'
    run = flow(create_llm_adapter(ScriptedLlm([say(words)])), Words, [], fails=False)
    async with open_store(Path(path)) as store:
        if thread_id:
            await Engine(store).replay(run, ThreadId(thread_id))
        else:
            sys.stdout.write((await Engine(store).start(run, "Go.")).thread_id)


def test_a_set_is_the_same_in_another_process_that_orders_it_in_another_way(tmp_path: Path) -> None:
    thread_id = ""
    for seed in ("1", "2", "3"):
        done = subprocess.run(
            [sys.executable, __file__, str(tmp_path / "store.sqlite3"), thread_id],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        thread_id = thread_id or done.stdout.strip()


if __name__ == "__main__":
    anyio.run(replay_words, sys.argv[1], sys.argv[2])


@pytest.mark.parametrize("way", ["adapter", "convert", "run_child"])
async def test_a_child_s_value_is_the_same_one_above(way: str) -> None:
    llm = ScriptedLlm([say('{"amount": "12.50"}')])
    role: RoleDefinition[Any] = RoleDefinition(name="payer", system_prompt="Pay.", schema=Cents)
    child = create_workflow(
        WorkflowDefinition(table={START: role, role: END}),
        AdapterBinding(create_llm_adapter(llm)),
    )

    async def by_hand(ctx: ThreadContext) -> object:
        return (await run_child(ctx, ChildTask(workflow=child, input="Pay.", name="pay"))).value

    adapters: dict[str, AdapterFn] = {
        "adapter": workflow_adapter("pay", child),
        "convert": workflow_adapter("pay", child, convert=lambda done: done.value),
        "run_child": adapter_of(by_hand),
    }

    seen = await all_readers(adapters[way], Cents)

    assert [each.amount for each in seen] == [1250] * 5
