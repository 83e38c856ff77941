from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from workflow_agent_cli.agents._opencode import read_opencode
from workflow_agent_cli.agents._reading import Reading
from workflow_protocol import Event, ToolFinished, ToolStarted, Usage

RECORDED = Path(__file__).parent.parent / "recorded"


def read(data: bytes) -> tuple[Reading, list[Event]]:
    reading, events = Reading(), list[Event]()
    for line in data.splitlines():
        events += read_opencode(line, reading)
    return reading, events


def test_work_that_was_done() -> None:
    reading, events = read((RECORDED / "opencode_done.jsonl").read_bytes())

    assert reading == Reading(
        text="FINAL made.txt is there",
        finished=True,
        session_id="ses_dd60d2f60ffe28KFC5PPKvqE0i",
        usage=Usage(input_tokens=2000, cached_tokens=800, output_tokens=20, calls=1),
    )
    arguments = '{"command":"echo made > made.txt","description":"run it"}'
    assert events == [
        ToolStarted(name="bash", arguments=arguments, call_id="call_1"),
        ToolFinished(name="bash", ok=True, summary="(no output)", call_id="call_1"),
    ]


def test_a_refusal_of_the_provider() -> None:
    reading, _ = read((RECORDED / "opencode_refused.jsonl").read_bytes())

    assert (reading.finished, reading.status, reading.usage) == (True, 401, None)
    assert reading.failure == "no, says the scripted model (Bearer sk-secret-123)"


def test_what_ends_after_a_tool_is_not_finished() -> None:
    lines = (RECORDED / "opencode_done.jsonl").read_bytes().splitlines()

    reading, _ = read(b"\n".join(lines[:3]))

    assert not reading.finished


def test_costs_of_steps_add_up() -> None:
    step = b'{"type":"step_finish","part":{"reason":"stop","cost":0.001,"tokens":{"reasoning":5}}}'

    reading, _ = read(step + b"\n" + step)

    assert reading.usage == Usage(output_tokens=10, calls=1, cost_micros=2000)


NAMES = ["type", "part", "error", "text", "tokens", "cost", "state", "data", "name", "sessionID"]
VALUES = st.none() | st.integers() | st.floats() | st.text()
INNER = st.dictionaries(st.sampled_from(NAMES), VALUES)
SHAPES = st.dictionaries(
    st.sampled_from(NAMES),
    VALUES | INNER | st.dictionaries(st.sampled_from(NAMES), VALUES | INNER),
)


@given(line=st.binary() | SHAPES.map(msgspec.json.encode))
def test_no_line_makes_it_raise(line: bytes) -> None:
    read_opencode(line, Reading())
