import contextlib
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_reactor import NotOneValue, find_json
from workflow_reactor.reply._json_text import (
    escape_controls,
    looks_cut,
    parse_strict,
    replace_all_surrogates,
)


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
        ('so {"a": 1}\n</think>\n{"a": 2}', {"a": 2}),
        ('{"a": "\\ud800 \\ud83d\\ude00 \\\\ud800"}', {"a": "\ufffd \U0001f600 \\ud800"}),
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


@pytest.mark.timeout(20)  # looking each key up among those before it took minutes
def test_a_doubled_key_is_found_among_very_many() -> None:
    pairs = ", ".join(f'"k{i}": {i}' for i in range(100_000))

    with pytest.raises(NotOneValue, match="the key 'k99999' stands twice"):
        parse_strict(f'{{{pairs}, "k99999": 0}}')


@given(st.dictionaries(st.text(), st.integers() | st.text(), min_size=1), st.sampled_from("ab\n"))
def test_any_object_is_found_in_a_fence(value: dict[str, object], word: str) -> None:
    text = f"{word}\n```json\n{json.dumps(value)}\n```"

    assert json.loads(find_json(text)) == value


tokens = st.sampled_from([
    *"{}[]:,\" \n\\\x00\ufeff\ud83d",
    *('{"a":', "1e999", "NaN", "\\ud800", "<think>", "</think>", "```json\n", "```", "true", "1"),
    "9" * 5000,
])  # fmt: skip


@given(st.text() | st.lists(tokens, max_size=12).map("".join))
def test_what_is_found_can_be_read_by_any_decoder_and_nothing_else_is_raised(text: str) -> None:
    with contextlib.suppress(NotOneValue):
        found = find_json(text)

        assert json.loads(found) == msgspec.json.decode(found)


objects = st.dictionaries(
    st.text(max_size=3),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(),
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=4,
    ),
    min_size=1,
    max_size=3,
)


@given(objects, st.booleans(), st.data())
def test_every_beginning_of_an_object_looks_cut_and_the_whole_does_not(
    value: dict[str, object], ascii: bool, data: st.DataObject
) -> None:
    text = json.dumps(value, ensure_ascii=ascii)
    length = data.draw(st.integers(1, len(text) - 1))

    assert looks_cut(text[:length])
    assert not looks_cut(text)


@pytest.mark.parametrize(
    "text", ["{'a': 1}", "{a}", '{"a": 1} and', "word", "[" * 100_000, "1" * 5000]
)
def test_what_is_merely_wrong_does_not_look_cut(text: str) -> None:
    assert not looks_cut(text)


@given(objects)
def test_raw_line_ends_in_strings_are_escaped_and_nothing_else_changes(
    value: dict[str, object],
) -> None:
    text = json.dumps(value, indent=1)
    raw = text.replace("\\n", "\n").replace("\\t", "\t")

    assert escape_controls(text) == text
    with contextlib.suppress(NotOneValue):
        assert parse_strict(escape_controls(raw)).keys() <= value.keys()


@given(st.text(st.characters()) | st.lists(tokens).map("".join))
def test_well_formed_text_has_no_half_pairs_and_stays_as_it_is(text: str) -> None:
    mended = replace_all_surrogates(text)

    mended.encode()
    assert replace_all_surrogates(mended) == mended


@pytest.mark.parametrize("depth", [150, 250, 990, 50_000])
def test_depth_has_one_limit_however_deep_the_caller_is(depth: int) -> None:
    text = '{"a":' * depth + "1" + "}" * depth

    if depth <= 200:
        assert parse_strict(text)
    else:
        with pytest.raises(NotOneValue, match="nested too deeply"):
            parse_strict(text)


def test_width_is_no_depth() -> None:
    assert len(parse_strict("[" + "[1]," * 300 + "[]]")) == 301


def test_a_text_full_of_open_brackets_is_given_up_soon() -> None:
    with pytest.raises(NotOneValue, match="broken or incomplete"):
        find_json("[x " * 100_000)
