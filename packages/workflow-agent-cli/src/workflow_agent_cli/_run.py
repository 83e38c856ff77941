"""One run of an agent's process: its output read while it comes, its end judged."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import msgspec

from workflow_agent_cli._call_events import CallEvents
from workflow_agent_cli._environment import Environment
from workflow_agent_cli._output import LineCollector, OutputTooLarge, TextCollector
from workflow_agent_cli._record import UNKNOWN, AgentRun, RunOutcome
from workflow_agent_cli.agents._profiles import AgentProfile
from workflow_agent_cli.agents._reading import Reading
from workflow_protocol import Event, ToolFinished
from workflow_util_agent.process import ProcessNotStarted, ProcessResult, run_command

_MAX_STDERR_BYTES = 16 * 1024
_MAX_REPORT_BYTES = 1024 * 1024
_MAX_SUMMARY_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What is run, and for how long."""

    profile: AgentProfile
    executable: str
    prompt: str
    model: str
    session: str
    more_arguments: tuple[str, ...]
    workspace: Path
    environment: Environment
    timeout_s: float
    max_output_bytes: int


async def run_agent(
    spec: RunSpec,
    *,
    note: Callable[[Event], Awaitable[None]],
    calls: CallEvents,
    on_session: Callable[[str], Awaitable[None]],
) -> AgentRun:
    """Run the agent to its end. What goes wrong with it is in the result, which holds no keys.

    Args:
        spec: what to run.
        note: hears what the agent does.
        calls: completes what it hears.
        on_session: hears the id of its session as soon as the agent says it.
    """
    try:
        return await _run(spec, note, calls, on_session)
    finally:
        for event in calls.end():
            await note(event)


async def _run(
    spec: RunSpec,
    note: Callable[[Event], Awaitable[None]],
    calls: CallEvents,
    on_session: Callable[[str], Awaitable[None]],
) -> AgentRun:
    reading, redactor = Reading(), spec.environment
    reader = spec.profile.read_line
    limit = spec.max_output_bytes
    output = (
        TextCollector(reading, limit) if reader is None else LineCollector(reader, reading, limit)
    )
    known_session = ""

    async def report_events(events: tuple[Event, ...]) -> None:
        nonlocal known_session
        if reading.session_id != known_session:
            known_session = reading.session_id
            await on_session(known_session)
        for event in calls.complete(events):
            await note(_cut_summary(redactor.redact_fields(event)))

    async def on_stdout(data: bytes) -> None:
        await report_events(output.feed(data))

    started_s = anyio.current_time()
    try:
        with _report_path() as report:
            ran = await run_command(
                _command_line(spec, report),
                cwd=spec.workspace,
                env=spec.environment.values,
                timeout_s=spec.timeout_s,
                max_output_bytes=_MAX_STDERR_BYTES,
                adopt=True,
                stdin=b"" if spec.profile.prompt_is_argument else spec.prompt.encode(),
                on_stdout=on_stdout,
            )
            await report_events(output.end())
            _read_report(spec.profile, report, reading)
            await report_events(())
    except (ProcessNotStarted, OutputTooLarge) as error:
        await report_events(output.end())
        return redactor.redact_fields(_stopped(error, reading, since_s=started_s), guess_keys=True)
    how, words = outcome_of(
        spec.profile, reading, ran, left_out=output.left_out, non_json=output.non_json
    )
    run = AgentRun(
        how=how,
        text=reading.text,
        words=words,
        stderr=ran.output,
        exit_code=ran.exit_code,
        status=reading.status,
        session_id=reading.session_id,
        wall_s=round(ran.wall_s, 3),
        usage=reading.usage or UNKNOWN,
    )
    return redactor.redact_fields(run, guess_keys=how != "done")


@contextmanager
def _report_path() -> Generator[Path]:
    """A name in a folder of its own: agents may write the report through another file beside it.

    Raises:
        ProcessNotStarted: the folder can't be made.
    """
    try:
        folder = tempfile.TemporaryDirectory(prefix="agent-", ignore_cleanup_errors=True)
    except OSError as error:
        raise ProcessNotStarted(error.strerror or str(error)) from error
    with folder as name:
        yield Path(name) / "report.json"


def _cut_summary(event: Event) -> Event:
    """Cut what a tool gave. Not before keys are taken out: half a key is none that is known."""
    if isinstance(event, ToolFinished):
        return msgspec.structs.replace(event, summary=event.summary[:_MAX_SUMMARY_CHARS])
    return event


def _stopped(
    error: ProcessNotStarted | OutputTooLarge, reading: Reading, *, since_s: float
) -> AgentRun:
    not_started = isinstance(error, ProcessNotStarted)
    return AgentRun(
        how="not_started" if not_started else "too_large",
        words=error.reason if not_started else str(error),
        text=reading.text,
        wall_s=round(anyio.current_time() - since_s, 3),
    )


def _read_report(profile: AgentProfile, report: Path, reading: Reading) -> None:
    if profile.read_report is not None and report.is_file():
        with report.open("rb") as file:
            profile.read_report(file.read(_MAX_REPORT_BYTES), reading)


def _command_line(spec: RunSpec, report: Path) -> list[str]:
    return spec.profile.command_line(
        spec.executable,
        prompt=spec.prompt,
        model=spec.model,
        session=spec.session,
        report=str(report),
        more_arguments=spec.more_arguments,
    )


def outcome_of(
    profile: AgentProfile, reading: Reading, ran: ProcessResult, *, left_out: int, non_json: str
) -> tuple[RunOutcome, str]:
    """How it went, and the words for what went wrong. An exit code of 0 alone proves nothing.

    Args:
        profile: the agent.
        reading: what it said.
        ran: how its process ended.
        left_out: how many of its lines were too long to read.
        non_json: what it said that was no data.
    """
    speaks = profile.read_line is not None or profile.read_report is not None
    if ran.exit_code is None:
        return "timeout", reading.failure or reading.complaint
    if reading.failure:
        return "failed", reading.failure
    if ran.exit_code:
        return "failed", reading.complaint or ran.output or non_json or reading.text
    if speaks and not reading.finished:
        if left_out:
            return "too_large", f"{left_out} lines of its output were too long to read"
        return (
            "failed",
            reading.complaint or non_json or "it ended without reporting a result",
        )
    if not reading.text.strip():
        return "failed", reading.complaint or "it ended without any output"
    return "done", ""
