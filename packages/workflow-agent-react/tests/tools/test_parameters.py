import msgspec
from hypothesis import given
from hypothesis import strategies as st

from workflow_agent_react._errors import BadArguments
from workflow_agent_react.tools._parameters import parameters_of, untitled


def function(path: str, count: int = 1, names: tuple[str, ...] = ()) -> None: ...


def test_titles_go_and_names_of_fields_are_kept() -> None:
    schema = {
        "title": "gone",
        "properties": {"title": {"title": "Title", "type": "string"}, "b": {"$ref": "#/$defs/B"}},
        "$defs": {"B": {"title": "B", "enum": ["title"], "default": {"title": "of a book"}}},
    }

    assert untitled(schema) == {
        "properties": {"title": {"type": "string"}, "b": {"$ref": "#/$defs/B"}},
        "$defs": {"B": {"enum": ["title"], "default": {"title": "of a book"}}},
    }


def test_definitions_are_shared_and_get_a_number_where_two_have_the_same_name() -> None:
    def first() -> type[msgspec.Struct]:
        class Leaf(msgspec.Struct):
            a: int

        return Leaf

    def second() -> type[msgspec.Struct]:
        class Leaf(msgspec.Struct):
            b: int

        return Leaf

    one, other = first(), second()

    def take(x: object, y: object, z: object) -> None: ...

    take.__annotations__ = {"x": list[one], "y": list[other], "z": dict[str, one]}

    schema = parameters_of(take, {}).json_schema

    assert schema["properties"]["x"]["items"] == {"$ref": "#/$defs/Leaf"}
    assert schema["properties"]["y"]["items"] == {"$ref": "#/$defs/Leaf_2"}
    assert schema["properties"]["z"]["additionalProperties"] == {"$ref": "#/$defs/Leaf"}
    assert list(schema["$defs"]["Leaf"]["properties"]) == ["a"]
    assert list(schema["$defs"]["Leaf_2"]["properties"]) == ["b"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(
    arguments=st.one_of(
        st.text(),
        JSON.map(lambda value: msgspec.json.encode(value).decode()),
        st.dictionaries(st.sampled_from(["path", "count", "names", "x"]), JSON).map(
            lambda value: msgspec.json.encode(value).decode()
        ),
    )
)
def test_any_arguments_are_read_or_told_to_be_wrong(arguments: str) -> None:
    parameters = parameters_of(function, {})
    try:
        values = parameters.read(arguments)
    except BadArguments:
        return
    assert isinstance(values["path"], str)
    assert isinstance(values.get("count", 1), int)
    assert isinstance(values.get("names", ()), tuple)
