import contextlib
import datetime as dt
import decimal
import enum
import ipaddress
import json
import subprocess
import sys
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypedDict  # pydantic wants this one before Python 3.12

from workflow_protocol import SchemaMismatch, SchemaTypeError, schema_of


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Record(msgspec.Struct):
    count: int
    next: "Record | None" = None


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    count: int
    label: str | None = None


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


@dataclass
class Plain:
    count: int
    when: dt.datetime
    price: decimal.Decimal
    colour: Colour


@dataclass
class HoldsModel:
    model: Model


WHEN = dt.datetime(2026, 1, 2, tzinfo=dt.UTC)

VALUES: list[tuple[Any, Any]] = [
    (int, 3),
    (str, "é"),
    (type(None), None),
    (Literal["go", "stop"], "go"),
    (int | str, "x"),
    (list[Record], [Record(1, Record(2))]),
    (dict[str, int], {"a": 1}),
    (tuple[int, str], (1, "a")),
    (Record, Record(1)),
    (Model, Model(count=1)),
    (Model | None, None),
    (list[Model], [Model(count=1, label="l")]),
    (Movie, {"title": "M"}),
    (Plain, Plain(1, WHEN, decimal.Decimal("1.50"), Colour.BLUE)),
    (HoldsModel, HoldsModel(Model(count=2))),
    (bytes, b"\x00\xff"),
]


@pytest.mark.parametrize(("type_", "value"), VALUES, ids=lambda each: str(each)[:30])
def test_a_value_of_any_supported_type_survives_encoding(type_: Any, value: Any) -> None:
    schema = schema_of(type_)

    assert schema.validate_json(schema.encode(value)) == value
    assert schema.type == type_


def test_a_misfit_names_its_path_and_what_was_expected() -> None:
    with pytest.raises(SchemaMismatch) as by_msgspec:
        schema_of(list[Record]).validate_json('[{"count": 1}, {"count": "x"}]')
    with pytest.raises(SchemaMismatch) as by_pydantic:
        schema_of(list[Model]).validate_json('[{"count": "x"}, {"other": 1}]')

    assert str(by_msgspec.value) == "$[1].count: expected an integer, got a string"
    assert [fault.place for fault in by_pydantic.value.faults] == [
        "$[0].count",
        "$[1].count",
        "$[1].other",
    ]


class Cat(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    lives: Annotated[int, msgspec.Meta(ge=1)] = 9


class Dog(msgspec.Struct, tag=True):
    born: dt.date | None = None
    mood: Literal["good", "bad"] = "good"
    coat: Colour = Colour.RED
    friend: "Cat | Dog | None" = None
    weight: decimal.Decimal = decimal.Decimal(1)
    photo: bytes = b""


class Lion(pydantic.BaseModel):
    kind: Literal["lion"]
    mane: bool = True


class Zebra(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    kind: Literal["zebra"]
    stripes: Annotated[int, pydantic.Field(gt=0)] = 20
    born: dt.date | None = None
    herd: list["Zebra"] = []

    @pydantic.field_validator("stripes")
    @classmethod
    def not_thirteen(cls, value: int) -> int:
        if value == 13:
            raise ValueError("thirteen is bad luck")
        return value


Animal = Annotated[Lion | Zebra, pydantic.Field(discriminator="kind")]


@pytest.mark.parametrize(
    ("type_", "text", "lines"),
    [
        (Dog, '{"type": "Dog", "born": "soon"}', ["$.born: expected a date such as 2026-01-31"]),
        (
            Dog,
            '{"type": "Dog", "mood": "sad"}',
            ['$.mood: expected "bad" or "good", got \'sad\''],
        ),
        (
            Dog,
            '{"type": "Dog", "friend": {"type": "Dog", "coat": "grey"}}',
            ['$.friend.coat: expected "blue" or "red", got \'grey\''],
        ),
        (Dog, '{"type": "Dog", "weight": "fat"}', ["$.weight: expected a decimal number"]),
        (Dog, '{"type": "Dog", "photo": "?"}', ["$.photo: expected a base64 string"]),
        (Cat | Dog, '{"type": "Cow"}', ['$.type: expected "Cat" or "Dog", got \'Cow\'']),
        (Cat | Dog, '{"lives": 1}', ["$.type: required, but missing"]),
        (list[Cat | Dog], '[{"type": "Cat", "tail": 1}]', ["$[0].tail: unknown field"]),
        (Cat, '{"type": "Cat", "lives": 0}', ["$.lives: expected an integer >= 1"]),
        (int | None, '"x"', ["expected an integer or null, got a string"]),
        (tuple[int, str], "[1]", ["expected an array of length 2"]),
        (
            Zebra,
            '{"kind": "horse", "stripes": 0, "born": 1.5, "wings": 2, "herd": {}}',
            [
                "$.kind: should be 'zebra'",
                "$.stripes: should be greater than 0",
                "$.born: Datetimes provided to dates should have zero time - e.g. be exact dates",
                "$.herd: expected an array, got an object",
                "$.wings: unknown field",
            ],
        ),
        (Zebra, "[]", ["$: expected an object, got an array"]),
        (Zebra, '{"kind": "zebra", "stripes": 13}', ["$.stripes: thirteen is bad luck"]),
        (
            list[Animal],
            '[{"kind": "zebra", "stripes": "many", "herd": [{}]}, {"kind": "cow"}]',
            [
                "$[0].stripes: expected an integer, got 'many'",
                "$[0].herd[0].kind: required, but missing",
                "$[1]: the tag 'cow' found using 'kind' does not match any of the expected tags: "
                "'lion', 'zebra'",
            ],
        ),
        (
            Lion | Zebra,
            '{"kind": "zebra", "stripes": null}',
            ["$.kind: should be 'lion'", "$.stripes: expected an integer, got null"],
        ),
    ],
)
def test_a_misfit_is_told_in_words_that_a_model_can_act_on(
    type_: Any, text: str, lines: list[str]
) -> None:
    with pytest.raises(SchemaMismatch) as caught:
        schema_of(type_).validate_json(text)

    assert str(caught.value).splitlines() == lines


def test_many_misfits_are_ten_lines_and_a_count() -> None:
    with pytest.raises(SchemaMismatch) as caught:
        schema_of(list[Model]).validate_json("[" + ",".join(["{}"] * 25) + "]")

    assert len(caught.value.faults) == 25
    assert str(caught.value).splitlines()[9:] == [
        "$[9].count: required, but missing",
        "and 15 more",
    ]


@pytest.mark.parametrize("type_", [Record, Model])
@pytest.mark.parametrize("text", ["", "{", "nonsense", '{"count": 1}{"count": 1}', "\ud800"])
def test_text_that_is_not_json_is_a_mismatch(type_: type[object], text: str) -> None:
    with pytest.raises(SchemaMismatch):
        schema_of(type_).validate_json(text)


@given(st.text() | st.binary())
def test_nothing_but_a_mismatch_is_raised_for_any_input(data: str | bytes) -> None:
    for type_ in (Record, Model, list[int]):
        with contextlib.suppress(SchemaMismatch):
            schema_of(type_).validate_json(data)


def test_deep_nesting_is_a_mismatch() -> None:
    with pytest.raises(SchemaMismatch):
        schema_of(list[Any]).validate_json("[" * 100_000)


def test_pydantic_constraints_are_not_lost_on_plain_types() -> None:
    class Score(TypedDict):
        points: Annotated[int, pydantic.Field(gt=0)]

    with pytest.raises(SchemaMismatch, match=r"points"):
        schema_of(Score).validate_json('{"points": 0}')


def test_msgspec_constraints_hold() -> None:
    with pytest.raises(SchemaMismatch):
        schema_of(list[Annotated[int, msgspec.Meta(gt=0)]]).validate_json("[0]")


def test_a_type_that_mixes_both_libraries_is_refused_with_the_reason() -> None:
    with pytest.raises(SchemaTypeError, match=r"mixes msgspec Structs and pydantic") as refusal:
        schema_of(tuple[Record, dict[str, list[Model]]])

    assert "$[] is of msgspec" in str(refusal.value)
    assert "$[][][] is of pydantic" in str(refusal.value)


class Opaque:
    pass


@pytest.mark.parametrize("type_", [Opaque, list[Opaque], object()])
def test_a_type_that_nothing_validates_is_refused(type_: Any) -> None:
    with pytest.raises(SchemaTypeError, match=r"can't be used as a schema"):
        schema_of(type_)


def test_json_schema_is_a_fresh_copy_with_the_root_in_place() -> None:
    first = schema_of(Model).json_schema()
    first["properties"].clear()

    assert schema_of(Model).json_schema()["properties"].keys() == {"count", "label"}
    assert schema_of(Plain).json_schema()["type"] == "object"
    recursive = schema_of(Record).json_schema()
    assert recursive["type"] == "object"
    assert recursive["$defs"].keys() == {"Record"}


def test_unhashable_annotations_work() -> None:
    type_ = Annotated[int, msgspec.Meta(extra_json_schema={"examples": [1]})]

    assert schema_of(type_).json_schema() == {"type": "integer", "examples": [1]}


def test_pydantic_is_not_imported_for_other_types() -> None:
    script = (
        "import sys, msgspec, workflow_protocol as w\n"
        "class R(msgspec.Struct):\n    a: int\n"
        "w.schema_of(R).validate_json(b'{\"a\":1}')\n"
        "print('pydantic' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)

    assert done.stdout.decode().strip() == "False"


def test_titles_are_short() -> None:
    assert schema_of(Model).title == "Model"
    assert json.loads(schema_of(Model).encode(Model(count=1))) == {"count": 1, "label": None}
    assert schema_of(Literal["a"]).title == "Literal['a']"


def test_words_of_addresses_and_tags_are_whole_sentences() -> None:
    with pytest.raises(SchemaMismatch) as fault:
        schema_of(ipaddress.IPv6Network).validate_json('"x"')

    assert str(fault.value) == "$: is not a valid IPv6 network"


class Flavoured(pydantic.BaseModel):
    flavours: frozenset[str] = frozenset({"vanilla", "lemon", "plum", "fig"})


def test_the_default_of_a_set_has_one_order_in_the_json_schema() -> None:
    schema = schema_of(Flavoured).json_schema()

    assert schema["properties"]["flavours"]["default"] == ["fig", "lemon", "plum", "vanilla"]
