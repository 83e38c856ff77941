import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_util_agent import _output
from workflow_util_agent._output import IN_MEMORY, ShortenedOutput
from workflow_util_agent.process import ShortenedOutput as Public

PRINTED = st.text("abc ü€😀\n").map(str.encode)


def shortened(chunks: list[bytes], limit: int) -> str:
    with ShortenedOutput(limit) as output:
        for chunk in chunks:
            output.add(chunk)
        return output.text()


@given(chunks=st.lists(st.text("abc \n", max_size=300)), limit=st.integers(1, 600))
@pytest.mark.parametrize("in_memory", [IN_MEMORY, 20], ids=["in memory", "in a file"])
def test_both_ends_are_kept_and_the_rest_is_counted(
    chunks: list[str], limit: int, in_memory: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_output, "IN_MEMORY", in_memory)
        text = shortened([chunk.encode() for chunk in chunks], limit)

    whole, half = "".join(chunks), max(limit // 2, 1)
    if len(whole) <= 2 * half:
        assert text == ended(whole)
    else:
        marker = f"[… {len(whole) - 2 * half} bytes left out here …]\n"
        assert text == ended(whole[:half]) + marker + ended(whole[-half:])


def ended(text: str) -> str:
    return f"{text}\n" if text and not text.endswith("\n") else text


@given(text=st.text("aü€😀", min_size=50, max_size=80), limit=st.integers(8, 40))
def test_a_cut_never_splits_a_character(text: str, limit: int) -> None:
    head, marker, tail = shortened([text.encode()], limit).splitlines()

    assert text.startswith(head)
    assert "bytes left out here" in marker
    assert text.endswith(tail)


@given(before=st.integers(0, 60), after=st.integers(300, 360))
def test_a_cut_never_leaves_half_a_colour_code(before: int, after: int) -> None:
    output = b"x" * before + b"\x1b[38;5;196mred\x1b[0m" * 20 + b"y" * after

    assert set(shortened([output], 100 + before)) <= set(
        "xredy[… 0123456789 bytes left out here …]\n"
    )
    head, _, tail = shortened([output], 2 * (after + 40)).partition("[… ")
    assert "[38" not in head
    assert "8;5" not in tail
    assert "6m" not in tail
    assert "[0" not in tail


@pytest.mark.parametrize("room", [0, 3_000_000])
def test_without_room_for_a_file_the_beginning_and_some_of_the_end_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    written = _output._write  # pyright: ignore[reportPrivateUsage] - a disk that is full

    def write(file: object, at: int, data: memoryview) -> None:
        if at + len(data) > room:
            raise OSError(28, "No space left on device")
        written(file, at, data)  # pyright: ignore[reportArgumentType] - it is one

    if room:
        monkeypatch.setattr(_output, "_write", write)
    else:
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    lines = b"".join(b"%07d\n" % number for number in range(1_000_000))

    text = shortened([lines[at : at + 65_536] for at in range(0, len(lines), 65_536)], 8 << 20)

    assert text.startswith("0000000\n0000001\n")
    assert text.endswith("0999998\n0999999\n")
    head, tail = text.split("[… ")[0], text.split("…]\n")[1]
    assert len(head) >= (room - 70_000 if room else IN_MEMORY - 65_536)
    assert 65_536 <= len(tail) <= 2 * IN_MEMORY
    assert f"[… {len(lines) - len(head.encode()) - len(tail)} bytes left out" in text


def test_it_is_public_where_processes_are_run() -> None:
    assert Public is ShortenedOutput
