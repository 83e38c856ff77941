import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor import NotOneValue, find_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"answer": 42}', {"answer": 42}),
        (
            '```json\n{"answer": 42, "note": "uses ``` inside"}\n```',
            {"answer": 42, "note": "uses ``` inside"},
        ),
        ('Sure! Here it is:\n```\n{"answer": 42}\n```\nAnything else?', {"answer": 42}),
        ('<think>{"answer": 1}</think>{"answer": 42}', {"answer": 42}),
        ('```json\n{"answer": 42}', {"answer": 42}),
        ('\ufeff {"note": "<think>kept"}', {"note": "<think>kept"}),
        ('{"a": 1} or {"a":1}', {"a": 1}),
        ('use {braces} like {"a": 1}', {"a": 1}),
        ("the list is [1, 2]", [1, 2]),
        ("42", 42),
    ],
)
def test_the_one_value_is_found(text: str, value: object) -> None:
    assert json.loads(find_json(text)) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON value"),
        ("no json here", "no JSON value"),
        ('{"a": 1} {"a": 2}', "2 different JSON values"),
        ('{"a": {"b": 1}, "c": ', "broken or incomplete"),
        ('<think>{"a": 1}', "no JSON value"),
        ('so: {"a": 1, "a": 2}', "stands twice"),
        ('{"a": ' * 100_000, "broken or incomplete|nested too deeply"),
    ],
)
def test_what_is_not_one_value_is_an_error_and_never_a_guess(text: str, reason: str) -> None:
    with pytest.raises(NotOneValue, match=reason):
        find_json(text)


@given(st.dictionaries(st.text(), st.integers() | st.text(), min_size=1), st.sampled_from("ab\n"))
def test_any_object_is_found_in_a_fence(value: dict[str, object], word: str) -> None:
    text = f"{word}\n```json\n{json.dumps(value)}\n```"

    assert json.loads(find_json(text)) == value


@given(st.text())
def test_nothing_else_is_raised(text: str) -> None:
    with contextlib.suppress(NotOneValue):
        json.loads(find_json(text))
