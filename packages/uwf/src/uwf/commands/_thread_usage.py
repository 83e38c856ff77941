"""What a thread has taken: by its steps, by its supervisor, and by a turn that has not ended."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from workflow_cas import Store
from workflow_execute import SUPERVISOR_KEYS, JournalEntry, StoredThread, read_tree, read_turn
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
    own: ThreadUsage


async def read_thread_usage(store: Store, thread: StoredThread) -> ThreadUsage:
    """Add up a thread, and the tree that stands below it."""
    top, *below = (await read_tree(store, thread.thread_id)).walk()
    own = await _usage_of_one(store, top.thread)
    if not below:
        return own
    children = [
        ChildUsage(
            each.thread.thread_id,
            each.thread.start.workflow,
            await _usage_of_one(store, each.thread),
        )
        for each in below
    ]
    usage = sum((each.own.usage for each in children), own.usage)
    micros = sum((each.own.micros for each in children), own.micros)
    return own._replace(tree=ThreadUsage(usage, micros), children=tuple(children))


async def _usage_of_one(store: Store, thread: StoredThread) -> ThreadUsage:
    """Add up a whole thread. Calls of models without a price cost nothing here."""
    usage, micros = Usage(), 0
    for step in thread.steps:
        usage += step.record.usage
        micros += step.record.charged_micros  # the supervisor's included
        if step.record.charged_tokens is not None:  # more was charged than the role used
            entries = await read_turn(store, step.turn)
            usage += _sum_usage(
                each for each in entries if each.record.key.startswith(SUPERVISOR_KEYS)
            )
    unfinished = await read_turn(store, thread.turn)
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
