"""Makes sure that the objects of a file are the threads that it names, before one is trusted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from workflow_cas import Entry, Store
from workflow_execute._records import StatusRecord
from workflow_execute.exchange._format import ThreadRefs, is_thread_id
from workflow_execute.journal._turn_records import TurnRecords
from workflow_execute.threads._read import (
    Chain,
    children_of_turn,
    current_attempt,
    read_attempts,
    read_chain,
)
from workflow_execute.threads._summary import entry_of, with_prompt, with_status
from workflow_protocol import Hash, WorkflowError


class NotAThread(Exception):
    """The objects are not those of a thread. The message says what is wrong."""


class CheckedThread(NamedTuple):
    """What the records of a thread come to."""

    entry: Entry
    """Made anew from the records."""
    bundle: Hash | None
    children: list[str]
    """The ids of what it started."""


class _Failure(msgspec.Struct):
    message: str


class _Tally:
    """Counts records, so that many turns which name the same ones can't make a check endless.

    In a thread each record has one place, and is read once.
    """

    def __init__(self, most: int) -> None:
        self._left = most

    def count(self, records: int) -> None:
        """Take so many records into account.

        Raises:
            ValueError: they are more than there are objects.
        """
        self._left -= records
        if self._left < 0:
            raise ValueError("several of its turns or threads have the same records")


async def check_threads(
    store: Store, threads: Iterable[ThreadRefs], *, objects: int
) -> list[CheckedThread]:
    """Read all records of the threads. It takes time in proportion to the objects.

    Args:
        store: has them.
        threads: the one that all is about, then those that it started.
        objects: how many there are in all.

    Raises:
        NotAThread: a record is missing, of another kind or not one that a thread has; or there is
            a thread that none of those before it started.
    """
    checked: list[CheckedThread] = []
    wanted: set[str] = set()
    tally = _Tally(objects)
    for at, thread in enumerate(threads):
        if at and thread.id not in wanted:
            raise NotAThread(f"thread {thread.id} was not started by one before it")
        try:
            found = await _check_thread(store, thread, tally)
        except (
            WorkflowError, msgspec.MsgspecError, ValueError, LookupError, RecursionError,
        ) as error:  # fmt: skip
            raise NotAThread(f"thread {thread.id} can't be read: {error}") from error
        checked.append(found)
        wanted.update(found.children)
    return checked


async def _check_thread(store: Store, thread: ThreadRefs, tally: _Tally) -> CheckedThread:
    chain = await read_chain(store, thread.head)
    tally.count(len(chain.states) + 1)
    _check_ids(thread, chain)
    prompt = (await store.get(chain.start.prompt)).text()
    for state, record in zip(chain.states, chain.records, strict=True):
        await _check_content(store, _at(state.refs, record.value))
        await _check_content(store, _at(state.refs, record.content))
        if record.error:
            _check_failure((await store.get(state.refs[record.content])).data)
        if record.turn is not None:
            await _check_turn(store, _at(state.refs, record.turn), tally)
    status = (await store.get(thread.status)).as_node().read(StatusRecord)
    children = [each for record in chain.records for each in record.child_threads]
    children += await _check_turn(store, thread.turn, tally)
    for each in children:
        if not is_thread_id(each):
            raise ValueError(f"{each[:100]!r} can't be the id of a thread")
    entry = entry_of(with_status(with_prompt(chain.summary, prompt), status))
    return CheckedThread(entry, chain.start.bundle, children)


def _check_ids(thread: ThreadRefs, chain: Chain) -> None:
    if chain.start.thread_id != thread.id:
        raise ValueError(f"its records are those of thread {chain.start.thread_id[:100]!r}")
    for each in (chain.start.parent_thread, chain.summary.origin):
        if each is not None and not is_thread_id(each):
            raise ValueError(f"{each[:100]!r} can't be the id of a thread")


async def _check_content(store: Store, hash: Hash) -> None:
    (await store.get(hash)).text()


def _check_failure(content: bytes) -> None:
    """Make sure that the content of a step that failed says why."""
    msgspec.json.decode(content, type=_Failure)


async def _check_turn(store: Store, last: Hash | None, tally: _Tally) -> list[str]:
    """Read the records of a turn, and give the ids of the threads that it started."""
    attempts = await read_attempts(store, last)
    tally.count(sum(map(len, attempts)))
    for entry in (each for entries in attempts for each in entries):
        if entry.data is None and entry.record.kind in {"result", "question", "answer"}:
            raise ValueError(f"the {entry.record.kind} {entry.record.key[:100]!r} has no value")
    TurnRecords.of(current_attempt(attempts))
    return [str(each) for each in children_of_turn(attempts)]


def _at(refs: tuple[Hash, ...], position: int) -> Hash:
    """What a record names by its position.

    Raises:
        ValueError: there is none.
    """
    if not 0 <= position < len(refs):
        raise ValueError(f"a record refers to its object {position} of {len(refs)}")
    return refs[position]
