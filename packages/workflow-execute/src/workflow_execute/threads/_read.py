"""Reads threads out of a store: for resuming, replaying, showing and listing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from workflow_cas import Node, Store, StoreFormat
from workflow_execute._errors import ThreadNotFound
from workflow_execute._records import (
    FORMAT,
    BranchRecord,
    StartRecord,
    StateRecord,
    StatusRecord,
    TurnRecord,
)
from workflow_execute.journal._entry import JournalEntry
from workflow_protocol import Hash, ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """A step as it is stored."""

    hash: Hash
    record: StateRecord
    value: bytes
    """The role's value as JSON."""
    content: str
    content_hash: Hash
    turn: Hash | None
    """The last record of the turn's journal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredThread:
    """A thread as it is stored."""

    thread_id: ThreadId
    head: Hash
    """The last state; before the first step the start, or a branch."""
    start: StartRecord
    """How it began, with what a fork or another bundle changed since."""
    prompt: str
    steps: tuple[StoredStep, ...]
    own_from: int
    """The first step that was made with this prompt, workspace and bundle."""
    origin: ThreadId | None
    """The thread that it was forked from."""
    status: StatusRecord
    status_hash: Hash
    turn: Hash | None
    """The last record of a turn that was begun and not committed."""

    @property
    def parent(self) -> ThreadId | None:
        """The thread that waits for this one. Nothing waits for the fork of a child."""
        above = self.start.parent_thread
        return ThreadId(above) if above is not None and self.origin is None else None

    @property
    def workspace(self) -> Path:
        """The folder that its roles work in."""
        return Path(self.start.workspace)


_SETTLES = {"result": "intent", "withdrawn": "intent", "unasked": "question"}


def thread_ref(thread_id: str, what: str) -> str:
    """The name of a thread's ref: `head`, `turn` or `status`."""
    return f"thread/{thread_id}/{what}"


async def list_threads(store: Store) -> list[ThreadId]:
    """Return the ids of all threads, oldest first."""
    names = await store.refs("thread/")
    return [ThreadId(name.split("/")[1]) for name in names if name.endswith("/head")]


async def find_thread(store: Store, prefix: str) -> ThreadId:
    """Complete the beginning of a thread id; `latest` is the one begun last that is no child.

    Raises:
        ThreadNotFound: none begins like this, or more than one.
    """
    known = await list_threads(store)
    if prefix == "latest":
        for each in reversed(known):
            if (await read_thread(store, each)).parent is None:
                return each
    found = [each for each in known if each.startswith(prefix.upper())] if prefix else []
    if len(found) == 1:
        return found[0]
    if found:
        raise ThreadNotFound(prefix, near=f"one of {', '.join(found[:5])}")
    # What was typed may be a beginning: it is compared with as much of each id.
    starts = {each[: max(len(prefix), 1)]: each for each in known} | {"LATEST": "latest"}
    near = difflib.get_close_matches(prefix.upper(), starts, n=1)
    raise ThreadNotFound(prefix, near="".join(starts[each] for each in near))


async def read_thread(store: Store, thread_id: ThreadId) -> StoredThread:
    """Read a whole thread.

    Raises:
        ThreadNotFound: there is none of this id.
        StoreError: an object of it is missing or damaged, or a newer version wrote it.
    """
    refs = await store.refs(thread_ref(thread_id, ""))
    head = refs.get(thread_ref(thread_id, "head"))
    status = refs.get(thread_ref(thread_id, "status"))
    if head is None or status is None:
        raise ThreadNotFound(thread_id)
    start, links = await _read_chain(store, head)
    states: list[Node] = []
    own_from, origin = 0, ""
    for link in links:
        if link.type == "state":
            states.append(link)
        else:
            branch = link.read(BranchRecord)
            start, origin = _apply_branch(start, branch), branch.origin or origin
            own_from = len(states)
    return StoredThread(
        thread_id=thread_id,
        head=head,
        start=start,
        prompt=(await store.get(start.prompt)).text(),
        steps=await _read_steps(store, states),
        own_from=own_from,
        origin=ThreadId(origin) if origin else None,
        status=(await store.get(status)).as_node().read(StatusRecord),
        status_hash=status,
        turn=refs.get(thread_ref(thread_id, "turn")),
    )


async def read_turn(store: Store, last: Hash | None) -> list[JournalEntry]:
    """Read the records of a turn's current attempt, oldest first.

    An intent is left out once it is known what came of it.
    """
    return current_attempt(await read_attempts(store, last))


def current_attempt(attempts: Sequence[Sequence[JournalEntry]]) -> list[JournalEntry]:
    """The records of the last attempt, without what a later one settled.

    An intent is settled once it is known what came of it, a question when it is taken back; both
    may come again after.
    """
    kept: dict[int, JournalEntry] = {}
    last_of: dict[tuple[str, str], int] = {}
    for at, entry in enumerate(attempts[-1] if attempts else ()):
        kind, key = entry.record.kind, entry.record.key
        if (settled := _SETTLES.get(kind)) and (settled, key) in last_of:
            del kept[last_of.pop((settled, key))]
        if kind not in {"withdrawn", "unasked"}:
            kept[at] = entry
            last_of[kind, key] = at
    return list(kept.values())


async def read_attempts(store: Store, last: Hash | None) -> list[list[JournalEntry]]:
    """Read all records of a turn, oldest first, each attempt a list. The last one counts."""
    nodes: list[Node] = []
    while last is not None:
        node = (await store.get(last)).as_node()
        nodes.append(node)
        last = None if node.read(TurnRecord).first else node.refs[0]
    attempts: list[list[JournalEntry]] = [[]] if nodes else []
    for node in reversed(nodes):
        record = node.read(TurnRecord)
        if record.kind == "attempt":
            attempts.append([])
            continue
        data: bytes | None = None
        if not isinstance(record.value, msgspec.UnsetType):
            data = bytes(record.value)
        elif record.kind == "result":
            data = (await store.get(node.refs[-1])).data
        attempts[-1].append(JournalEntry(hash=node.hash, record=record, data=data))
    return attempts


CHILD_THREAD = "child-thread"
CHILD_RESULT = "child-result"
"""Parts of the journal keys under which a turn keeps a child's id and what the child came to."""


def is_of_child(key: str) -> bool:
    """Whether a journal key is one of `run_child`, in whatever scope."""
    return not {CHILD_THREAD, CHILD_RESULT}.isdisjoint(key.split("/"))


def children_of_turn(attempts: Iterable[Iterable[JournalEntry]]) -> list[ThreadId]:
    """The child threads that a turn has chosen an id for."""
    return [
        ThreadId(msgspec.json.decode(entry.bytes, type=str))
        for entries in attempts
        for entry in entries
        if entry.record.kind == "result" and CHILD_THREAD in entry.record.key.split("/")
    ]


def was_interrupted(stored: StoredThread) -> bool:
    """Whether its process died in the unfinished turn. The caller knows that nobody runs it."""
    return stored.status.state == "running" or stored.status.died


def unfinished_turn_ms(stored: StoredThread, attempts: Iterable[Sequence[JournalEntry]]) -> int:
    """How long the unfinished turn has been at work, as far as is known.

    Where the process died, it was at work at least until its last record.
    """
    status = stored.status
    steps_until_ms = stored.steps[-1].record.at_ms if stored.steps else 0
    before = status.turn_ms if steps_until_ms <= status.at_ms else 0
    if status.state != "running":
        return before
    records_ms = [entry.record.at_ms for entries in attempts for entry in entries]
    began_ms = max(status.at_ms, steps_until_ms)
    return before + max(0, max(records_ms, default=0) - began_ms)


async def _read_chain(store: Store, head: Hash) -> tuple[StartRecord, list[Node]]:
    """The start, and the nodes from the first after it up to the head."""
    links: list[Node] = []
    current = (await store.get(head)).as_node()
    while current.type in {"state", "branch"}:
        links.append(current)
        current = (await store.get(current.refs[0])).as_node()
    start = current.read(StartRecord)
    if start.format > FORMAT:
        raise StoreFormat(
            f"thread {start.thread_id} has format {start.format} and this version reads {FORMAT}; "
            "upgrade the packages"
        )
    return start, links[::-1]


def _apply_branch(start: StartRecord, branch: BranchRecord) -> StartRecord:
    changes = {
        name: value
        for name in ("workflow", "prompt", "workspace", "bundle")
        if (value := getattr(branch, name)) is not None
    }
    return msgspec.structs.replace(start, thread_id=branch.thread_id, **changes)


async def _read_steps(store: Store, states: Sequence[Node]) -> tuple[StoredStep, ...]:
    records = [(state, state.read(StateRecord)) for state in states]
    hashes = [
        state.refs[position]
        for state, record in records
        for position in (record.value, record.content)
    ]
    stored = {each.hash: each for each in await store.get_many(hashes)} if hashes else {}
    return tuple(
        StoredStep(
            hash=state.hash,
            record=record,
            value=stored[state.refs[record.value]].data,
            content=stored[state.refs[record.content]].text(),
            content_hash=state.refs[record.content],
            turn=None if record.turn is None else state.refs[record.turn],
        )
        for state, record in records
    )
