"""Carries recorded turns out again, offline: nothing is performed, every input is compared."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Container, Generator, Iterable, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar, Unpack

import msgspec

from workflow_cas import Store
from workflow_execute._differences import compare, is_same_but_for_order
from workflow_execute._errors import JournalMismatch, NotRecorded
from workflow_execute._records import SUPERVISOR_KEYS
from workflow_execute._supervisor import Decision, completion_of, recorded_decision
from workflow_execute._workflow import AnyWorkflow, encoded_value
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.journal._input import check_input
from workflow_execute.journal._questions import check_question
from workflow_execute.journal._results import decode
from workflow_execute.journal._turn_records import TurnRecords
from workflow_execute.threads._context import context_of, typed_step
from workflow_execute.threads._read import (
    StoredStep,
    StoredThread,
    is_of_child,
    read_thread,
    read_turn,
)
from workflow_protocol import (
    SHOWN_KEYS,
    Answer,
    Completion,
    Effect,
    Event,
    OutcomeUnknown,
    Question,
    RunOptions,
    Suspended,
    ThreadContext,
    ThreadId,
    is_same_value,
    schema_of,
)

T = TypeVar("T")
SetOptions = Callable[[Sequence[str]], AbstractContextManager[object]]
"""Lets the `run_options` of a run hold while a block lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRequest:
    """An input of a recorded effect, such as a request to a model."""

    step: int
    key: str
    data: bytes
    """The exact bytes."""
    recorded: bool
    """False for the one that the thread stopped at, which has no reply yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What carrying a thread out again came to: the same as before, or an error said otherwise."""

    steps: int
    """Finished steps that were compared."""
    effects: int
    """Recorded results that were used."""
    requests: int
    """Inputs whose bytes were compared with their digest."""
    completion: Completion | None
    """How the thread ended, if it is completed."""


async def replay_thread(
    store: Store,
    workflow: AnyWorkflow,
    thread_id: ThreadId,
    on_request: Callable[[ReplayedRequest], None] | None = None,
    set_options: SetOptions | None = None,
) -> Replay:
    """Carry a thread out again from its records alone, and compare all that comes of it.

    A fork is replayed from where it begins; what precedes it belongs to the thread it came from.

    Args:
        store: holds the thread. It is only read.
        workflow: what the thread was run with.
        thread_id: the thread.
        on_request: gets the bytes of each input as it is rebuilt.
        set_options: lets what was set for a run alone hold while a turn of that run is replayed.

    Raises:
        ThreadNotFound: there is none of this id.
        ThreadNotResumable: the workflow has not the roles, or other schemas.
        JournalMismatch: something else was asked for, or came out, than before.
    """
    stored = await read_thread(store, thread_id)
    whole = context_of(stored, workflow)
    ctx = replace(whole, steps=whole.steps[: stored.own_from])
    effects = requests = 0
    for step in stored.steps[stored.own_from :]:
        entries = await read_turn(store, step.turn)
        journal = _ReplayJournal(step.record.step, entries, on_request)
        with _set(set_options, step.record.run_options):
            await _replay_step(workflow, ctx, step, journal)
        ctx = replace(ctx, steps=(*ctx.steps, typed_step(step, workflow)))
        effects, requests = effects + journal.used, requests + journal.compared
    journal = _ReplayJournal(len(ctx.steps), await read_turn(store, stored.turn), on_request)
    with _set(set_options, stored.status.run_options):
        completion = await _replay_unfinished(workflow, ctx, journal)
    if stored.status.state == "completed":
        recorded = Completion(
            return_code=stored.status.return_code or 0, summary=stored.status.summary
        )
        if completion != recorded:
            raise JournalMismatch("completion", f"it was {recorded}, now it is {completion}")
    return Replay(
        steps=len(stored.steps) - stored.own_from,
        effects=effects + journal.used,
        requests=requests + journal.compared,
        completion=completion,
    )


def _set(set_options: SetOptions | None, options: Sequence[str]) -> AbstractContextManager[object]:
    return nullcontext() if set_options is None else set_options(options)


async def check_unfinished_turn(
    store: Store, workflow: AnyWorkflow, stored: StoredThread, folder: Path
) -> None:
    """Make sure that a workflow asks, in the unfinished turn, for what is recorded.

    Args:
        folder: the workspace that it would go on in.

    Raises:
        ThreadNotResumable: the workflow has not the roles, or other schemas.
        JournalMismatch: it asks for something else.
    """
    if stored.turn is not None:
        ctx = context_of(stored, workflow)
        ctx = replace(ctx, start=msgspec.structs.replace(ctx.start, workspace=folder))
        journal = _ReplayJournal(len(ctx.steps), await read_turn(store, stored.turn), None)
        await _replay_unfinished(workflow, ctx, journal)


async def _replay_unfinished(
    workflow: AnyWorkflow, ctx: ThreadContext, journal: _ReplayJournal
) -> Completion | None:
    """Carry a turn out again as far as it came, and give the end of the thread if that is one.

    Raises:
        JournalMismatch: it asks for something else than is recorded.
    """
    try:
        completion = completion_of(journal.decision)
        if completion is not None:
            return completion
        outcome = await workflow.advance(replace(ctx, journal=journal))
    except Exception:  # noqa: BLE001 - it ends where the records do, and a role may wrap that
        outcome = None
    if journal.mismatch is not None:  # whatever the role has made of it
        raise journal.mismatch
    return outcome if isinstance(outcome, Completion) else None


async def _replay_step(
    workflow: AnyWorkflow, ctx: ThreadContext, step: StoredStep, journal: _ReplayJournal
) -> None:
    """Carry one finished turn out again.

    Raises:
        JournalMismatch: it isn't the step that is recorded.
    """
    place = f"step {step.record.step}"
    outcome = await workflow.advance(replace(ctx, journal=journal))
    if isinstance(outcome, Completion) or outcome.role != step.record.role:
        now = "the end" if isinstance(outcome, Completion) else outcome.role
        raise JournalMismatch(place, f"the next role was {step.record.role!r}, now it is {now!r}")
    schema = schema_of(workflow.definition.role(outcome.role).schema)
    for what, recorded, now, is_same in (
        ("value", step.value, outcome.json, is_same_value(schema, step.value, outcome.json)),
        (
            "content",
            step.content.encode(),
            outcome.content.encode(),
            outcome.content == encoded_value(schema, outcome.meta, outcome.json)
            and is_same_but_for_order(step.content, outcome.content),
        ),
        (
            "usage",
            msgspec.json.encode(step.record.usage),
            msgspec.json.encode(outcome.usage),
            False,
        ),
    ):
        if not is_same and (difference := compare(recorded, now)) is not None:
            raise JournalMismatch(f"{place}, {what}", "it has changed", difference)
    if journal.unused:
        unused = ", ".join(sorted(journal.unused))
        raise JournalMismatch(place, f"these recorded effects were not used: {unused}")


class _ReplayJournal:
    """A journal that knows the past and does nothing."""

    def __init__(
        self,
        step: int,
        entries: Iterable[JournalEntry],
        on_request: Callable[[ReplayedRequest], None] | None,
    ) -> None:
        self._step = step
        self._known = TurnRecords.of(entries)
        self._on_request = on_request
        self._last_size = 0
        # The supervisor is no part of the workflow: what it did is not asked for again. Nor is a
        # child that a tool started, whose result is the tool's, and what a person was shown, and
        # a part of an effect, whose result is recorded as a whole.
        self.unused = {
            key
            for key in self._known.results
            if not key.startswith(SUPERVISOR_KEYS)
            and not is_of_child(key)
            and f"/{SHOWN_KEYS}" not in f"/{key}"
            and not _is_part(key, self._known.results)
        }
        self.used = 0
        self.compared = 0
        self.mismatch: JournalMismatch | None = None
        """The first thing that was asked for otherwise than it is recorded."""

    @property
    def decision(self) -> Decision | None:
        """What the supervisor decided before this turn."""
        return recorded_decision({key: each.bytes for key, each in self._known.results.items()})

    async def run(
        self,
        key: str,
        perform: Callable[[], Awaitable[T]],
        **options: Unpack[RunOptions[T]],
    ) -> T:
        del perform
        digest, request = options.get("digest", ""), options.get("request")
        known = self._known.results.get(key)
        record = known.record if known is not None else self._known.intents.get(key)
        if request is not None and self._on_request is not None:
            self._on_request(
                ReplayedRequest(step=self._step, key=key, data=request(), recorded=bool(known))
            )
        if record is None:
            raise NotRecorded(key)
        with self._noting_mismatch():
            check_input(record, options, self._last_size)
        if known is None:
            if options.get("effect") is Effect.UNSAFE:
                raise OutcomeUnknown(key)
            raise NotRecorded(key)
        if request is not None:
            with self._noting_mismatch():
                self._compare_bytes(key, digest, request)
            self._last_size = known.record.size
        self.unused.discard(key)
        self.used += 1
        return decode(known.bytes, options["type"])

    async def ask(self, key: str, question: Question) -> Answer:
        with self._noting_mismatch():
            check_question(key, self._known.questions.get(key), question)
        if key not in self._known.answers:
            raise Suspended(question.text, key=key)
        return self._known.answers[key]

    async def note(self, event: Event) -> None:
        del event

    @contextmanager
    def _noting_mismatch(self) -> Generator[None]:
        try:
            yield
        except JournalMismatch as error:
            self.mismatch = self.mismatch or error
            raise

    def _compare_bytes(self, key: str, digest: str, request: Callable[[], bytes]) -> None:
        """Make sure that the digest is that of the bytes, where it is a SHA-256."""
        data = request()
        if len(digest) == 64 and hashlib.sha256(data).hexdigest() != digest:
            raise JournalMismatch(key, "its digest does not match its bytes")
        self.compared += 1


def _is_part(key: str, results: Container[str]) -> bool:
    """Whether an effect whose result is recorded was put together of this one, among others."""
    names = key.split("/")
    return any("/".join(names[:count]) in results for count in range(1, len(names)))
