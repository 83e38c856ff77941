"""Texts in the columns of a terminal."""

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from uwf.terminal._cells import columns_of, fit, hang, split_columns

TEXTS = st.text(st.sampled_from("ab 漢字é\u0301\u200b👍🏽\t\n\x1b…"), max_size=60)


def test_lines_break_at_spaces_and_wide_characters_count_twice() -> None:
    assert split_columns("one two three", 8) == ["one two", "three"]
    assert split_columns("フォルダを確認", 6) == ["フォル", "ダを確", "認"]
    assert split_columns("x" * 10, 4) == ["xxxx", "xxxx", "xx"]
    assert split_columns("", 4) == [""]


def test_what_is_cut_fits_with_its_mark() -> None:
    assert fit("写真を確認", 10) == "写真を確認"
    assert fit("写真を確認", 9) == "写真を確…"
    assert fit("写真を確認", 8) == "写真を…"
    assert fit("one\ntwo", 7) == "one two"
    assert fit("one two", 0) == ""


@given(TEXTS, st.integers(1, 40))
def test_a_cut_line_is_never_wider_than_there_is_room(text: str, columns: int) -> None:
    line = fit(text, columns)

    assert cell_len(line) == columns_of(line) <= columns
    assert line.isprintable()


@given(st.text(st.sampled_from("ab 漢字é"), max_size=80), st.integers(0, 30), st.integers(45, 90))
def test_a_broken_line_keeps_its_words_and_the_width(text: str, indent: int, width: int) -> None:
    own = len(text) - len(text.lstrip(" "))
    rows = hang(text, indent, width)

    if own < 5:
        assert all(indent + columns_of(row.rstrip()) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")
    assert hang(text, indent, None) == [text]
