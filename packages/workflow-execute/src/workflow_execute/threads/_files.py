"""Which version of its workspace's files a thread had, when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from workflow_cas import Store
from workflow_execute._errors import ThreadNotFound
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.threads._read import StoredThread, read_attempts, read_thread
from workflow_execute.threads._tree import ThreadTree
from workflow_protocol import Hash, ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesOfStep:
    """The versions of the workspace's files around a step; `None` where one isn't known."""

    before: Hash | None
    """What the step found."""
    after: Hash | None
    """What it left."""


def last_version(stored: StoredThread, attempts: Iterable[Iterable[JournalEntry]]) -> Hash | None:
    """The version that the last record of a thread has, its unfinished turn included."""
    found = stored.steps[-1].files if stored.steps else None
    for entry in (each for entries in attempts for each in entries):
        found = entry.files or found
    return found


def newest_version(tree: ThreadTree) -> Hash | None:
    """The files as a thread, or one that it started in its workspace, has left them.

    What others had changed before it went on doesn't count, even if it is recorded. `None` where
    no version is known.
    """
    own: list[tuple[int, Hash]] = []
    found: list[tuple[int, Hash]] = []
    for part in tree.walk():
        if part.thread.workspace != tree.thread.workspace:
            continue
        own += [(each.record.at_ms, each.files) for each in part.thread.steps if each.files]
        for entry in (each for entries in part.attempts for each in entries):
            if entry.files is not None:
                kept = found if entry.record.kind == "files" else own
                kept.append((entry.record.at_ms, entry.files))
    if own:
        return max(reversed(own), key=_time)[1]
    return min(found, key=_time)[1] if found else None


def _time(version: tuple[int, Hash]) -> int:
    return version[0]


async def files_of_step(store: Store, stored: StoredThread, step: int) -> FilesOfStep:
    """The files before and after a step, or what the turn after the last step has changed so far.

    Args:
        store: has the thread.
        stored: the thread.
        step: from 0; the number of steps is the unfinished turn.

    Raises:
        StoreError: a record is missing or damaged.
    """
    last = stored.turn if step == len(stored.steps) else stored.steps[step].turn
    attempts = await read_attempts(store, last)
    before = stored.steps[step - 1].files if step else None
    entries = [each for attempt in attempts for each in attempt]
    first = next((each for each in entries if each.files), None)
    if first is not None and first.record.kind == "files":
        before = _last_of_first(entries, first)
    elif first is not None and before is None:
        before = first.files
    if step < len(stored.steps):
        after = stored.steps[step].files
        children: Sequence[str] = stored.steps[step].record.child_threads
    else:
        after, children = last_version(stored, attempts), ()
    if before is None and after is not None:
        before = await _first_of_children(store, children)
    return FilesOfStep(before=before, after=after)


def _last_of_first(entries: Sequence[JournalEntry], first: JournalEntry) -> Hash | None:
    """The last of the versions that nothing but versions stands between: files were put back."""
    found = first.files
    for entry in entries[entries.index(first) + 1 :]:
        if entry.record.kind != "files":
            break
        found = entry.files
    return found


async def files_after(store: Store, stored: StoredThread, steps: int) -> Hash | None:
    """The files as they were after so many steps, before any later one changed them.

    `None` where no step of the thread has changed any, or it isn't known.

    Raises:
        StoreError: a record is missing or damaged.
    """
    earlier = stored.steps[:steps]
    if any(step.files is not None for step in earlier):
        return earlier[-1].files
    for step in range(steps, len(stored.steps) + 1):
        before = (await files_of_step(store, stored, step)).before
        if before is not None:
            return before
    return None


async def _first_of_children(store: Store, children: Iterable[str]) -> Hash | None:
    """What the first of several threads to change files has found them to be."""
    found: list[tuple[int, Hash]] = []
    for each in children:
        try:
            child = await read_thread(store, ThreadId(each))
        except ThreadNotFound:
            continue
        for step in range(len(child.steps) + 1):
            before = (await files_of_step(store, child, step)).before
            if before is not None:
                at_ms = child.steps[step].record.at_ms if step < len(child.steps) else 0
                found.append((at_ms or child.start.at_ms, before))
                break
    return min(found)[1] if found else None
