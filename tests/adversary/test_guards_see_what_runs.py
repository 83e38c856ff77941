"""What a guard judges and a person approves is what the function gets: whatever its types do.

Types that change what a model wrote (strip, alias, coerce, default, count) are run through each
dialect and through an approval with a new turn in between. The function notes what it got, encoded;
the guard notes what it saw. Types that JSON can't show are refused and never run.
"""

import dataclasses
import enum
import ipaddress
import itertools
import json
import time
import unicodedata
import uuid
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, TypeVar, cast

import anyio
import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, StringConstraints

from workflow_agent_react import (
    Allow,
    Ask,
    Decision,
    ProposedCall,
    ReactAdapterConfig,
    create_react_adapter,
    tool,
)
from workflow_agent_react.dialects._dialect import DialectName
from workflow_protocol import (
    Answer,
    DirectJournal,
    Effect,
    Question,
    StartStep,
    Suspended,
    ThreadContext,
    ThreadId,
    schema_of,
)
from workflow_reactor import MaxRoundsExceeded
from workflow_reactor.testing import ScriptedLlm, call, say, turn

T = TypeVar("T")
DIALECTS: tuple[DialectName, ...] = ("native", "json", "xml")
counter = itertools.count()


class Kept(DirectJournal):
    """Remembers results and answers as bytes, for the next time the turn is carried out."""

    def __init__(self) -> None:
        self.records: dict[str, tuple[str, bytes]] = {}
        self.questions: dict[str, Question] = {}
        self.answers: dict[str, Answer] = {}

    async def run(
        self,
        key: str,
        perform: Callable[[], Awaitable[T]],
        *,
        type: type[T],
        effect: Effect = Effect.READ,
        digest: str = "",
        **_: Any,
    ) -> T:
        if key not in self.records:
            self.records[key] = (digest, msgspec.json.encode(await perform()))
        recorded, data = self.records[key]
        assert recorded == digest
        return msgspec.json.decode(data, type=type)

    async def ask(self, key: str, question: Question) -> Answer:
        assert self.questions.setdefault(key, question) == question
        if key not in self.answers:
            raise Suspended(question.text, key=key)
        return self.answers[key]


@dataclasses.dataclass
class Case:
    """A tool's parameter type, and a role's type; what the guard saw and what came of it."""

    type: Any
    dialect: DialectName = "native"
    seen: list[Any] = dataclasses.field(default_factory=list[Any])
    shown: list[Any] = dataclasses.field(default_factory=list[Any])
    got: list[Any] = dataclasses.field(default_factory=list[Any])
    values: list[Any] = dataclasses.field(default_factory=list[Any])

    async def run(self, written: Any, *, ask: bool, instead: Any = None, **other: Any) -> Any:
        """One call of `act` with what a model wrote, and then a `resolve` with the same."""
        result = other.get("result", written)
        journal, start = Kept(), StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=0)

        def act(x: Any) -> str:
            self.values.append(x)
            self.got.append(_decoded(self.type, x))
            return "done"

        act.__annotations__["x"] = self.type

        def guard(call: ProposedCall, ctx: ThreadContext) -> Decision:
            self.seen.append((call.name, call.arguments))
            return Ask("Sure?") if ask else Allow()

        calls = [self._reply("act", x=written), self._reply("resolve", value=result)]
        while True:
            asked = sum(key.startswith("llm/") for key in journal.records)
            llm = ScriptedLlm([*calls, self._reply("resolve", value=result)][asked:])
            config = ReactAdapterConfig(
                llm=llm, toolset=tool(act), guards=[guard], dialect=self.dialect, max_rounds=3
            )
            ctx = ThreadContext(thread_id=ThreadId("T"), start=start, journal=journal)
            try:
                return await create_react_adapter(config)("p", list_of(self.type))(ctx)
            except Suspended:
                for key in [key for key in journal.questions if key not in journal.answers]:
                    details = journal.questions[key].details.partition(" ")[2]
                    self.shown.append(json.loads(details))
                    given = "" if instead is None else json.dumps({"x": instead})
                    name = journal.questions[key].details.partition(" ")[0]
                    if name == "resolve" and instead is not None:
                        given = json.dumps({"value": [instead]})
                    journal.answers[key] = Answer(approved=True, arguments=given)

    def _reply(self, name: str, **arguments: Any) -> bytes:
        if name == "resolve":
            arguments = {"value": [arguments["value"]]}
        match self.dialect:
            case "json":
                return turn(name, **arguments)
            case "xml" if name == "resolve":
                return say(f"<final_answer>{json.dumps(arguments['value'])}</final_answer>")
            case "xml":
                given = ", ".join(f"{key}={json.dumps(each)}" for key, each in arguments.items())
                return say(f"<action>{name}({given})</action>")
            case _:
                return call(name, **arguments)


def list_of(type_: Any) -> Any:
    return list[type_]


def _decoded(type_: Any, value: Any) -> Any:
    try:
        return json.loads(schema_of(type_).encode(value))
    except ValueError:  # a validator made it another type
        return json.loads(schema_of(cast("type[object]", type(value))).encode(value))


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Pair(NamedTuple):
    a: int
    b: str


class Amount(BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True, str_strip_whitespace=True)
    amount: int = Field(validation_alias=pydantic.AliasChoices("amt", "amount"))
    unit: str = "EUR"


class Aliased(BaseModel):
    amount: Decimal = Field(alias="amt", gt=0)


class Stamped(BaseModel):
    id: uuid.UUID = Field(default_factory=uuid.uuid4)
    at: float = Field(default_factory=time.time)
    number: int = Field(default_factory=lambda: next(counter))
    name: Annotated[str, StringConstraints(to_upper=True)] = "NONE"


class Open(BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    a: int = 1


class Before(BaseModel):
    total: int

    @pydantic.model_validator(mode="before")
    @classmethod
    def add(cls, data: dict[str, int]) -> dict[str, int]:
        return {"total": data["total"] + 1}


class Node(BaseModel):
    kind: Literal["leaf"] = "leaf"
    size: pydantic.ByteSize


class Branch(BaseModel):
    kind: Literal["branch"]
    below: list[Node]


@pydantic.dataclasses.dataclass
class Given:
    name: Annotated[str, StringConstraints(strip_whitespace=True)]
    when: timedelta = timedelta(days=1)


class Typed(TypedDict, total=False):
    a: int
    b: str


class Plain(msgspec.Struct, rename="camel", omit_defaults=True):
    user_name: Annotated[str, msgspec.Meta(min_length=1)]
    how_many: int = 3
    tags: list[str] = msgspec.field(default_factory=lambda: [uuid.uuid4().hex])


class Mended(msgspec.Struct):
    action: str

    def __post_init__(self) -> None:
        self.action = self.action.strip().lower() + "."


def shouted(text: str) -> str:
    return text + "!"


SHOWN: Sequence[tuple[Any, Sequence[Any]]] = [
    (Annotated[str, StringConstraints(strip_whitespace=True, to_lower=True)], [" Delete_All", "x"]),
    (Annotated[pydantic.ByteSize, Field()], ["1KB", "2 MiB", 5, "7"]),
    (Amount, [{"amt": 5, "amount": 500}, {"amount": "7"}, {"amt": 1, "unit": " USD ", "x": 2}]),
    (Aliased, [{"amt": "1.50"}, {"amt": 2}]),
    (Annotated[int, BeforeValidator(lambda v: int(str(v).strip("€ ")))], ["5 €", 7]),
    (Annotated[int, BeforeValidator(lambda v: int(v.strip("€ ")))], ["5 €"]),
    (Annotated[str, AfterValidator(shouted)], ["a", ""]),
    (Annotated[str, AfterValidator(lambda s: unicodedata.normalize("NFKC", s))], ["ﬁ", "Å", "①"]),
    (Annotated[str, AfterValidator(int)], ["12"]),
    (Before, [{"total": 1}]),
    (list[Before], [[{"total": 1}, {"total": 2}]]),
    (Stamped, [{}, {"name": "x"}, {"id": "12345678-1234-5678-1234-567812345678"}]),
    (list[Stamped], [[{}, {}], []]),
    (Open, [{"a": 2, "b": [1, None]}, {}]),
    (Branch | Node, [{"size": "1kB"}, {"kind": "branch", "below": [{"size": 3}]}]),
    (Given, [{"name": " n "}, {"name": "n", "when": "PT5S"}, {"name": "n", "when": 3}]),
    (Annotated[datetime, Field(description="when")], ["2024-01-01T00:00:00Z", 1700000000]),
    (dict[str, Annotated[int, Field(ge=0)]], [{"a": "1"}, {}]),
    (Annotated[ipaddress.IPv4Address, Field()], ["127.0.0.1"]),
    (Annotated[Path, Field()], ["a/../b"]),
    (Annotated[bytes, Field()], ["héllo"]),
    (set[Annotated[int, Field()]], [[3, 1, "3"]]),
    (Annotated[pydantic.Json[list[int]], Field()], ["[1, 2]"]),
    (Annotated[pydantic.HttpUrl, Field()], ["HTTP://Example.COM:80/a b"]),
    (Annotated[float, Field()], ["1e3", 2, 0.1, -0.0]),
    (int, [-3, 2**63]),
    (float, [1, 2.5]),
    (str, [" a ", "\u202e\u0000", "null"]),
    (Colour, ["red"]),
    (Pair, [[1, "x"]]),
    (Typed, [{"a": 1, "z": 9}, {}]),
    (Plain, [{"userName": "u"}, {"userName": "u", "howMany": 3, "tags": []}]),
    (Mended, [{"action": " Drop "}]),
    (list[Mended] | None, [[{"action": "A"}], None]),
    (bytes, ["aGk="]),
    (uuid.UUID, ["12345678123456781234567812345678"]),
    (tuple[int, ...], [[1, 2]]),
    (Literal["a", 1], ["a", 1]),
]  # fmt: skip


class Hidden(BaseModel):
    name: str
    amount: int = Field(exclude=True)


class Lying(BaseModel):
    amount: int

    @pydantic.field_serializer("amount")
    def say(self, amount: int) -> int:
        return min(amount, 100)


HIDDEN: Sequence[tuple[Any, Any]] = [
    (Annotated[pydantic.SecretStr, Field()], "hunter2"),
    (Annotated[pydantic.SecretStr, Field(min_length=7, max_length=8)], "hunter2"),
    (Annotated[list[pydantic.SecretStr], Field()], ["a"]),
    (Hidden, {"name": "n", "amount": 500}),
    (Lying, {"amount": 500}),
    (Annotated[float, Field()], "NaN"),
    (Annotated[float, Field()], "Infinity"),
    (Annotated[str, AfterValidator(lambda s: (c for c in s))], "abc"),
]

CASES = [(type_, value) for type_, values in SHOWN for value in values]


def agrees(case: Case, resolved: Any, *, asked: bool) -> None:
    """What ran is what was seen and shown, each time it was; `case.got` has what ran."""
    calls = [arguments for name, arguments in case.seen if name == "act"]
    if case.dialect == "xml" and not calls:  # it reads by the schema, where "5 €" is no integer
        assert case.values == []
        return
    (got,) = case.got
    results = [arguments for name, arguments in case.seen if name == "resolve"]
    assert calls == [{"x": got}] * len(calls)
    assert results == [{"value": _decoded(list_of(case.type), resolved)}] * len(results)
    assert calls
    assert results
    if asked:
        assert case.shown == [calls[0], results[0]]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("ask", [False, True], ids=["allowed", "asked"])
async def test_a_guard_sees_what_the_function_gets(dialect: DialectName, *, ask: bool) -> None:
    for type_, value in CASES:
        case = Case(type_, dialect)
        resolved = await case.run(value, ask=ask)
        agrees(case, resolved, asked=ask)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("type_", "written", "read"),
    [(int, "10", 10), (int, 10.0, 10), (float, "2.5", 2.5), (list[int], "[1, 2]", [1, 2])],
)
async def test_a_guard_sees_what_is_read_off_another_json_type(
    type_: Any, written: Any, read: Any, dialect: DialectName
) -> None:
    case = Case(type_, dialect)
    assert await case.run(written, ask=True, result=read) == [read]
    agrees(case, [read], asked=True)
    assert case.values == [read]


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_what_a_person_puts_in_is_judged_as_it_is_read(dialect: DialectName) -> None:
    for type_, values in SHOWN:
        case = Case(type_, dialect)
        resolved = await case.run(values[0], ask=True, instead=values[-1])
        calls = [arguments for name, arguments in case.seen if name == "act"]
        if dialect == "xml" and not calls:
            continue
        (got,) = case.got
        assert calls[-1] == {"x": got}
        results = [arguments for name, arguments in case.seen if name == "resolve"]
        assert results[-1] == {"value": _decoded(list_of(type_), resolved)}


@pytest.mark.parametrize("ask", [False, True], ids=["allowed", "asked"])
@pytest.mark.parametrize(("type_", "value"), HIDDEN, ids=range(len(HIDDEN)))
async def test_what_json_cannot_show_is_refused_and_never_runs(
    type_: Any, value: Any, *, ask: bool
) -> None:
    case = Case(type_)
    with pytest.raises(MaxRoundsExceeded) as stopped:
        await case.run(value, ask=ask)
    assert (case.seen, case.values) == ([], [])
    told = [m.data["content"] for m in stopped.value.messages if m.role == "tool"]
    assert told[0].startswith(
        "Error: the call was not run, because it can't be judged: parameter 'x': JSON"
    )


async def test_a_validator_runs_once_also_across_an_approval() -> None:
    for ask in (False, True):
        case = Case(Annotated[str, AfterValidator(shouted)])
        assert await case.run("a", ask=ask) == ["a!"]
        assert case.values == ["a!"]


async def test_a_default_that_is_another_each_time_is_decided_once() -> None:
    case = Case(Stamped)
    resolved = await case.run({}, ask=True)
    first, second = case.shown
    assert (case.got, _decoded(Stamped, resolved[0])) == ([first["x"]], second["value"][0])


class Both(BaseModel):
    """Has a new default each time, and a validator that can't read what it gave."""

    id: uuid.UUID = Field(default_factory=uuid.uuid4)
    amount: Annotated[int, BeforeValidator(lambda v: int(v.strip("€ ")))]


async def test_what_cannot_be_read_again_as_it_was_shown_is_not_run() -> None:
    case = Case(Both)
    with pytest.raises(MaxRoundsExceeded) as stopped:
        await case.run({"amount": "5 €"}, ask=True)
    assert case.values == []
    told = [m.data["content"] for m in stopped.value.messages if m.role == "tool"]
    assert (
        told[0]
        == "Error: its arguments no longer give the value that was judged; make the call again"
    )

    allowed = Case(Both)
    resolved = await allowed.run({"amount": "5 €"}, ask=False)
    agrees(allowed, resolved, asked=False)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.text("abcXYZ_ ", min_size=1, max_size=6)
CHANGES = (
    StringConstraints(strip_whitespace=True),
    StringConstraints(to_lower=True),
    StringConstraints(to_upper=True),
    BeforeValidator(lambda v: v.replace("a", "") if isinstance(v, str) else v),
    AfterValidator(shouted),
    AfterValidator(lambda v: unicodedata.normalize("NFKC", v)),
    AfterValidator(lambda v: v[::-1]),
    AfterValidator(lambda v: v + uuid.uuid4().hex),
    Field(description="x"),
)


@st.composite
def models(draw: st.DrawFn) -> tuple[Any, Any]:
    """A model whose fields have aliases, defaults and validators, and what a model may write."""
    fields: dict[str, Any] = {}
    written: dict[str, Any] = {"extra": 1} if draw(st.booleans()) else {}
    for index in range(draw(st.integers(1, 3))):
        changes = draw(st.lists(st.sampled_from(CHANGES), min_size=1, max_size=3))
        kind: Any = Annotated[(str, *changes)]
        kind = draw(st.sampled_from([kind, kind | None]))
        alias = draw(st.none() | NAMES.map(lambda name, at=index: f"{name}{at}"))
        has_default = draw(st.booleans())
        about: Any = Field(alias=alias)
        if has_default:
            # Digits: whether a validator changes them doesn't depend on which they are.
            about = Field(alias=alias, default_factory=lambda: str(uuid.uuid4().int))
        fields[f"f{index}"] = (kind, about)
        if not has_default or draw(st.booleans()):
            written[alias or f"f{index}"] = draw(TEXTS)
    return pydantic.create_model("Made", **fields), written


@settings(max_examples=60, deadline=None)
@given(models(), st.sampled_from(DIALECTS), st.booleans())
def test_generated_types_run_as_they_were_seen(
    made: tuple[Any, Any], dialect: DialectName, ask: bool
) -> None:
    type_, written = made
    case = Case(type_, dialect)
    try:
        resolved = anyio.run(partial(case.run, written, ask=ask))
    except MaxRoundsExceeded:  # it could not be read again as it was shown
        assert ask
        assert case.values == []
    else:
        agrees(case, resolved, asked=ask)
