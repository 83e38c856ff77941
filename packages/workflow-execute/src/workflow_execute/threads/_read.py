"""Reads threads out of a store: for resuming, replaying, showing and listing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from workflow_cas import Node, Store, Stored, StoreFormat
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
from workflow_execute.threads._summary import (
    TOP,
    ThreadSummary,
    begun,
    summary_of,
    thread_ref,
    with_branch,
    with_prompt,
    with_status,
    with_step,
)
from workflow_protocol import Failure, Hash, ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStep:
    """A step as it is stored."""

    hash: Hash
    """Of the state's object."""
    record: StateRecord
    """What is kept of it."""
    value: bytes
    """The role's value as JSON."""
    content: str
    """The role's words, which later roles read."""
    content_hash: Hash
    """Of the object that holds them."""
    turn: Hash | None
    """The last record of the turn's journal."""
    files: Hash | None = None
    """The version of the workspace's files that it left, if that is known."""

    @property
    def failure(self) -> Failure | None:
        """Why the turn has no value; `value` and `content` are what was kept of it then."""
        if not self.record.error:
            return None
        message = msgspec.json.decode(self.content, type=_FailureWords).message
        return Failure(type=self.record.error, message=message, limit=self.record.limit)


class _FailureWords(msgspec.Struct):
    """The content of a step that failed: see `Failure.content`."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredThread:
    """A thread as it is stored."""

    thread_id: ThreadId
    """The thread."""
    head: Hash
    """The last state; before the first step the start, or a branch."""
    start: StartRecord
    """How it began, with what a fork or another bundle changed since."""
    prompt: str
    """Its task."""
    steps: tuple[StoredStep, ...]
    """Oldest first."""
    own_from: int
    """The first step that was made with this prompt, workspace and bundle."""
    origin: ThreadId | None
    """The thread that it was forked from."""
    status: StatusRecord
    """How its latest run stands."""
    status_hash: Hash
    """Of the status's object."""
    turn: Hash | None
    """The last record of a turn that was begun and not committed."""
    without_status: ThreadSummary
    """Its summary as far as it does not depend on the status."""

    @property
    def summary(self) -> ThreadSummary:
        """The thread in short, as its entry has to be."""
        return with_status(self.without_status, self.status)

    @property
    def turn_models(self) -> tuple[str, ...]:
        """The models that its unfinished turn has asked, as far as it is recorded."""
        return self.status.models if self.status.at_step == len(self.steps) else ()

    @property
    def parent(self) -> ThreadId | None:
        """The thread that waits for this one. Nothing waits for the fork of a child."""
        above = self.start.parent_thread
        return ThreadId(above) if above is not None and self.origin is None else None

    @property
    def workspace(self) -> Path:
        """The folder that its roles work in."""
        return Path(self.start.workspace)


_SHOWN_MATCHES = 5
_SETTLES = {"result": "intent", "withdrawn": "intent", "unasked": "question"}


async def list_threads(store: Store) -> list[ThreadId]:
    """Return the ids of all threads, oldest first."""
    names = await store.refs("thread/")
    return [ThreadId(name.split("/")[1]) for name in names if name.endswith("/head")]


async def find_thread(store: Store, prefix: str) -> ThreadId:
    """Complete the beginning of a thread id; `latest` is the one begun last that is no child.

    Raises:
        ThreadNotFound: none begins like this, or more than one.
    """
    if prefix == "latest":
        newest = await store.entries(labels=[TOP], limit=1)
        if newest:
            return summary_of(newest[0]).thread_id
    elif prefix:
        start = f"thread/{prefix.upper()}"
        entries = await store.entries(first=start, before=f"{start}~", limit=_SHOWN_MATCHES)
        found = sorted(summary_of(entry).thread_id for entry in entries)
        if len(found) == 1:
            return found[0]
        if found:
            raise ThreadNotFound(prefix, near=f"one of {', '.join(found)}")
    known = await list_threads(store)
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
    chain = await read_chain(store, head)
    needed = [
        state.refs[position]
        for state, record in zip(chain.states, chain.records, strict=True)
        for position in (record.value, record.content)
    ]
    stored = await get_by_hash(store, [chain.start.prompt, status, *needed])
    prompt = stored[chain.start.prompt].text()
    return StoredThread(
        thread_id=thread_id,
        head=head,
        start=chain.start,
        prompt=prompt,
        steps=_steps_of(chain, stored),
        own_from=chain.own_from,
        origin=chain.summary.origin,
        status=stored[status].as_node().read(StatusRecord),
        status_hash=status,
        turn=refs.get(thread_ref(thread_id, "turn")),
        without_status=with_prompt(chain.summary, prompt),
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
    if last is None:
        return []
    nodes = [(node, node.read(TurnRecord)) for node in reversed(await store.chain(last, _is_first))]
    contents = await get_by_hash(
        store, (node.refs[-1] for node, record in nodes if _has_content(record))
    )
    attempts: list[list[JournalEntry]] = [[]]
    for node, record in nodes:
        if record.kind == "attempt":
            attempts.append([])
            continue
        data: bytes | None = None
        if not isinstance(record.value, msgspec.UnsetType):
            data = bytes(record.value)
        elif _has_content(record):
            data = contents[node.refs[-1]].data
        files = node.refs[0 if record.first else 1] if record.files else None
        attempts[-1].append(JournalEntry(hash=node.hash, record=record, data=data, files=files))
    return attempts


def _is_first(node: Node) -> bool:
    return node.read(TurnRecord).first


def _has_content(record: TurnRecord) -> bool:
    """Whether the result of a record is an object of its own."""
    return record.kind == "result" and isinstance(record.value, msgspec.UnsetType)


CHILD_THREAD = "child-thread"
CHILD_RESULT = "child-result"
CHILD_BUNDLE = "child-bundle"
"""Parts of the journal keys under which a turn keeps a child's id, what the child came to, and the
bundle of one that runs a registered workflow."""


def is_of_child(key: str) -> bool:
    """Whether a journal key is one of `run_child`, in whatever scope."""
    return not {CHILD_THREAD, CHILD_RESULT, CHILD_BUNDLE}.isdisjoint(key.split("/"))


def children_of_turn(attempts: Iterable[Iterable[JournalEntry]]) -> list[ThreadId]:
    """The child threads that a turn has chosen an id for."""
    return [
        ThreadId(msgspec.json.decode(entry.bytes, type=str))
        for entries in attempts
        for entry in entries
        if entry.record.kind == "result" and CHILD_THREAD in entry.record.key.split("/")
    ]


def role_at_work(stored: StoredThread, attempts: Iterable[Sequence[JournalEntry]]) -> str:
    """The role of the unfinished turn, as far as it is recorded; else empty."""
    named = [entry.record.role for entries in attempts for entry in entries if entry.record.role]
    if named:
        return named[-1]
    return stored.status.place


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


@dataclass(slots=True)
class Chain:
    """What the nodes up to a head come to."""

    start: StartRecord
    """How it began, with what branches changed since."""
    summary: ThreadSummary
    """Without a status and the prompt."""
    states: list[Node] = field(default_factory=list[Node])
    records: list[StateRecord] = field(default_factory=list[StateRecord])
    """Those of `states`."""
    own_from: int = 0

    def add(self, link: Node) -> None:
        """Take in the next node."""
        if link.type == "state":
            record = link.read(StateRecord)
            self.states.append(link)
            self.records.append(record)
            self.summary = with_step(self.summary, record)
        else:
            branch = link.read(BranchRecord)
            self.start = _apply_branch(self.start, branch)
            self.summary = with_branch(self.summary, branch)
            self.own_from = len(self.states)


async def read_chain(store: Store, head: Hash) -> Chain:
    """Read all nodes from the start up to a head.

    Raises:
        StoreError: one is missing or damaged, or a newer version wrote it.
    """
    links = await store.chain(head, _is_start)
    start = links.pop().read(StartRecord)
    if start.format > FORMAT:
        raise StoreFormat(
            f"thread {start.thread_id} has format {start.format} and this version reads {FORMAT}; "
            "upgrade the packages"
        )
    chain = Chain(start, begun(start))
    for link in reversed(links):
        chain.add(link)
    return chain


def _is_start(node: Node) -> bool:
    return node.type not in {"state", "branch"}


def _apply_branch(start: StartRecord, branch: BranchRecord) -> StartRecord:
    changes = {
        name: value
        for name in ("workflow", "prompt", "workspace", "bundle")
        if (value := getattr(branch, name)) is not None
    }
    if branch.origin:  # a fork is nobody's submission
        changes["key"] = ""
    return msgspec.structs.replace(start, thread_id=branch.thread_id, **changes)


def _steps_of(chain: Chain, stored: Mapping[Hash, Stored]) -> tuple[StoredStep, ...]:
    return tuple(
        StoredStep(
            hash=state.hash,
            record=record,
            value=stored[state.refs[record.value]].data,
            content=stored[state.refs[record.content]].text(),
            content_hash=state.refs[record.content],
            turn=None if record.turn is None else state.refs[record.turn],
            files=None if record.files is None else state.refs[record.files],
        )
        for state, record in zip(chain.states, chain.records, strict=True)
    )


async def get_by_hash(store: Store, hashes: Iterable[Hash]) -> dict[Hash, Stored]:
    """Several objects, in one go."""
    wanted = list(dict.fromkeys(hashes))
    return {each.hash: each for each in await store.get_many(wanted)} if wanted else {}
