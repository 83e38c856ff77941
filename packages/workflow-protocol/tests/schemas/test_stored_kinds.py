"""Kinds of values that are odd in Python: what is stored of them, or why nothing is."""

import dataclasses
import math
import threading
import time
import uuid
from collections import deque
from decimal import Decimal
from typing import Annotated, Any, NamedTuple

import msgspec
import pydantic
import pytest
from pydantic import Field, PrivateAttr

from workflow_protocol import Schema, SchemaMismatch, is_made_anew, schema_of, stored_form


@dataclasses.dataclass(slots=True)
class Slots:
    a: int = 1
    below: "list[Slots]" = dataclasses.field(default_factory=list["Slots"])


@pydantic.dataclasses.dataclass(slots=True)
class CheckedSlots:
    a: Annotated[int, pydantic.BeforeValidator(lambda value: int(value) + 1)]


@pydantic.dataclasses.dataclass(config=pydantic.ConfigDict(extra="allow"))
class Open:
    a: int


class Pair(NamedTuple):
    one: Any
    two: Any


class Kept(pydantic.BaseModel):
    a: int
    _twice: int = PrivateAttr()
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    def model_post_init(self, context: Any, /) -> None:
        self._twice = self.a * 2


class Worded(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_inf_nan="strings")
    x: float


@pytest.mark.parametrize(
    ("type_", "source"),
    [
        (Slots, '{"a":2,"below":[{}]}'),
        (list[Slots], "[{}]"),
        (CheckedSlots, '{"a":"2"}'),
        (Kept, '{"a":2}'),
        (Pair, "[1,[2]]"),
        (deque[int], "[1]"),
    ],
)
def test_a_model_s_value_of_an_odd_class_is_kept(type_: Any, source: str) -> None:
    schema = schema_of(type_)
    value = schema.validate_json(source)

    stored, now = stored_form(schema, value, source.encode())

    assert vars_of(now) == vars_of(value) == vars_of(schema.restore(stored))


def vars_of(value: Any) -> Any:
    return value.model_dump() if isinstance(value, Kept) else value


@pytest.mark.parametrize("value", [Pair(True, (1, 2)), Pair(1.5, None), Pair("", {"k": [1]})])
def test_so_is_a_named_tuple_that_code_made(value: Pair) -> None:
    schema = schema_of(Pair)

    stored, now = stored_form(schema, value)

    assert repr(schema.restore(stored)) == repr(now) == repr(value).replace("(1, 2)", "[1, 2]")


@pytest.mark.parametrize("text", ["NaN", "sNaN", "Infinity"])
def test_decimals_that_are_no_numbers_are_kept(text: str) -> None:
    schema = schema_of(list[Decimal])

    stored, now = stored_form(schema, [Decimal(text)])

    assert str(now) == str(schema.restore(stored)) == f"[Decimal('{text}')]"


def test_nan_is_kept_as_a_string_where_the_model_says_so() -> None:
    assert stored_form(schema_of(Worded), Worded(x=math.nan))[0] == b'{"x":"NaN"}'


class Constants(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_inf_nan="constants")
    xs: list[float]


class Raw(pydantic.BaseModel):
    items: list[dict[str, bytes]]


class Noted(pydantic.BaseModel):
    a: int
    _note: str | None = PrivateAttr(default=None)


class Tagged(pydantic.BaseModel):
    _id: uuid.UUID = PrivateAttr(default_factory=uuid.uuid4)


class Bumped(pydantic.BaseModel):
    a: int

    @pydantic.field_validator("a")
    @classmethod
    def _more(cls, value: int) -> int:
        return value + 1

    def __repr__(self) -> str:
        raise ValueError("no words")


class Touchy:
    def __eq__(self, other: object) -> bool:
        raise ValueError("not comparable")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


class Odd(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    it: Annotated[
        Touchy,
        pydantic.PlainValidator(lambda _: Touchy()),
        pydantic.PlainSerializer(lambda _: 1),
        pydantic.WithJsonSchema({}),
    ]


def noted() -> Noted:
    value = Noted(a=1)
    value._note = "mine"  # pyright: ignore[reportPrivateUsage]
    return value


@pytest.mark.parametrize(
    ("type_", "value", "words"),
    [
        (Constants, Constants(xs=[1, math.nan]), r"\$\.xs\[1\]: NaN and infinity are no JSON"),
        (Raw, Raw(items=[{}, {"k": b"\xff"}]), r"\$\.items\[1\]\['k'\]: .*invalid utf-8"),
        (list[dict[str, str]], [{"k": "\ud800"}], r"\$\[0\]\['k'\]: UnicodeEncodeError"),
        (dict[str, int], {"\ud800": 1}, r"\$: UnicodeEncodeError"),
        (list[Any], [1, [object()]], r"\$\[1\]\[0\]: TypeError"),
        (Noted, noted(), r"\$\._note: 'mine' .* private attributes are not stored; make it"),
        (Tagged, Tagged(), r"\$\._id: .* private attributes are not stored"),
        (list[Bumped], [Bumped(a=1)], r"\$\[0\]\.a: 2 can't be stored"),
        (int, Bumped(a=1), r"\$: TypeError"),
        (Odd, Odd(it=Touchy()), r"\$\.it: .* can't be stored"),
        (Open, schema_of(Open).validate_json('{"a":1,"b":2}'), r"\$: Open"),
    ],
)
def test_what_can_t_be_kept_is_refused_with_its_place(type_: Any, value: Any, words: str) -> None:
    with pytest.raises(SchemaMismatch, match=words):
        stored_form(schema_of(type_), value)


class Model(pydantic.BaseModel):
    below: "Model | None" = None


class Struct(msgspec.Struct):
    below: "Struct | None" = None


@dataclasses.dataclass
class Data:
    below: "Data | None" = None


@pytest.mark.parametrize("class_", [Model, Struct, Data])
@pytest.mark.parametrize("levels", [1, 2_000])
def test_what_contains_itself_or_goes_too_deep_is_refused(class_: Any, levels: int) -> None:
    value = innermost = class_()
    for _ in range(levels - 1):
        value, value.below = class_(), value
    if levels == 1:
        innermost.below = value

    for type_, each in ((class_, value), (list[Any], [value]), (dict[str, Any], {"k": value})):
        schema: Schema[Any] = schema_of(type_)
        with pytest.raises(SchemaMismatch, match=r"too deeply|contains itself|can't be stored|due"):
            stored_form(schema, each)
        assert not is_made_anew(schema, each, None)


@pytest.mark.parametrize("type_", [list[Any], Struct, Any])
def test_json_is_taken_up_to_one_depth_wherever_it_is_read(type_: Any) -> None:
    opening, closing = ('{"below":', "}") if type_ is Struct else ("[", "]")
    inside = "null" if type_ is Struct else ""

    def nested(levels: int) -> str:
        return opening * levels + inside + closing * levels

    schema: Schema[Any] = schema_of(type_)
    value = schema.validate_json(nested(190))
    assert schema.restore(stored_form(schema, value, nested(190).encode())[0]) == value
    for levels in (201, 500, 100_000):
        with pytest.raises(SchemaMismatch, match="too deeply"):
            schema.validate_json(nested(levels))
    many = "[" + ",".join(["[1]"] * 1_000) + "]"
    assert len(schema_of(list[list[int]]).validate_json(many)) == 1_000


class Stamped(pydantic.BaseModel):
    at: float = Field(default_factory=lambda: time.time() // 1_000_000)


def test_a_default_that_was_made_is_stored_though_another_would_be_equal_now() -> None:
    schema = schema_of(Stamped)

    assert b"at" in stored_form(schema, Stamped())[0]
    assert b"at" in stored_form(schema, schema.validate_json("{}"), b"{}")[0]


@dataclasses.dataclass
class DataTicket:
    id: str = dataclasses.field(default_factory=lambda: uuid.uuid4().hex)


class StructTicket(msgspec.Struct):
    id: str = msgspec.field(default_factory=lambda: uuid.uuid4().hex)


class ModelTicket(pydantic.BaseModel):
    id: str = Field(default_factory=lambda: uuid.uuid4().hex)


class LateTicket(pydantic.BaseModel):
    id: str = ""

    @pydantic.model_validator(mode="after")
    def _fill(self) -> "LateTicket":
        self.id = self.id or uuid.uuid4().hex
        return self


@pytest.mark.parametrize("class_", [DataTicket, StructTicket, ModelTicket, LateTicket])
def test_values_with_an_id_of_their_own_are_known_by_class_or_by_reading_again(class_: Any) -> None:
    schema: Schema[Any] = schema_of(class_)

    assert is_made_anew(schema, schema.validate_json("{}"), b"{}")
    given = schema.validate_json('{"id":"x"}')
    assert not is_made_anew(schema, given, b'{"id":"x"}')
    if class_ is not LateTicket:
        assert is_made_anew(schema, class_(), None)
    assert not is_made_anew(schema_of(Slots), Slots(), None)
