import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_agent_react._errors import BadArguments
from workflow_agent_react.tools._parameters import parameters_of, plain_schema


def function(path: str, count: int = 1, names: tuple[str, ...] = ()) -> None: ...


def test_titles_and_references_are_resolved_and_names_of_fields_are_kept() -> None:
    schema = {
        "$ref": "#/$defs/A",
        "title": "gone",
        "$defs": {
            "A": {"title": "A", "properties": {"title": {"title": "Title", "type": "string"},
                                               "b": {"anyOf": [{"$ref": "#/$defs/B"}, {}]}}},
            "B": {"title": "B", "enum": ["title"], "default": {"title": "of a book"}},
        },
    }  # fmt: skip

    assert plain_schema(schema) == {
        "properties": {
            "title": {"type": "string"},
            "b": {"anyOf": [{"enum": ["title"], "default": {"title": "of a book"}}, {}]},
        }
    }


def test_a_schema_that_contains_itself_is_refused() -> None:
    schema = {"$ref": "#/$defs/A", "$defs": {"A": {"items": {"$ref": "#/$defs/A"}}}}

    with pytest.raises(RecursionError, match="#/\\$defs/A"):
        plain_schema(schema)


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
