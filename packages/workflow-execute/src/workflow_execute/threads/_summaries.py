"""Finding threads by their summaries, without reading them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from anyio import to_thread

from workflow_cas import Entry, RefConflict, RefMove, Store, StoreCorrupt
from workflow_execute._ids import first_thread_id
from workflow_execute._records import ShownState
from workflow_execute.owners._locks import owned_among
from workflow_execute.threads._read import StoredThread, list_threads, read_thread
from workflow_execute.threads._summary import (
    TOP,
    ThreadSummary,
    entry_of,
    label_of,
    summary_of,
    thread_ref,
)
from workflow_protocol import ThreadId, WorkflowError

RunAmong = Callable[[Sequence[ThreadId]], set[ThreadId]]
"""Which of some threads somebody runs now. Called in a worker thread."""
_CHECKED_AT_ONCE = 200
_UNREADABLE = "its entry in the index can't be read"


async def read_summaries(
    store: Store,
    *,
    state: ShownState | None = None,
    workflow: str | None = None,
    tag: str | None = None,
    parent: ThreadId | None = None,
    top: bool = False,
    since_ms: int | None = None,
    after: ThreadId | None = None,
    limit: int | None = None,
    locks: Path | None = None,
) -> list[ThreadSummary]:
    """Return threads in short, those that began last first.

    All that is asked for has to hold. The next page begins `after` the last thread of this one.

    Args:
        store: where they are.
        state: how they stand. `running` and `interrupted` are told apart by `locks`.
        workflow: what they run, by the name that they were started under.
        tag: a tag that they have.
        parent: the thread that started them.
        top: only threads that no other thread started.
        since_ms: the Unix milliseconds from which on they were started, or forked.
        after: give only threads that began before this one.
        limit: how many at most.
        locks: the folder of the locks, as of the engine that runs them. Without it, a thread
            whose process is gone shows as `running`.
    """
    return await find_summaries(
        store,
        labels_for(state=state, workflow=workflow, tag=tag, parent=parent, top=top),
        state=state,
        since_ms=since_ms,
        after=after,
        limit=limit,
        run_among=None if locks is None else partial(owned_among, locks),
    )


async def find_summaries(
    store: Store,
    labels: Sequence[str],
    *,
    state: ShownState | None,
    since_ms: int | None,
    after: ThreadId | None,
    limit: int | None,
    run_among: RunAmong | None,
) -> list[ThreadSummary]:
    """See `read_summaries`. Without `run_among`, the states are those that are recorded."""
    first = None if since_ms is None else thread_ref(first_thread_id(since_ms), "")
    found: list[ThreadSummary] = []
    # Only these two states can turn out to be another one than the label says.
    uncertain = run_among is not None and state in {"running", "interrupted"}
    checked = _CHECKED_AT_ONCE
    while limit is None or len(found) < limit:
        before = None if after is None else thread_ref(after, "")
        count = limit if not uncertain or limit is None else max(limit, checked)
        page = await store.entries(labels=labels, first=first, before=before, limit=count)
        shown = [summary_of(entry) for entry in page]
        if run_among is not None:
            shown = await _with_interrupted(store, shown, run_among, state)
        found += [each for each in shown if state in {None, each.state}]
        if not uncertain or count is None or len(page) < count:
            break
        after, checked = summary_of(page[-1]).thread_id, checked * 2
    return await _with_children(store, found[:limit])


def labels_for(
    *,
    state: ShownState | None,
    workflow: str | None,
    tag: str | None,
    parent: ThreadId | None,
    top: bool,
) -> list[str]:
    """The labels of the threads that are wanted."""
    recorded = "running" if state == "interrupted" else state
    wanted = {"state": recorded, "workflow": workflow, "tag": tag, "parent": parent}
    labels = [label_of(kind, value) for kind, value in wanted.items() if value is not None]
    return [*labels, TOP] if top else labels


async def _with_interrupted(
    store: Store,
    summaries: Sequence[ThreadSummary],
    run_among: RunAmong,
    wanted: ShownState | None,
) -> list[ThreadSummary]:
    """Show those that are recorded as running, but are not run, as interrupted.

    One may have ended between the two looks, so that its entry is read once more.
    """
    running = [each.thread_id for each in summaries if each.state == "running"]
    if not running:
        return list(summaries)
    not_run = set(running) - await to_thread.run_sync(run_among, running)
    if not not_run:
        return list(summaries)
    if wanted == "running":  # whatever the others are, they are not
        return [each for each in summaries if each.thread_id not in not_run]
    again = await store.entries(
        labels=[label_of("state", "running")],
        first=thread_ref(min(not_run), ""),
        before=thread_ref(max(not_run), "~"),
    )
    interrupted = {summary_of(entry).thread_id for entry in again}.intersection(not_run)
    shown: list[ThreadSummary] = []
    for each in summaries:
        if each.thread_id in interrupted:
            shown.append(msgspec.structs.replace(each, state="interrupted"))
        elif each.thread_id not in not_run:
            shown.append(each)
        elif (now := await read_summary(store, each.thread_id)) is not None:
            shown.append(now)
    return shown


async def read_summary(store: Store, thread_id: ThreadId) -> ThreadSummary | None:
    """The summary of one thread as it is recorded; `None` where there is no such thread."""
    entry = await _entry(store, thread_id)
    return summary_of(entry) if entry is not None else None


async def _with_children(store: Store, summaries: Sequence[ThreadSummary]) -> list[ThreadSummary]:
    """Add up what is below each thread, with one look a level for all of them."""
    above: dict[ThreadId, list[ThreadId]] = {each.thread_id: [each.thread_id] for each in summaries}
    below: dict[ThreadId, list[ThreadSummary]] = {each: [] for each in above}
    level: Iterable[ThreadId] = list(above)
    seen: set[ThreadId] = set()
    while parents := [each for each in level if each not in seen]:
        seen.update(parents)
        wanted = [label_of("parent", each) for each in parents]
        children = [summary_of(entry) for entry in await store.entries(any_of=wanted)]
        for child in children:
            assert child.parent is not None  # it was found by it
            tops = above[child.parent]
            for top in tops:
                below[top].append(child)
            own = above.setdefault(child.thread_id, [])
            own += [top for top in tops if top not in own]
        level = [child.thread_id for child in children]
    return [_with_those_below(each, below[each.thread_id]) for each in summaries]


def _with_those_below(summary: ThreadSummary, below: Sequence[ThreadSummary]) -> ThreadSummary:
    if not below:
        return summary
    return msgspec.structs.replace(
        summary,
        children=len(below),
        children_tokens=sum(each.tokens for each in below),
        children_micros=sum(each.cost_micros for each in below),
    )


async def thread_entries(store: Store) -> list[Entry]:
    """Make the entries of all threads from what is stored of them, for `migrate_store`.

    A thread that can't be read is listed as failed, with the reason.
    """
    return [entry_of(await _read_or_explain(store, each)) for each in await list_threads(store)]


async def _read_or_explain(store: Store, thread_id: ThreadId) -> ThreadSummary:
    try:
        return (await read_thread(store, thread_id)).summary
    except WorkflowError as error:
        return ThreadSummary(
            thread_id=thread_id,
            workflow="",
            started_ms=0,
            updated_ms=0,
            state="failed",
            error=type(error).__name__,
            summary=str(error),
        )


class SummaryFault(NamedTuple):
    """What is wrong with a thread's entry in the index."""

    thread: ThreadId
    """The thread."""
    fault: str
    """What differs."""


async def check_summaries(store: Store) -> list[SummaryFault]:
    """Compare the index with the threads, also while they run; say of each what differs.

    Threads that can't be read are left out: `Store.verify` tells of them.
    """
    try:
        kept = {entry.ref: entry for entry in await store.entries()}
    except StoreCorrupt:  # of one or more of them: each is looked at alone
        kept = {}
    wrong: list[SummaryFault] = []
    for thread_id in await list_threads(store):
        entry = kept.get(thread_ref(thread_id, "head"))
        if (fault := await _fault_of(store, thread_id, entry)) is not None:
            wrong.append(SummaryFault(thread_id, fault))
    return wrong


async def repair_summaries(store: Store) -> list[SummaryFault]:
    """Write the entries of threads anew where they are wrong; say of each what was wrong.

    Raises:
        StoreError: it can't be written. What was written before stays.
    """
    wrong = await check_summaries(store)
    for thread_id, _ in wrong:
        await _write_entry(store, thread_id)
    return wrong


async def _write_entry(store: Store, thread_id: ThreadId) -> None:
    """Write an entry as the thread stands; where it goes on meanwhile, its run writes it."""
    stored = await read_thread(store, thread_id)
    head, status = thread_ref(thread_id, "head"), thread_ref(thread_id, "status")
    same = [
        RefMove(head, stored.head, stored.head),
        RefMove(status, stored.status_hash, stored.status_hash),
    ]
    with contextlib.suppress(RefConflict):
        await store.commit([], same, [entry_of(stored.summary)])


async def _fault_of(store: Store, thread_id: ThreadId, entry: Entry | None) -> str | None:
    """What is wrong with an entry, looked at until the thread stands still meanwhile."""
    before: StoredThread | None = None
    while True:
        try:
            stored = await read_thread(store, thread_id)
        except WorkflowError:
            return None
        fault = _difference(stored.summary, entry)
        if fault is None or (before is not None and _is_same(before, stored)):
            return fault
        before = stored
        try:
            entry = await _entry(store, thread_id)
        except StoreCorrupt:
            return _UNREADABLE


def _is_same(one: StoredThread, other: StoredThread) -> bool:
    return (one.head, one.status_hash) == (other.head, other.status_hash)


def _difference(summary: ThreadSummary, entry: Entry | None) -> str | None:
    if entry is None:
        return "it is not in the index"
    wanted = entry_of(summary)
    if entry.data != wanted.data:
        try:
            listed = msgspec.to_builtins(summary_of(entry))
        except msgspec.MsgspecError:
            return _UNREADABLE
        fields = msgspec.to_builtins(summary)
        names = sorted(name for name in fields | listed if fields.get(name) != listed.get(name))
        return f"the index has another {', '.join(names)}" if names else "its entry is spelt anew"
    return None if set(entry.labels) == set(wanted.labels) else "the index has other labels"


async def _entry(store: Store, thread_id: ThreadId) -> Entry | None:
    head = thread_ref(thread_id, "head")
    found = await store.entries(first=head, before=head + " ", limit=1)
    return found[0] if found else None
