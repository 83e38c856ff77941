"""Makes a transcript of a stored thread: the store is read once, the rest is pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from workflow_cas import Store
from workflow_execute._supervisor import DECISION_KEY, Decision
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.threads._read import StoredStep, StoredThread, read_attempts, role_at_work
from workflow_execute.transcript._keys import is_of_supervisor
from workflow_execute.transcript._model import Attempt, Decided, Part, Round, Transcript, Turn
from workflow_execute.transcript._replies import WrittenCallReader
from workflow_execute.transcript._rounds import join_records
from workflow_protocol import Usage

TurnAttempts = list[list[JournalEntry]]
"""The records of one turn, each attempt a list, the oldest first."""


async def read_records(store: Store, thread: StoredThread) -> list[TurnAttempts]:
    """Read all journal records of a thread: a turn for each step, and last the unfinished one.

    Raises:
        StoreError: an object is missing or damaged.
    """
    ends = [*(step.turn for step in thread.steps), thread.turn]
    return [await read_attempts(store, last) for last in ends]


def build_transcript(
    thread: StoredThread,
    records: Sequence[TurnAttempts],
    *,
    written_call: WrittenCallReader | None = None,
) -> Transcript:
    """Tell a thread by its records, each in one place.

    Args:
        records: what `read_records` gave.
        written_call: reads the calls that dialects write into text, such as
            `workflow_agent_react.read_written_call`; without it they stay a part of the text.
    """
    turns = [
        _committed_turn(number, step, attempts, thread, written_call)
        for number, (step, attempts) in enumerate(zip(thread.steps, records, strict=False), 1)
    ]
    if records[-1] and len(records) > len(thread.steps):
        turns.append(_unfinished_turn(thread, records[-1], written_call))
    return Transcript(
        thread=thread.thread_id,
        workflow=thread.start.workflow,
        prompt=thread.prompt,
        state=thread.status.state,
        turns=tuple(turns),
    )


def _committed_turn(
    number: int,
    step: StoredStep,
    attempts: TurnAttempts,
    thread: StoredThread,
    written_call: WrittenCallReader | None,
) -> Turn:
    record, failure = step.record, step.failure
    is_value = failure is None
    skipped = {call.partition(" ")[0] for call in record.skipped_calls}
    return Turn(
        number=number,
        role=record.role,
        state="committed" if is_value else "failed",
        inherited=number <= thread.own_from,
        at_ms=record.at_ms,
        elapsed_ms=record.elapsed_ms,
        usage=record.usage,
        cost_micros=record.charged_micros or record.usage.cost_micros,
        value=msgspec.Raw(step.value) if is_value else msgspec.UNSET,
        content="" if step.content.encode() == step.value else step.content,
        failure=failure,
        child_threads=record.child_threads,
        skipped_calls=record.skipped_calls,
        artifacts=record.artifacts,
        hash=step.hash,
        attempts=_attempts(attempts, skipped, written_call, is_committed=is_value),
    )


def _unfinished_turn(
    thread: StoredThread, attempts: TurnAttempts, written_call: WrittenCallReader | None
) -> Turn:
    told = _attempts(attempts, (), written_call, is_committed=False)
    parts = [part for attempt in told for part in attempt.parts]
    costs = [part.cost_micros for part in parts if isinstance(part, Round) and part.cost_micros]
    return Turn(
        number=len(thread.steps) + 1,
        role=role_at_work(thread, attempts),
        state="unfinished" if parts or thread.status.state != "completed" else "ended",
        usage=sum((part.usage for part in parts if isinstance(part, Round)), Usage()),
        cost_micros=sum(costs) or None,
        attempts=told,
    )


def _attempts(
    attempts: TurnAttempts,
    skipped: Collection[str],
    written_call: WrittenCallReader | None,
    *,
    is_committed: bool,
) -> tuple[Attempt, ...]:
    told: list[Attempt] = []
    for number, entries in enumerate(attempts, 1):
        is_current = number == len(attempts)
        by_supervisor = [each for each in entries if is_of_supervisor(each.record.key)]
        by_role = [each for each in entries if not is_of_supervisor(each.record.key)]
        parts = join_records(
            by_role,
            is_committed=is_committed and is_current,
            skipped=skipped if is_current else (),
            written_call=written_call,
        )
        told.append(
            Attempt(
                number=number,
                is_current=is_current,
                supervisor=_supervisor_parts(by_supervisor),
                parts=tuple(parts),
            )
        )
    return tuple(told)


def _supervisor_parts(entries: Sequence[JournalEntry]) -> tuple[Part | Decided, ...]:
    """The supervisor's rounds, and its decision at their end."""
    decisions = [each for each in entries if _is_decision(each)]
    rounds = [each for each in entries if not _is_decision(each)]
    parts = join_records(rounds, is_committed=bool(decisions))
    return (*parts, *map(_decided, decisions))


def _is_decision(entry: JournalEntry) -> bool:
    return entry.record.kind == "result" and entry.record.key.endswith(DECISION_KEY)


def _decided(entry: JournalEntry) -> Decided:
    said = msgspec.json.decode(entry.bytes, type=Decision)
    return Decided(
        key=entry.record.key,
        decision=said.decision,
        reason=said.reason,
        at_ms=entry.record.at_ms,
        records=(entry.hash,),
    )
