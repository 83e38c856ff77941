from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from workflow_agent_react.workspace import _patch
from workflow_agent_react.workspace._encoding import read_text
from workflow_agent_react.workspace._patch import Edit, Patched, PatchError


def apply_edits(data: bytes, edits: Sequence[Edit]) -> Patched:
    text = read_text(data)
    if text is None:
        raise PatchError("it is no text")
    return _patch.apply_edits(text, edits)


def patched(data: bytes, *edits: Edit) -> bytes:
    return apply_edits(data, edits).data


def refusal(data: bytes, *edits: Edit) -> str:
    with pytest.raises(PatchError) as caught:
        apply_edits(data, edits)
    return str(caught.value)


def test_a_crlf_file_keeps_its_mark_its_endings_and_its_missing_last_newline() -> None:
    data = "\ufeffone\r\ntwo\r\nthree\r\nfour".encode()
    edit = Edit("two\nthree\n", "two\nTHREE\nmore\n")

    after = patched(data, edit)

    assert after == "\ufeffone\r\ntwo\r\nTHREE\r\nmore\r\nfour".encode()
    assert patched(after, Edit(edit.new, edit.old)) == data


def test_in_a_mixed_file_only_the_touched_line_changes() -> None:
    data = b"a\r\nb\nc\r\n (mixed)"

    after = patched(data, Edit("b", "B"))

    assert after == b"a\r\nB\nc\r\n (mixed)"
    assert patched(after, Edit("B", "b")) == data


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("a\nb\nc\n", "a\nx\nb\nc\n", b"a\r\nx\r\nb\nc\r\n"),
        ("a\nb\nc\n", "A\nB\nC\n", b"A\r\nB\nC\r\n"),
        ("b\nc", "b\nx\ny\nc", b"a\r\nb\nx\ny\nc\r\n"),
        ("b\n", "", b"a\r\nc\r\n"),
        ("a\r\nb", "z\r\nb", b"z\r\nb\nc\r\n"),
    ],
)
def test_kept_lines_keep_their_ending_and_new_ones_take_that_of_their_neighbour(
    old: str, new: str, after: bytes
) -> None:
    assert patched(b"a\r\nb\nc\r\n", Edit(old, new)) == after


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
def test_other_encodings_come_back_as_they_were(encoding: str) -> None:
    mark = "\ufeff".encode("utf-16-be") if encoding == "utf-16-be" else b""

    after = patched(mark + "grün\r\nrot".encode(encoding), Edit("rot", "größer"))

    assert after == mark + "grün\r\ngrößer".encode(encoding)


def test_bytes_that_are_not_utf_8_are_kept() -> None:
    assert patched(b"caf\xe9\nx\n", Edit("x", "y")) == b"caf\xe9\ny\n"


def test_a_cut_utf_16_file_is_refused() -> None:
    assert "not valid utf-16-le" in refusal(b"\xff\xfea\0b", Edit("a", "b"))


def test_a_text_file_is_not_made_binary() -> None:
    assert "new has a null character" in refusal(b"a", Edit("a", "b\0"))


@pytest.mark.parametrize(
    ("data", "edit", "after"),
    [
        ("\x1b[31mred\x1b[0m text\n", Edit("red", "blue"), "\x1b[31mblue\x1b[0m text\n"),
        ("\x1b[31mred\x1b[0m text\n", Edit("red text", "red word"), "\x1b[31mred\x1b[0m word\n"),
        ("\x1b[31mred\x1b[0m text\n", Edit("red text", "a text"), "\x1b[31ma\x1b[0m text\n"),
        ("a\x1b[1mb\x1b[0mc\n", Edit("abc", "xyz"), "xyz\n"),
        ("a\x07b\r\nc\x1b[0md\r\n", Edit("ab\nc", "ab\nx\nc"), "a\x07b\r\nx\r\nc\x1b[0md\r\n"),
        (" 10%\r100%\ndone\n", Edit("100%\ndone", "100%\n"), " 10%\r100%\n\n"),
        ("a\n 10%\r\x1b[2K100%\r\n", Edit("a\n100%\n", "x\n100%\n"), "x\n 10%\r\x1b[2K100%\r\n"),
        ("\x1b[1ma\n\x1b[1ma\n", Edit("a\n", "b\n", True), "\x1b[1mb\n\x1b[1mb\n"),
        ("\x0cpage\x0b two\n", Edit("page two", "page 2"), "\x0cpage\x0b 2\n"),
        ("\x1b[31mred\x1b[0m\n", Edit("\x1b[31mred", "\x1b[32mgreen"), "\x1b[32mgreen\x1b[0m\n"),
    ],
)  # fmt: skip
def test_text_is_found_beside_control_codes_which_stay(data: str, edit: Edit, after: str) -> None:
    assert patched(data.encode(), edit).decode() == after


CODED = st.lists(st.sampled_from(["a", "b", "é", "\n", "\r\n", "\x1b[31m", "\x1b[0m", "\x07"]))


@settings(suppress_health_check=[HealthCheck.filter_too_much])  # most short texts occur twice
@given(CODED, st.data())
def test_an_edit_of_what_is_shown_leaves_all_codes_outside_of_it(
    pieces: list[str], data: st.DataObject
) -> None:
    plain = [
        piece.replace("\r", "") if len(piece) < 3 and piece != "\x07" else "" for piece in pieces
    ]
    start = data.draw(st.integers(0, len(pieces)))
    end = data.draw(st.integers(start, len(pieces)))
    old = "".join(plain[start:end])
    assume(old and _once("".join(plain), old))

    after = patched("".join(pieces).encode(), Edit(old, "X")).decode()

    first, last = (
        next(index for index in indexes if plain[index])
        for indexes in (range(start, end), range(end - 1, start - 1, -1))
    )
    assert after == "".join([*pieces[:first], "X", *pieces[last + 1 :]])


def test_replacements_are_literal() -> None:
    assert patched(b"x", Edit("x", r"\1 $& \g<0>")) == rb"\1 $& \g<0>"


def test_text_that_occurs_twice_is_refused_with_its_lines() -> None:
    message = refusal(b"x\ny\nx\n", Edit("x", "z"))

    assert message == (
        "old occurs 2 times, at lines 1, 3; add surrounding lines to old so that it occurs once, "
        "or set replace_all"
    )


def test_a_great_many_occurrences_are_not_all_counted() -> None:
    assert refusal(b"a" * 1_000_000, Edit("a", "b")).startswith(
        "old occurs more than 10000 times, at lines 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, …; add"
    )
    assert refusal(b"a" * 1_000_000, Edit("a", "b", replace_all=True)) == (
        "old occurs more than 10000 times; use shell_exec with sed"
    )


@pytest.mark.timeout(10)
def test_a_long_text_that_is_like_the_file_everywhere_is_answered_soon() -> None:
    lines = [f"{n:05}" + "ab" * 190 + f"{n:05}" for n in range(5_000)]
    other = [line.replace("ab", "ba") for line in lines]

    for old in ("x" + other[17], "\n".join(other), "\n".join([lines[0], *other])):
        message = refusal("\n".join(lines).encode(), Edit(old, ""))
        assert len(message) < 24 * 450


def test_overlapping_occurrences_are_ambiguous_too() -> None:
    assert "old occurs 2 times" in refusal(b"aaa", Edit("aa", "b"))
    assert patched(b"aaa", Edit("aa", "b", replace_all=True)) == b"ba"


def test_replace_all_replaces_each_and_tells_the_lines_of_the_new_file() -> None:
    result = apply_edits(b"x\r\ny\r\nx\r\n", [Edit("x", "1\n2", replace_all=True)])

    assert result.data == b"1\r\n2\r\ny\r\n1\r\n2\r\n"
    assert result.lines == (1, 4)


def test_edits_build_on_each_other_and_lines_are_those_of_the_end_result() -> None:
    result = apply_edits(b"a\nb\nc\n", [Edit("c", "d"), Edit("a\n", "a\na\n"), Edit("d", "e")])

    assert result.data == b"a\na\nb\ne\n"
    assert result.lines == (1, 4)


def test_one_edit_that_does_not_fit_undoes_all() -> None:
    message = refusal(b"a\nb\n", Edit("a", "A"), Edit("zzz", "y"))

    assert message.startswith("edit 2 of 2: old does not occur in the file")
    assert message.endswith("nothing changed")


@pytest.mark.parametrize(
    ("data", "edit", "message"),
    [
        (b"a", Edit("", "x"), "old is empty; give the exact text to replace, or use write_file"),
        (b"a", Edit("a", "a"), "old and new are the same"),
        (b"a\r\n", Edit("a\r\n", "a\n"), "old and new are the same"),
        (b"a\n", Edit("1|a", "b"), "leave out the line numbers that read_file puts"),
        (b"a\nb", Edit("b\n", "c\n"), "the file has no newline at its end"),
        (b"a\n", Edit("entirely different", "c"), "nor anything like it; call read_file"),
        (b"", Edit("a", "c"), "nor anything like it"),
    ],
)
def test_an_edit_that_cannot_be_made_says_what_to_do(data: bytes, edit: Edit, message: str) -> None:
    assert message in refusal(data, edit)


def test_a_near_miss_shows_the_place_and_the_difference() -> None:
    data = b"import os\n\ndef area(width, height):\n    return width * height\n"

    message = refusal(data, Edit("def area(width, height):\n    return width + height\n", "x"))

    assert message == (
        "old does not occur in the file; the nearest place is line 3. "
        "- is the file, + is your old:\n"
        "  def area(width, height):\n"
        "-     return width * height\n"
        "+     return width + height"
    )


def test_a_difference_in_white_space_alone_is_named_and_not_guessed() -> None:
    message = refusal(b"if x:\n\treturn 1\n", Edit("if x:\n    return 1\n", "pass\n"))

    assert "(only the spaces or tabs differ); the nearest place is line 1" in message
    assert "- \\treturn 1\n+     return 1" in message


def test_one_line_that_is_almost_right_is_found() -> None:
    assert "nearest place is line 2" in refusal(b"one\ncolour = red\n", Edit("color = red", "x"))


# A lone carriage return is text, not an ending; the model can't see or write it reliably.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=60)
LINES = st.lists(st.text("ab \t", max_size=4), min_size=1, max_size=8)


@given(lines=LINES, ending=st.sampled_from(["\n", "\r\n"]), data=st.data())
def test_a_reverse_patch_gives_back_the_original_bytes(
    lines: list[str], ending: str, data: st.DataObject
) -> None:
    shown = "\n".join(lines)
    start = data.draw(st.integers(0, len(shown)))
    old = shown[start : data.draw(st.integers(start, len(shown)))]
    new = data.draw(TEXT)
    after = shown[:start] + new + shown[start + len(old) :]
    assume(old and new and old != new and "\0" not in new)
    assume(shown.count(old) == 1 and _once(after, new) and _once(shown, old))
    # Where no newline is left, nothing tells which kind the file had.
    assume("\n" in shown[:start] + shown[start + len(old) :] or "\n" not in old + new)
    original = shown.replace("\n", ending).encode()

    there = patched(original, Edit(old, new))

    assert there == after.replace("\n", ending).encode()
    assert patched(there, Edit(new, old)) == original


def _once(text: str, part: str) -> bool:
    first = text.find(part)
    return first >= 0 and text.find(part, first + 1) < 0


@given(
    lines=st.lists(st.tuples(st.text("ab", max_size=3), st.sampled_from(["\n", "\r\n"]))),
    old=st.text("ab\n", min_size=1, max_size=5),
    new=st.text("xy\n", max_size=8),
)
def test_bytes_before_and_after_the_replaced_text_never_change(
    lines: list[tuple[str, str]], old: str, new: str
) -> None:
    data = "".join(text + end for text, end in lines)
    try:
        after = patched(data.encode(), Edit(old, new)).decode()
    except PatchError:
        return
    start = data.replace("\r\n", "\n").find(old)
    raw_start = _raw(data, start)
    raw_end = _raw(data, start + len(old))

    assert after.startswith(data[:raw_start])
    assert after.endswith(data[raw_end:])
    middle = after[raw_start : len(after) - (len(data) - raw_end)]
    assert middle.replace("\r\n", "\n") == new


def _raw(data: str, shown: int) -> int:
    position = 0
    for _ in range(shown):
        position += 2 if data.startswith("\r\n", position) else 1
    return position


@given(data=st.binary(max_size=200), old=st.text(max_size=5), new=st.text(max_size=5))
def test_any_bytes_and_any_edit_raise_nothing_but_their_own_error(
    data: bytes, old: str, new: str
) -> None:
    with suppress(PatchError):
        apply_edits(data, [Edit(old, new)])
