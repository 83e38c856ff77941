"""Where two inputs differ, with and without the other one at hand."""

from hypothesis import given
from hypothesis import strategies as st

from workflow_execute import Difference, compare
from workflow_execute._differences import (
    find_difference,
    fingerprint,
    fingerprint_start,
    short_digest,
)


def first_difference(one: bytes, other: bytes) -> int:
    """The slow way."""
    place = 0
    while place < min(len(one), len(other)) and one[place] == other[place]:
        place += 1
    return place


texts = st.binary(max_size=300) | st.text("ab", max_size=300).map(str.encode)


@given(texts, texts)
def test_two_inputs_are_compared_at_their_first_difference(recorded: bytes, now: bytes) -> None:
    difference = compare(recorded, now)

    if recorded == now:
        assert difference is None
    else:
        assert difference is not None
        assert difference.at == first_difference(recorded, now)


@given(st.binary(max_size=600), st.binary(max_size=600), st.integers(0, 1500))
def test_a_sketch_finds_the_block_of_the_first_difference_after_the_shared_part(
    recorded: bytes, now: bytes, previous: int
) -> None:
    shared = b"s" * fingerprint_start(previous)
    recorded, now = shared + recorded, shared + now
    start = fingerprint_start(previous)
    found = find_difference(
        now, size=len(recorded), recorded=fingerprint(recorded, start), start=start
    )

    if now == recorded:
        assert found is None
    elif found is not None:
        assert found.at <= first_difference(recorded, now) < found.at + max(1, found.within)


def test_a_difference_reads_as_a_sentence() -> None:
    assert str(compare(b"the old way", b"the new way")) == (
        "the first difference is at byte 4: now it is 'the new way'; before it was 'the old way'"
    )
    assert str(Difference(10, 5, "x")) == "the first difference is at byte 10 to 15: now it is 'x'"


def test_a_digest_is_kept_as_96_bits_whatever_its_form() -> None:
    assert short_digest("") == ""
    assert len(short_digest("ab" * 32)) == len(short_digest("any words")) == 16
    assert short_digest("ab" * 32) != short_digest("ac" + "ab" * 31)
