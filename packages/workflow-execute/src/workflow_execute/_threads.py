"""Reads threads out of a store: for resuming, showing and listing."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workflow_cas import Node, Store
from workflow_execute._errors import ThreadNotFound
from workflow_execute._records import StartRecord, StateRecord, StatusRecord, TurnRecord
from workflow_protocol import Hash, ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """A step as it is stored."""

    hash: Hash
    record: StateRecord
    value: bytes
    """The role's value as JSON."""
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredThread:
    """A thread as it is stored."""

    thread_id: ThreadId
    start_hash: Hash
    start: StartRecord
    prompt: str
    steps: tuple[StoredStep, ...]
    status: StatusRecord
    status_hash: Hash
    turn: Hash | None
    """The last record of a turn that was begun and not committed."""

    @property
    def head(self) -> Hash:
        """The last state, or the start."""
        return self.steps[-1].hash if self.steps else self.start_hash

    @property
    def workspace(self) -> Path:
        """The folder that its roles work in."""
        return Path(self.start.workspace)


def thread_ref(thread_id: str, what: str) -> str:
    """The name of a thread's ref: `head`, `turn` or `status`."""
    return f"thread/{thread_id}/{what}"


async def list_threads(store: Store) -> list[ThreadId]:
    """Return the ids of all threads, oldest first."""
    names = await store.refs("thread/")
    return [ThreadId(name.split("/")[1]) for name in names if name.endswith("/head")]


async def find_thread(store: Store, prefix: str) -> ThreadId:
    """Complete the beginning of a thread id; `latest` is the one begun last.

    Raises:
        ThreadNotFound: none begins like this, or more than one.
    """
    known = await list_threads(store)
    if prefix == "latest" and known:
        return known[-1]
    found = [each for each in known if each.startswith(prefix.upper())] if prefix else []
    if len(found) == 1:
        return found[0]
    if found:
        raise ThreadNotFound(prefix, near=f"one of {', '.join(found[:5])}")
    raise ThreadNotFound(prefix, near="".join(difflib.get_close_matches(prefix, known, n=1)))


async def read_thread(store: Store, thread_id: ThreadId) -> StoredThread:
    """Read a whole thread.

    Raises:
        ThreadNotFound: there is none of this id.
        StoreError: an object of it is missing or damaged.
    """
    refs = await store.refs(thread_ref(thread_id, ""))
    head = refs.get(thread_ref(thread_id, "head"))
    status = refs.get(thread_ref(thread_id, "status"))
    if head is None or status is None:
        raise ThreadNotFound(thread_id)
    states: list[Node] = []
    current = (await store.get(head)).as_node()
    while current.type == "state":
        states.insert(0, current)
        current = (await store.get(current.read(StateRecord).parent)).as_node()
    start = current.read(StartRecord)
    return StoredThread(
        thread_id=thread_id,
        start_hash=current.hash,
        start=start,
        prompt=(await store.get(start.prompt)).text(),
        steps=await _steps(store, states),
        status=(await store.get(status)).as_node().read(StatusRecord),
        status_hash=status,
        turn=refs.get(thread_ref(thread_id, "turn")),
    )


async def read_turn(store: Store, last: Hash | None) -> list[tuple[TurnRecord, bytes | None]]:
    """Read a turn's records, oldest first, each with the bytes of its result.

    An intent is left out once its result is there.
    """
    records: list[TurnRecord] = []
    while last is not None:
        record = (await store.get(last)).as_node().read(TurnRecord)
        records.insert(0, record)
        last = record.previous
    hashes = [record.result for record in records if record.result is not None]
    data = {each.hash: each.data for each in await store.get_many(hashes)} if hashes else {}
    done = {record.key for record in records if record.result is not None}
    return [
        (record, data[record.result] if record.result is not None else None)
        for record in records
        if record.result is not None or record.key not in done
    ]


async def _steps(store: Store, states: Sequence[Node]) -> tuple[StoredStep, ...]:
    records = [state.read(StateRecord) for state in states]
    hashes = [each for record in records for each in (record.value, record.content)]
    stored = {each.hash: each for each in await store.get_many(hashes)} if hashes else {}
    return tuple(
        StoredStep(
            hash=state.hash,
            record=record,
            value=stored[record.value].data,
            content=stored[record.content].text(),
        )
        for state, record in zip(states, records, strict=True)
    )
