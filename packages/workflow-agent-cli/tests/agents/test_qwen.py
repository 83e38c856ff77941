from pathlib import Path

from workflow_agent_cli.agents._qwen import read_qwen
from workflow_agent_cli.agents._reading import Reading
from workflow_protocol import ToolStarted, Usage

RECORDED = Path(__file__).parent.parent / "recorded"


def read(name: str) -> tuple[Reading, list[object]]:
    reading, events = Reading(), list[object]()
    for line in (RECORDED / name).read_bytes().splitlines():
        events += read_qwen(line, reading)
    return reading, events


def test_work_that_was_done() -> None:
    reading, events = read("qwen_done.jsonl")

    assert reading == Reading(
        text="FINAL made.txt is there",
        finished=True,
        session_id="1a434164-cd8b-4088-84f9-1f52592455cf",
        usage=Usage(input_tokens=2000, cached_tokens=800, output_tokens=20, calls=1),
    )
    assert isinstance(events[0], ToolStarted)
    assert events[0].name == "run_shell_command"


def test_a_refusal_of_the_provider_that_calls_itself_no_error() -> None:
    reading, _ = read("qwen_refused.jsonl")

    assert (reading.finished, reading.status, reading.text) == (True, 401, "")
    assert reading.failure.startswith("[API Error: 401 no, says the scripted model")


def test_a_fault_without_a_status() -> None:
    reading = Reading()
    read_qwen(b'{"type":"result","subtype":"success","result":"[API Error: no\\nroute]"}', reading)

    assert (reading.failure, reading.status) == ("[API Error: no\nroute]", None)
