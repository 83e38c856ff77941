"""What `show --turns` tells: which turns, and what the requests add to them."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from uwf._errors import UsageError
from uwf._overrides import serve_recorded
from uwf.commands._run import workflow_of
from uwf.terminal._output import Output
from workflow_agent_react import read_written_call
from workflow_cas import Store
from workflow_execute import Engine, ReplayedRequest, StoredThread, read_thread
from workflow_execute.transcript import (
    Transcript,
    Turn,
    TurnAttempts,
    add_told,
    build_transcript,
)
from workflow_protocol import ThreadId


def select_turns(
    transcript: Transcript, roles: Sequence[str], steps: Sequence[range]
) -> list[Turn]:
    """The turns that were asked for; all of them if nothing is said.

    Raises:
        UsageError: there is none of a role or a step.
    """
    numbers = {turn.number for turn in transcript.turns}
    for wanted in steps:
        if numbers.isdisjoint(wanted):
            there = f"1 to {max(numbers)}" if numbers else "none yet"
            raise UsageError(f"there is no step {_words(wanted)}; the steps are {there}")
    known = list(dict.fromkeys(turn.role for turn in transcript.turns if turn.role))
    for role in roles:
        if role not in known:
            there = ", ".join(known) or "none yet"
            raise UsageError(f"no turn of the role {role!r} is recorded; there are: {there}")
    return [
        turn
        for turn in transcript.turns
        if (not roles or turn.role in roles)
        and (not steps or any(turn.number in wanted for wanted in steps))
    ]


def _words(steps: range) -> str:
    last = steps.stop - 1
    return f"{steps.start}" if last == steps.start else f"{steps.start} to {last}"


async def tell(
    output: Output,
    store: Store,
    thread: StoredThread,
    records: Sequence[TurnAttempts],
    *,
    requests: bool,
) -> Transcript:
    """Make the transcript of a thread, all dialects read; with `requests` what models were told."""
    transcript = build_transcript(thread, records, written_call=read_written_call)
    return await _with_requests(output, store, transcript) if requests else transcript


async def _with_requests(output: Output, store: Store, transcript: Transcript) -> Transcript:
    """Add what the models were told: the workflow's code rebuilds the requests from the records.

    Where it can't, a person is told why, and what could be rebuilt is used.
    """
    requests: list[ReplayedRequest] = []
    thread_id = ThreadId(transcript.thread)
    try:
        with contextlib.redirect_stdout(sys.stderr):  # the roles may print
            workflow, _ = await workflow_of(store, await read_thread(store, thread_id))
            await Engine(store).replay(
                workflow, thread_id, on_request=requests.append, set_options=serve_recorded
            )
    except Exception as error:  # noqa: BLE001 - the workflow's code may raise anything
        output.say(f"uwf: not all requests could be rebuilt: {error or type(error).__name__}")
    return add_told(transcript, requests)
