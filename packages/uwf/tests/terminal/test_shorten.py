"""Long texts and arguments, laid out for people."""

import pytest

from uwf.terminal._shorten import Cut, argument_lines, changed_arguments, cut_lines
from uwf.terminal._transcript import Line, lay_out


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ("{}", []),
        ('{"n": 1.10, "big": 123456789012345678901234567890}',
         ["n=1.10  big=123456789012345678901234567890"]),
        ('{"path": "a", "content": "x\\ny"}', ['path="a"  content="x\\ny"']),
        (f'{{"path": "a", "content": "{"x" * 80}\\ny"}}',
         ['path="a"', "content:", f"  {'x' * 80}", "  y"]),
        ('read_file("a")', ['read_file("a")']),
    ],
)  # fmt: skip
def test_arguments_stand_on_one_line_or_below_each_other(arguments: str, shown: list[str]) -> None:
    assert argument_lines(arguments, Cut()) == shown


@pytest.mark.parametrize(
    ("written", "used", "shown"),
    [
        ('{"path": "a"}', '{"path":"a","depth":3}', ["depth=3"]),
        ('{"path": "a", "x": 1}', '{"path":"b"}', ["", 'path="b"', "without x"]),
        ('{"path": "a"}', '{"path":"a"}', ["the same values"]),
        ("no JSON", '{"path":"a"}', ["", '{"path":"a"}']),
    ],
)
def test_of_other_arguments_only_those_that_differ_are_shown(
    written: str, used: str, shown: list[str]
) -> None:
    assert changed_arguments(written, used, Cut()) == shown


def test_what_is_left_out_is_counted() -> None:
    assert cut_lines("\n".join("abcdefgh"), Cut(lines=5)) == [
        "a", "b", "c", "[… 4 lines, 8 characters left out …]", "h",
    ]  # fmt: skip
    assert cut_lines("x" * 20, Cut(chars=8)) == [f"{'x' * 6}[… 12 characters left out …]xx"]
    assert cut_lines("x\n" * 200, None) == ["x"] * 200


def test_the_rest_of_a_broken_line_stands_further_in_than_its_beginning() -> None:
    text = '    "a": "one two three four five six"'
    assert lay_out([Line(2, text)], 30) == [
        '      "a": "one two three', "\n", '        four five six"',
    ]  # fmt: skip
    assert lay_out([Line(2, text)], None) == [f"  {text}"]
