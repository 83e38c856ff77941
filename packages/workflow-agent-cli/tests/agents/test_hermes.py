from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_agent_cli.agents._hermes import read_hermes
from workflow_agent_cli.agents._reading import Reading
from workflow_protocol import Usage

RECORDED = Path(__file__).parent.parent / "recorded"


def read(name: str) -> Reading:
    text = (RECORDED / f"{name}.txt").read_text(encoding="utf-8").strip()
    reading = Reading(text=text)
    read_hermes((RECORDED / f"{name}.json").read_bytes(), reading)
    return reading


def test_work_that_was_done_at_a_cost_that_is_not_known() -> None:
    reading = read("hermes_done")

    assert reading == Reading(
        text="FINAL made.txt is there",
        finished=True,
        session_id=reading.session_id,
        usage=Usage(input_tokens=2000, cached_tokens=800, output_tokens=20, calls=1),
    )
    assert reading.session_id.startswith("20261130_")


def test_a_refusal_of_the_provider_whose_exit_code_was_0() -> None:
    reading = read("hermes_refused")

    assert (reading.finished, reading.status, reading.usage) == (True, 401, None)
    assert reading.failure == "HTTP 401: no, says the scripted model (Bearer sk-secret-123)"


@pytest.mark.parametrize(
    ("status", "micros"), [("estimated", 1300), ("unknown", None), (None, None)]
)
def test_a_cost_counts_where_its_status_says_so(status: str | None, micros: int | None) -> None:
    report = {"input_tokens": 1, "output_tokens": 2, "estimated_cost_usd": 0.0013}
    reading = Reading()
    read_hermes(msgspec.json.encode({**report, "cost_status": status}), reading)

    assert reading.usage is not None
    assert reading.usage.cost_micros == micros


NAMES = ["input_tokens", "output_tokens", "session_id", "failed", "failure", "cost_status"]


@given(
    report=st.binary()
    | st.dictionaries(
        st.sampled_from(NAMES), st.none() | st.integers() | st.text() | st.booleans()
    ).map(msgspec.json.encode)
)
def test_no_report_makes_it_raise(report: bytes) -> None:
    read_hermes(report, Reading())
