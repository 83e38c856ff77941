"""What is stored is read back as the value that was given, or refused with its place."""

import dataclasses
import datetime as dt
import decimal
import enum
import math
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Union

import msgspec
import pydantic
import pytest
from pydantic import Field
from typing_extensions import TypedDict

from workflow_protocol import (
    END,
    START,
    DefinitionError,
    RoleDefinition,
    Schema,
    SchemaMismatch,
    WorkflowDefinition,
    schema_of,
    stored_form,
)

if TYPE_CHECKING:
    Absent = int


def in_cents(value: Any) -> int:
    return round(float(value) * 100)


class Money(pydantic.BaseModel):
    cents: Annotated[int, pydantic.BeforeValidator(in_cents)]


class Hidden(pydantic.BaseModel):
    key: int = Field(3, exclude=True)
    shown: int


class TwoNames(pydantic.BaseModel):
    size: int = Field(validation_alias="in", serialization_alias="out")


class Apples(pydantic.BaseModel):
    count: int

    @pydantic.field_serializer("count")
    def _in_words(self, value: int) -> str:
        return f"{value} apples"


class Inner(pydantic.BaseModel):
    text: pydantic.Json[list[int]]


class Doubled(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    count: int

    @pydantic.computed_field
    @property
    def twice(self) -> int:
        return self.count * 2


class Odd(pydantic.BaseModel):
    count: int = None  # pyright: ignore[reportAssignmentType] - as generated clients have it
    items: list[int] = ()  # pyright: ignore[reportAssignmentType]


class Small(pydantic.BaseModel):
    a: int = 1


class Large(pydantic.BaseModel):
    a: int = 1
    b: int = 2


class Either(pydantic.BaseModel):
    which: Union[Large, Small]  # noqa: UP007 - as it is found in the wild


class Normal(msgspec.Struct):
    count: int

    def __post_init__(self) -> None:
        self.count *= 2


class OddStruct(msgspec.Struct):
    count: int = None  # pyright: ignore[reportAssignmentType]


@dataclasses.dataclass
class Cat:
    lives: int = 9


@dataclasses.dataclass
class Dog:
    age: int


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


class Box(TypedDict):
    price: decimal.Decimal


@pytest.mark.parametrize(
    ("type_", "source"),
    [
        (Money, '{"cents":"12.50"}'),
        (Hidden, '{"key":5,"shown":1}'),
        (TwoNames, '{"in":1}'),
        (Apples, '{"count":1}'),
        (Inner, '{"text":"[1,2]"}'),
        (Doubled, '{"count":1}'),
        (Odd, "{}"),
        (Odd, '{"items":[1]}'),
        (Either, '{"which":{}}'),
        (Either, '{"which":{"a":1}}'),
        (Normal, '{"count":2}'),
        (OddStruct, "{}"),
        (list[Money], '[{"cents":"1"},{"cents":2}]'),
        (Money | Apples, '{"cents":"12.50"}'),
        (Box, '{"price":12345678901234567.89}'),
    ],
)
def test_the_json_that_a_model_wrote_is_kept_where_the_encoding_would_give_another_value(
    type_: Any, source: str
) -> None:
    schema = schema_of(type_)
    value = schema.validate_json(source)

    stored, now = stored_form(schema, value, source.encode())

    assert now == value
    assert type(now) is type(value)
    assert getattr(now, "model_fields_set", None) == getattr(value, "model_fields_set", None)
    assert schema.restore(stored) == value


@pytest.mark.parametrize("value", [TwoNames(**{"in": 3}), Inner(text="[1]"), Doubled(count=3)])  # pyright: ignore[reportArgumentType]
def test_a_value_that_code_made_is_stored_in_another_form_if_need_be(value: Any) -> None:
    class_: Any = value.__class__
    schema: Schema[Any] = schema_of(class_)

    stored, now = stored_form(schema, value)

    assert now == value
    assert schema.restore(stored) == value


def test_a_default_that_is_made_anew_is_stored_as_it_was_made() -> None:
    class Ticket(pydantic.BaseModel):
        id: uuid.UUID = Field(default_factory=uuid.uuid4)

    schema = schema_of(Ticket)
    value = schema.validate_json("{}")

    stored, now = stored_form(schema, value, b"{}")

    assert now == value == schema.restore(stored)


@pytest.mark.parametrize(
    ("type_", "value", "place"),
    [
        (Money, Money(cents=1), r"\$\.cents: 100 can't be stored"),  # it was read from 1
        (Normal, Normal(count=1), r"\$\.count: 2 can't be stored"),
        (Apples, Apples(count=1), r"\$\.count"),
        (list[float], [1.0, math.nan], r"\$\[1\]"),
        (Cat, Dog(age=1), r"\$: a value of type Cat is due, not Dog"),
        (Small, {"a": 1}, r"\$: a value of type Small is due, not dict"),
        (int, "x", r"\$|expected an integer"),
    ],
)
def test_what_can_t_be_kept_is_refused_with_its_place(type_: Any, value: Any, place: str) -> None:
    with pytest.raises(SchemaMismatch, match=place):
        stored_form(schema_of(type_), value)


@pytest.mark.parametrize(
    ("type_", "value"),
    [(list[int], (1, 2)), (Sequence[int], [1]), (float, 3), (set[int], frozenset({1}))],
)
def test_what_json_does_not_tell_apart_is_given_as_the_schema_has_it(
    type_: Any, value: Any
) -> None:
    stored, now = stored_form(schema_of(type_), value)

    assert now == schema_of(type_).restore(stored)


@pytest.mark.parametrize(
    ("type_", "source"),
    [
        (Cat | Dog, '{"age":3}'),
        (list[Cat | Dog], '[{"age":3},{"lives":1}]'),
        (Mixed, '"two"'),
        (Mixed, "1"),
        (pydantic.AwareDatetime, '"2026-01-01T00:00:00Z"'),
        (pydantic.AnyUrl, '"http://host/"'),
        (dt.timedelta, '"PT1H"'),
    ],
)
def test_one_library_that_can_is_enough(type_: Any, source: str) -> None:
    schema = schema_of(type_)
    value = schema.validate_json(source)

    assert schema.restore(stored_form(schema, value, source.encode())[0]) == value


class Secret(pydantic.BaseModel):
    keys: list[pydantic.SecretStr]


class Stream(pydantic.BaseModel):
    numbers: Iterable[int]


@dataclasses.dataclass
class Walk:
    steps: Iterator[int]


class Unknown:
    pass


@dataclasses.dataclass
class Holder:
    inner: list[Unknown]


class Corner(enum.Enum):
    TOP = (0, 0)
    END = (1, 1)


class Nothing(enum.Enum):
    pass


class Shape(pydantic.BaseModel):
    corners: list[Corner]


class NamedShape(pydantic.BaseModel):
    corners: list[Annotated[Corner, pydantic.BeforeValidator(lambda name: Corner[name])]]


class Kinds(pydantic.BaseModel):
    kind: type[int]


class CornerByName(pydantic.BaseModel):
    corner: Corner

    @pydantic.field_validator("corner", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return Corner[value] if isinstance(value, str) else value


@dataclasses.dataclass
class Late:
    inner: "Absent"


class LateModel(pydantic.BaseModel):
    inner: "Absent"


class LateStruct(msgspec.Struct):
    inner: "Absent"


@pytest.mark.parametrize(
    ("type_", "words"),
    [
        (Secret, r"\$\.keys\[\] is a secret, .* use str"),
        (pydantic.Secret[int], r"\$ is a secret"),
        (Stream, r"\$\.numbers can be read only once; use list"),
        (Walk, r"\$\.steps can be read only once; use list"),
        (Holder, r"\$\.inner\[\]: no JSON is known for Unknown; use built-in types"),
        (
            Shape,
            r"\$\.corners\[\]: the member 'TOP' has a value that no JSON gives; use members of",
        ),
        (list[Nothing], r"\$\[\]: is empty; use members of"),
        (Kinds, r"\$\.kind is a class, which no JSON gives; use Literal"),
        (Annotated[int, Field(ge="x")], "'ge' must be coercible to an integer; use built-in"),
        (Late, "the name 'Absent' is not known when the program runs"),
        (LateModel, "the name 'Absent' is not known when the program runs"),
        (LateStruct, "the name 'Absent' is not known when the program runs"),
    ],
)
def test_a_type_that_can_t_be_kept_is_refused_with_its_place_and_what_would_work(
    type_: Any, words: str
) -> None:
    role: RoleDefinition[Any] = RoleDefinition(name="keeper", system_prompt="", schema=type_)
    with pytest.raises(DefinitionError, match=rf"'keeper'\.schema: .*{words}"):
        WorkflowDefinition(
            table={START: role, role: END},
        )


@pytest.mark.parametrize(
    ("type_", "source"),
    [(NamedShape, b'{"corners":["TOP","END"]}'), (CornerByName, b'{"corner":"TOP"}')],
)
def test_members_that_a_validator_finds_by_their_names_are_kept(type_: Any, source: bytes) -> None:
    role: RoleDefinition[Any] = RoleDefinition(name="keeper", system_prompt="", schema=type_)
    WorkflowDefinition(table={START: role, role: END})
    schema: Schema[Any] = schema_of(type_)
    value = schema.validate_json(source)

    stored, back = stored_form(schema, value, source)

    assert stored == source
    assert back == value


class Shouted(pydantic.BaseModel):
    word: Annotated[Any, pydantic.BeforeValidator(lambda value: value.lower())]


class Picky(msgspec.Struct):
    word: str

    def __post_init__(self) -> None:
        raise KeyError(self.word)


@pytest.mark.parametrize(
    ("type_", "source", "words"),
    [(Shouted, '{"word": 1}', "AttributeError: 'int'"), (Picky, '{"word": "x"}', "KeyError: 'x'")],
)
def test_whatever_a_validator_raises_is_told_as_a_misfit_and_logged(
    type_: Any, source: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(SchemaMismatch, match=words):
        schema_of(type_).validate_json(source)
    assert type_.__name__ in caplog.text
