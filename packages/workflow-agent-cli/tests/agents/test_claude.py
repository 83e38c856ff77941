from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_agent_cli.agents._claude import read_claude
from workflow_agent_cli.agents._reading import Reading
from workflow_protocol import Event, ToolFinished, ToolStarted, Usage

RECORDED = Path(__file__).parent.parent / "recorded"


def read(name: str) -> tuple[Reading, list[Event]]:
    """Read what the real agent wrote."""
    reading, events = Reading(), list[Event]()
    for line in (RECORDED / name).read_bytes().splitlines():
        events += read_claude(line, reading)
    return reading, events


def test_work_that_was_done() -> None:
    reading, events = read("claude_done.jsonl")

    assert reading == Reading(
        text="FINAL made.txt is there",
        finished=True,
        session_id="c4159024-4dbc-4680-81f8-8a2d13b194ca",
        usage=Usage(
            input_tokens=2000, cached_tokens=800, output_tokens=20, calls=1, cost_micros=6900
        ),
    )
    assert events == [
        ToolStarted(name="Bash", arguments='{"command":"echo made > made.txt"}', call_id="toolu_1"),
        ToolFinished(
            name="Bash", ok=True, summary='"(Bash completed with no output)"', call_id="toolu_1"
        ),
    ]


def test_a_refusal_of_the_provider_is_a_failure_although_its_subtype_is_success() -> None:
    reading, _ = read("claude_refused.jsonl")

    assert (reading.finished, reading.status) == (True, 401)
    assert reading.failure.startswith("Failed to authenticate. API Error: 401 no, says")
    assert reading.session_id == "b880a34c-d91b-4990-aab4-6357d6c91a1f"


def test_a_provider_that_is_not_there() -> None:
    reading, _ = read("claude_unreachable.jsonl")

    assert (reading.finished, reading.status) == (True, None)
    assert reading.failure == "API Error: Unable to connect to API (ConnectionRefused)"


def test_an_end_without_words_is_told_by_its_subtype() -> None:
    reading = Reading()
    read_claude(b'{"type":"result","subtype":"error_max_turns"}', reading)

    assert reading.failure == "error max turns"
    assert reading.usage is None


def test_an_end_with_errors_is_told_by_these() -> None:
    reading = Reading()
    line = b'{"type":"result","subtype":"error_during_execution","errors":["no session","x"]}'
    read_claude(line, reading)

    assert reading.failure == "no session; x"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=3,
)
NAMES = ["type", "subtype", "message", "result", "usage", "session_id", "content", "is_error"]
KINDS = ["result", "assistant", "user", "system", "tool_use", "tool_result", "text"]
SHAPES = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from(KINDS)
    | JSON
    | st.dictionaries(
        st.sampled_from(NAMES), st.lists(st.dictionaries(st.sampled_from(NAMES), JSON))
    ),
)


@pytest.mark.slow
@given(line=st.binary() | SHAPES.map(msgspec.json.encode))
def test_no_line_makes_it_raise(line: bytes) -> None:
    read_claude(line, Reading())
