from hypothesis import given
from hypothesis import strategies as st

from workflow_agent_cli._output import LineCollector
from workflow_agent_cli.agents._reading import Reading
from workflow_protocol import Event


def lines_of(chunks: list[bytes], *, max_bytes: int = 1000) -> tuple[list[bytes], LineCollector]:
    found: list[bytes] = []

    def read(line: bytes, reading: Reading) -> tuple[Event, ...]:
        del reading
        found.append(line)
        return ()

    lines = LineCollector(read, Reading(), max_bytes)
    for chunk in chunks:
        lines.feed(chunk)
    lines.end()
    return found, lines


LINES = [b'{"a":1}', b"{}", b"", b"a warning", b"\xff", b'{"b":"' + b"x" * 30 + b'"}']


@given(st.lists(st.sampled_from(LINES)), st.lists(st.integers(1, 9)), st.booleans())
def test_lines_are_the_same_however_they_are_cut(
    lines: list[bytes], sizes: list[int], ended: bool
) -> None:
    data = b"\n".join(lines) + (b"\n" if ended else b"")
    chunks: list[bytes] = []
    rest = data
    for size in sizes:
        chunks.append(rest[:size])
        rest = rest[size:]

    assert lines_of([*chunks, rest])[0] == [line for line in lines if line.startswith(b"{")]


def test_a_line_that_is_too_long_is_left_out_and_the_next_is_read() -> None:
    chunks = [b'{"a":1}\n{"b":"', b"x" * 50, b"x" * 50, b'"}\n{"c":', b"3}"]

    found, lines = lines_of(chunks, max_bytes=60)

    assert found == [b'{"a":1}', b'{"c":3}']
    assert lines.left_out == 1


def test_the_beginning_of_what_is_no_json_is_kept() -> None:
    _, lines = lines_of([b"why\n", b"y" * 900, b"\n", b"\xff\n"] * 10)

    assert lines.non_json.startswith("why\nyyy")
    assert len(lines.non_json) == 4000
