from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from workflow_agent_cli.agents._codex import read_codex
from workflow_agent_cli.agents._reading import Reading
from workflow_protocol import Event, ToolFinished, ToolStarted, Usage

RECORDED = Path(__file__).parent.parent / "recorded"
METADATA = (
    "Model metadata for `fake-1` not found. Defaulting to fallback metadata; this can degrade "
    "performance and cause issues."
)


def read(data: bytes) -> tuple[Reading, list[Event]]:
    reading, events = Reading(), list[Event]()
    for line in data.splitlines():
        events += read_codex(line, reading)
    return reading, events


def test_work_that_was_done() -> None:
    reading, events = read((RECORDED / "codex_done.jsonl").read_bytes())

    assert reading == Reading(
        text="FINAL made.txt is there",
        finished=True,
        complaint=METADATA,  # trouble that passed
        session_id="01a229cf-f4b6-7573-93e3-a95676a3c2de",
        usage=Usage(input_tokens=2000, cached_tokens=800, output_tokens=20, calls=1),
    )
    command = '{"command":"/bin/bash -lc \'echo made > made.txt\'"}'
    assert events == [
        ToolStarted(name="shell", arguments=command, call_id="item_1"),
        ToolFinished(name="shell", ok=True, call_id="item_1"),
    ]


def test_a_refusal_of_the_provider() -> None:
    reading, _ = read((RECORDED / "codex_refused.jsonl").read_bytes())

    assert (reading.finished, reading.status, reading.usage) == (True, 401, None)
    assert reading.failure.startswith("unexpected status 401 Unauthorized: no, says the scripted")


def test_a_connection_that_does_not_come_about_is_trouble_but_no_end() -> None:
    reading, _ = read(
        b'{"type":"turn.started"}\n{"type":"error","message":"Reconnecting... waiting for network"}'
    )

    assert (reading.finished, reading.failure) == (False, "")
    assert reading.complaint == "Reconnecting... waiting for network"


def test_changed_files_are_heard_of() -> None:
    item = b'{"type":"item.completed","item":{"type":"file_change","status":"completed"}}'

    assert read(item)[1] == [ToolFinished(name="file_change", ok=True)]


NAMES = ["type", "item", "message", "usage", "thread_id", "error", "text", "command"]
KINDS = ["item.started", "item.completed", "turn.failed", "turn.completed", "error", "file_change"]
VALUES = st.none() | st.integers() | st.text() | st.sampled_from(KINDS)
SHAPES = st.dictionaries(
    st.sampled_from(NAMES), VALUES | st.dictionaries(st.sampled_from(NAMES), VALUES)
)


@given(line=st.binary() | SHAPES.map(msgspec.json.encode))
def test_no_line_makes_it_raise(line: bytes) -> None:
    read_codex(line, Reading())
