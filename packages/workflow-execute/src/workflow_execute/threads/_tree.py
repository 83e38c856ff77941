"""A thread with its child threads: what they took together, and who stands above whom."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from workflow_cas import RefConflict, RefMove, Store, node
from workflow_execute._budget import Charge
from workflow_execute._errors import ThreadNotFound
from workflow_execute._ids import now_ms
from workflow_execute._records import SUSPENDED_CODE, StatusRecord
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.owners._signals import Signal
from workflow_execute.threads._read import (
    StoredStep,
    StoredThread,
    children_of_turn,
    read_attempts,
    read_thread,
    role_at_work,
    unfinished_turn_ms,
    was_interrupted,
)
from workflow_execute.threads._summary import entry_of, thread_ref, with_status
from workflow_protocol import ThreadId, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadTree:
    """A thread as it is stored, with the threads that it started."""

    thread: StoredThread
    """The thread itself."""
    children: tuple[ThreadTree, ...]
    """In the order in which they were started, also those of abandoned attempts."""
    attempts: Sequence[Sequence[JournalEntry]]
    """The records of its unfinished turn, each attempt for itself."""

    @property
    def charged(self) -> Charge:
        """What the thread itself counts against limits: its steps and its unfinished turn."""
        steps = total_of(map(charge_of_step, self.thread.steps))
        return steps.plus(charge_of_records(self.attempts))

    def walk(self) -> Iterator[ThreadTree]:
        """All of it, each thread before its children."""
        yield self
        for child in self.children:
            yield from child.walk()

    @property
    def usage(self) -> Usage:
        """What the model calls of all steps in the tree took."""
        steps = (step for each in self.walk() for step in each.thread.steps)
        return sum((step.record.usage for step in steps), Usage())

    @property
    def spent(self) -> Charge:
        """What the whole tree counts against limits, unfinished turns included."""
        return total_of(each.charged for each in self.walk())


async def read_tree(store: Store, thread_id: ThreadId) -> ThreadTree:
    """Read a thread and all that it started, directly or through its children.

    Raises:
        ThreadNotFound: there is none of this id.
        StoreError: an object of it is missing or damaged, or a newer version wrote it.
    """
    thread = await read_thread(store, thread_id)
    attempts = await read_attempts(store, thread.turn)
    children: list[ThreadTree] = []
    for child_id in children_of_thread(thread, attempts):
        try:
            children.append(await read_tree(store, child_id))
        except ThreadNotFound:  # its id was chosen, and the process died before it began
            continue
    return ThreadTree(thread=thread, children=tuple(children), attempts=attempts)


def children_of_thread(
    thread: StoredThread, attempts: Sequence[Sequence[JournalEntry]]
) -> list[ThreadId]:
    """The ids of what a thread's steps and its unfinished turn started, in this order."""
    ids = [ThreadId(each) for step in thread.steps for each in step.record.child_threads]
    return [*ids, *children_of_turn(attempts)]


async def cancel_children(store: Store, thread_id: ThreadId, *, failed: bool = True) -> None:
    """Mark the threads that a thread's unfinished turn started as cancelled, if they aren't done.

    Those that failed stay as they are without `failed`.

    The caller owns the thread, so that nobody can resume them meanwhile. What finished turns
    started is left alone: it belongs to the forks of the thread too.
    """
    done = {"completed", "cancelled"} if failed else {"completed", "cancelled", "failed"}
    thread = await read_thread(store, thread_id)
    for child_id in children_of_turn(await read_attempts(store, thread.turn)):
        try:
            child = await read_thread(store, child_id)
        except ThreadNotFound:
            continue
        await cancel_children(store, child_id, failed=failed)
        if child.status.state not in done:
            with contextlib.suppress(RefConflict):  # somebody else stops it at the same moment
                await commit_stop(store, child, "cancel")


async def commit_stop(
    store: Store, stored: StoredThread, signal: Signal, moves: Sequence[RefMove] = ()
) -> None:
    """Record, together with other moves, that a thread that nobody runs is paused or cancelled.

    Raises:
        RefConflict: it has changed since it was read.
    """
    record = await _stopped_status(store, stored, signal)
    status = node("status", record)
    own_moves = [
        RefMove(thread_ref(stored.thread_id, "status"), stored.status_hash, status.hash),
        RefMove(thread_ref(stored.thread_id, "head"), stored.head, stored.head),
    ]
    entry = entry_of(with_status(stored.without_status, record))
    await store.commit([status], [*own_moves, *moves], [entry])


async def _stopped_status(store: Store, stored: StoredThread, signal: Signal) -> StatusRecord:
    cancel = signal == "cancel"
    attempts = await read_attempts(store, stored.turn)
    charged = charge_of_records(attempts)
    return StatusRecord(
        state="cancelled" if cancel else "suspended",
        at_ms=now_ms(),
        return_code=130 if cancel else SUSPENDED_CODE,
        summary="cancelled" if cancel else "paused",
        cause="" if cancel else "paused",
        place=role_at_work(stored, attempts),
        turn_ms=unfinished_turn_ms(stored, attempts),
        died=was_interrupted(stored),
        run_options=stored.status.run_options,
        traceparent=stored.status.traceparent,
        at_step=len(stored.steps),
        charged_tokens=charged.tokens,
        charged_micros=charged.micros,
        models=stored.turn_models,
    )


async def read_lineage(store: Store, thread: StoredThread) -> list[StoredThread]:
    """Read the threads above a child, the topmost first, as far as they aren't deleted."""
    above: list[StoredThread] = []
    while thread.parent is not None:
        try:
            thread = await read_thread(store, thread.parent)
        except ThreadNotFound:
            break
        above.insert(0, thread)
    return above


def charge_of_step(step: StoredStep) -> Charge:
    """What a committed step counts against limits."""
    record = step.record
    tokens = record.usage.input_tokens + record.usage.output_tokens
    charged = tokens if record.charged_tokens is None else record.charged_tokens
    return Charge(charged, record.charged_micros)


def charge_of_records(attempts: Iterable[Iterable[JournalEntry]]) -> Charge:
    """What the records of a turn count against limits, all its attempts together."""
    return total_of(
        Charge(entry.record.charged_tokens, entry.record.charged_micros)
        for entries in attempts
        for entry in entries
    )


def total_of(parts: Iterable[Charge]) -> Charge:
    """All of it together."""
    total = Charge()
    for part in parts:
        total = total.plus(part)
    return total
