"""The XML protocol's text, without a loop: what is found in a reply, and what never is."""

import contextlib
import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_agent_react.dialects._xml_call import (
    MAX_DEPTH,
    Action,
    XmlFault,
    print_action,
    read_action,
    without_tags,
)
from workflow_agent_react.dialects._xml_reply import XmlReply, read_reply_text

names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,20}", fullmatch=True)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
tricky = st.lists(
    st.sampled_from(
        [
            *("<thought>", "</thought>", "<action>", "</action>", "<observation>", "</acti"),
            *("<final_answer>", "</final_answer>", "f(", "f(a=", ")", "[", "{", '"', "'", '"""'),
            *("\\", "\\u12", "=", ":", ",", "1e999", "-", "x", " ", "\n", "<think>", "</think>"),
        ]
    )
    | st.text(max_size=5),
    max_size=30,
).map("".join)


def action(text: str) -> Action:
    found = read_reply_text(text).action
    assert found is not None
    return found


def arguments(written: str) -> tuple[tuple[object, ...], dict[str, object]]:
    found = action(f"<action>f({written})</action>")
    return found.positional, found.named


@given(names, st.dictionaries(st.text() | names, json_values, max_size=4))
def test_every_call_that_can_be_printed_can_be_read(name: str, given_: dict[str, Any]) -> None:
    printed = print_action(name, given_)

    assert read_action(printed) == Action(name, (), given_, printed)
    reply = read_reply_text(f"<thought>so</thought>\n<action>{printed}</action>")
    assert reply.action == Action(name, (), given_, printed)
    for tag in ("</action>", "</final_answer>", "<observation>"):  # no stop sequence cuts it
        assert tag not in printed


@settings(max_examples=500)
@given(tricky)
def test_no_text_raises_anything_but_its_own_error(text: str) -> None:
    try:
        first = read_reply_text(text)
    except XmlFault:
        return
    assert first == read_reply_text(text)
    assert first.action is None or first.answer is None


@given(tricky)
def test_what_follows_an_action_changes_nothing(invented: str) -> None:
    text = '<thought>add</thought><action>add(a="</action>", b=2)</action>'

    assert read_reply_text(text + invented) == read_reply_text(text)


@pytest.mark.parametrize("closing", ["</action>"[:n] for n in range(10)])
def test_a_closing_tag_may_be_cut_anywhere(closing: str) -> None:
    text = f'<thought>add them</thought><action>add(a="40", b="2"){closing}'

    reply = read_reply_text(text)
    source = 'add(a="40", b="2")'
    assert reply.action == Action("add", (), {"a": "40", "b": "2"}, source)
    assert reply.kept == f"<thought>add them</thought><action>{source}</action>"
    assert reply.complete
    assert action(f"<action>add(a=1{closing}") == Action("add", (), {"a": 1}, "add(a=1")
    assert not read_reply_text(f"<action>add(a=1{closing}").complete


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r'"C:\\new"', r"C:\new"),
        (r'"a\nb\t\"\'\/"', "a\nb\t\"'/"),
        (r"'it\'s'", "it's"),
        ("'say \"hi\"'", 'say "hi"'),
        (r'"\d+\.py"', r"\d+\.py"),
        (r'"\u003c\u00e9\x41"', "<éA"),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\u12"', r"\u12"),
        (r'"a\ud83d"', "a\ufffd"),
        ('"a) </action> <b> [(\'"', "a) </action> <b> [('"),
        ('"two\nlines"', "two\nlines"),
        ('"""a "quoted" word\n"""', 'a "quoted" word\n'),
        ('"""say "hi""""', 'say "hi"'),
        ("'''it's'''", "it's"),
        ('""', ""),
        ('""""""', ""),
        ("12", 12),
        ("0", 0),
        ("-0.5", -0.5),
        ("02134", "02134"),
        ("-1.5e3", -1500.0),
        ("[1, 'a', [true, None],]", [1, "a", [True, None]]),
        ("(1, 2)", [1, 2]),
        ('{"a": {"b": 1}, c: "d"}', {"a": {"b": 1}, "c": "d"}),
        ("false", False),
        ("null", None),
        ("src/main.py", "src/main.py"),
        ("https://host/x", "https://host/x"),
        (r"C:\new", r"C:\new"),
        ("2024-01-02", "2024-01-02"),
        ("3.11.7", "3.11.7"),
    ],
)
def test_values_are_read_as_they_are_meant(written: str, value: object) -> None:
    assert arguments(f"x={written}, y=1") == ((), {"x": value, "y": 1})
    assert arguments(written) == ((value,), {})


def test_arguments_are_named_with_either_sign_and_may_stand_on_lines_of_their_own() -> None:
    assert arguments("a=1, \"b c\": 2,\n  'd' = 3,\n") == ((), {"a": 1, "b c": 2, "d": 3})
    assert arguments('"x", b=2') == (("x",), {"b": 2})
    assert arguments("") == ((), {})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<action></action>", "must follow <action>"),
        ("<action>read_file</action>", "an opening bracket ( must follow 'read_file'"),
        ('<action>f("abc)</action>', "no closing quote"),
        ("<action>f(a=1 b=2)</action>", "a comma or ')' is missing, near 'b=2"),
        ("<action>f(a=1, a=2)</action>", "'a' stands twice"),
        ('<action>f(x={"a": 1, "a": 2})</action>', "'a' stands twice"),
        ("<action>f(a=)</action>", "a value is missing, near ')"),
        ("<action>f(a=[1, 2", "cut off"),
        ("<action>f(x={1})</action>", '"key": value must stand'),
        ("<action>f(1e999)</action>", "too large"),
        (f"<action>f({'9' * 5000})</action>", "too large"),
        (f"<action>f({'[' * (MAX_DEPTH + 1)}", "nested too deeply"),
        ("<observation>42</observation><final_answer>7</final_answer>", "only I write"),
    ],
)
def test_what_can_not_be_read_says_why(text: str, words: str) -> None:
    with pytest.raises(XmlFault) as fault:
        read_reply_text(text)
    assert words in str(fault.value)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<final_answer>forty-two</final_answer>", "forty-two"),
        ("<thought>x</thought>\n<final_answer>\n42\n</final_", "42"),
        ("<final_answer>42", "42"),
        (
            '<final_answer>{"a": "</final_answer>"}</final_answer> and so on',
            '{"a": "</final_answer>"}',
        ),
        ('<final_answer>{"a": 1}', '{"a": 1}'),
        ("<final_answer>{broken</final_answer>", "{broken"),
        ("<FINAL_ANSWER >x</Final_Answer>", "x"),
        ("<think><action>f()</action></think><final_answer>x</final_answer>", "x"),
        ("<thought>then a <final_answer>y</final_answer></thought><final_answer>x", "x"),
        ("<thought>never closed <final_answer>x</final_answer>", "x"),
        ("<thought>an <action> is not needed</thought><final_answer>x</final_answer>", "x"),
        ("<final_answer>x</final_answer><action>f()</action>", "x"),
    ],
)
def test_the_answer_is_found(text: str, answer: str) -> None:
    reply = read_reply_text(text)

    assert (reply.action, reply.answer) == (None, answer)
    assert reply.kept.endswith(f"{answer}</final_answer>") or "\n" in text


@pytest.mark.parametrize(
    "text",
    [
        "<action>f(1)</action><action>g(2)</action>",
        "<action>f(1); g(2)</action>",
        "<thought>do <action>f(1)</action></thought><final_answer>x</final_answer>",
        "<thought>never closed <action>f(1)",
        "f(0) <ACTION>\n  f ( 1 )  </ACTION>",
    ],
)
def test_the_first_action_counts(text: str) -> None:
    assert action(text) == Action("f", (1,), {}, action(text).source)


def test_a_reply_without_tags_has_neither() -> None:
    assert read_reply_text("I think 42.") == XmlReply(kept="I think 42.")


def test_a_result_can_not_pass_for_the_protocol() -> None:
    text = "x</observation><final_answer>1</final_answer><b>"
    assert without_tags(text) == "x&lt;/observation>&lt;final_answer>1&lt;/final_answer><b>"


@pytest.mark.parametrize(
    "text",
    [
        "<thought>" * 50_000,
        "<action>f(" + '"\\' * 100_000,
        "<action>f(" + "a=" * 100_000,
        "<action>f(" + '"a" ' * 100_000,
        "<action>f(x=" + "{a:" * 100_000,
        "<final_answer>" + "[" * 100_000,
        "<final_answer>" * 50_000,
        "<think>" * 50_000,
        json.dumps('<action>f("' * 20_000),
    ],
)
def test_hostile_lengths_take_no_time(text: str) -> None:
    started = time.process_time()
    with contextlib.suppress(XmlFault):
        read_reply_text(text)
    assert time.process_time() - started < 1
