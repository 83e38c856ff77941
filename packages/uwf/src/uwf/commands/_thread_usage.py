"""What a thread has taken: by its steps, by its supervisor, and by a turn that has not ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from workflow_cas import Store
from workflow_execute import (
    SUPERVISOR_KEYS,
    JournalEntry,
    StoredThread,
    ThreadNotFound,
    ThreadTree,
    children_of_thread,
    current_attempt,
    read_tree,
)
from workflow_execute.transcript import TurnAttempts, read_records
from workflow_protocol import ThreadId, Usage
from workflow_reactor import NotAReply, Profile, read_reply


class ThreadUsage(NamedTuple):
    """Tokens, and millionths of the currency of the price table."""

    usage: Usage
    micros: int
    tree: ThreadUsage | None = None
    """The same with all child threads, where there are any."""
    children: tuple[ChildUsage, ...] = ()
    """What each thread below took by itself, a parent before its children."""


class ChildUsage(NamedTuple):
    """What a thread below another took by itself."""

    thread_id: ThreadId
    workflow: str
    state: str
    """As it is recorded."""
    own: ThreadUsage


async def read_thread_usage(
    store: Store, thread: StoredThread, records: Sequence[TurnAttempts]
) -> ThreadUsage:
    """Add up a thread, and the tree that stands below it.

    Args:
        records: what `read_records` gave of the thread.
    """
    own = _usage_of_one(thread, records)
    children: list[ChildUsage] = []
    for tree in await _read_children(store, thread, records[-1]):
        for each in tree.walk():
            taken = _usage_of_one(each.thread, await read_records(store, each.thread))
            started, state = each.thread.start, each.thread.status.state
            children.append(ChildUsage(each.thread.thread_id, started.workflow, state, taken))
    if not children:
        return own
    usage = sum((each.own.usage for each in children), own.usage)
    micros = sum((each.own.micros for each in children), own.micros)
    return own._replace(tree=ThreadUsage(usage, micros), children=tuple(children))


async def _read_children(
    store: Store, thread: StoredThread, unfinished: TurnAttempts
) -> list[ThreadTree]:
    trees: list[ThreadTree] = []
    for child_id in children_of_thread(thread, unfinished):
        try:
            trees.append(await read_tree(store, child_id))
        except ThreadNotFound:  # its id was chosen, and the process died before it began
            continue
    return trees


def _usage_of_one(thread: StoredThread, records: Sequence[TurnAttempts]) -> ThreadUsage:
    """Add up a whole thread. Calls of models without a price cost nothing here."""
    usage, micros = Usage(), 0
    for step, attempts in zip(thread.steps, records, strict=False):
        usage += step.record.usage
        micros += step.record.charged_micros  # the supervisor's included
        if step.record.charged_tokens is not None:  # more was charged than the role used
            usage += _sum_usage(
                each
                for each in current_attempt(attempts)
                if each.record.key.startswith(SUPERVISOR_KEYS)
            )
    unfinished = current_attempt(records[-1])
    usage += _sum_usage(unfinished)
    micros += sum(each.record.charged_micros for each in unfinished)
    return ThreadUsage(usage, micros)


def _sum_usage(entries: Iterable[JournalEntry]) -> Usage:
    return sum((_usage_of_entry(each) for each in entries), Usage())


def _usage_of_entry(entry: JournalEntry) -> Usage:
    """What a model call took; nothing for other records, which have no request or no reply."""
    if entry.record.kind != "result" or not entry.record.size:
        return Usage()
    try:
        return read_reply(entry.bytes, Profile()).usage
    except NotAReply:  # some adapter's own exchange
        return Usage()
