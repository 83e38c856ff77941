"""The journal of one role's turn on a store: each result is on disk before it is used."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

import anyio
import msgspec

from workflow_cas import Store, Stored, StoreError, content
from workflow_execute._budget import Budget, Limits, Spent
from workflow_execute._differences import (
    compare,
    find_difference,
    short_digest,
    sketch,
    sketch_start,
)
from workflow_execute._errors import AlreadyAnswered, JournalMismatch, LimitReached, QuestionError
from workflow_execute._ids import now_ms
from workflow_execute._records import SUPERVISOR_KEYS, TurnKind, TurnRecord
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.journal._turn_writer import TurnWriter
from workflow_protocol import (
    Answer,
    Effect,
    Event,
    Hash,
    Metered,
    OutcomeUnknown,
    Question,
    Suspended,
)

T = TypeVar("T")

_log = logging.getLogger("workflow_execute")

_unwrap = msgspec.json.Decoder(list[list[list[msgspec.Raw]]])

Note = Callable[[Event], Awaitable[None]]
Asker = Callable[[str, Question], Awaitable[Answer | None]]
"""Asks a person at once: the key and the question; `None` if nobody answers now."""


QUICK_READ_S = 0.01
"""A read that took less than this isn't worth a commit of its own: its result is written with the
next record or before an effect, and is read again if the process dies in between."""
MOST_WAITING = 100
"""So many quick reads may wait, which take a second at most to be done again, ..."""
MOST_WAITING_BYTES = 64 * 1024
"""... each with a result no longer than this, as they are kept in memory."""

_ADVICE = "resume with the model, tools and prompts it began with, or begin the turn anew (fresh)"


@dataclass(slots=True)
class TurnRecords:
    """What is known of a turn, by key."""

    results: dict[str, JournalEntry] = field(default_factory=dict[str, JournalEntry])
    intents: dict[str, TurnRecord] = field(default_factory=dict[str, TurnRecord])
    questions: dict[str, Question] = field(default_factory=dict[str, Question])
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])

    @classmethod
    def of(cls, entries: Iterable[JournalEntry]) -> TurnRecords:
        """Sort the entries of a turn, oldest first."""
        known = cls()
        for entry in entries:
            key = entry.record.key
            match entry.record.kind:
                case "result":
                    known.results[key] = entry
                    known.intents.pop(key, None)
                case "intent":
                    known.intents[key] = entry.record
                case "withdrawn":
                    known.intents.pop(key, None)
                case "unasked":
                    known.questions.pop(key, None)
                case "question":
                    known.questions[key] = msgspec.json.decode(entry.bytes, type=Question)
                case "answer":
                    known.answers[key] = msgspec.json.decode(entry.bytes, type=Answer)
                case "lost" | "attempt":
                    pass
        return known

    @property
    def pending(self) -> dict[str, Question]:
        """The questions that nobody has answered yet."""
        return {key: asked for key, asked in self.questions.items() if key not in self.answers}


class StoreJournal:
    """Records effects as a chain of `turn` nodes under one ref.

    Args:
        store: where the records go.
        ref: the name of the ref that points to the last record.
        note: hears the events.
        entries: what earlier runs of this turn left, oldest first.
        last: the hash of the last of these.
        asker: asks a person at once.
        budget: what model calls draw from, in the name of `thread_id`.
        interrupted: the process died in this turn, perhaps during a model call.
    """

    def __init__(
        self,
        store: Store,
        ref: str,
        note: Note,
        *,
        entries: Iterable[JournalEntry] = (),
        last: Hash | None = None,
        asker: Asker | None = None,
        budget: Budget | None = None,
        thread_id: str = "",
        interrupted: bool = False,
    ) -> None:
        self._note = note
        self._known = TurnRecords.of(entries)
        self.interrupted = interrupted
        """The process died in this turn, which hasn't come to where that was."""
        self._writer = TurnWriter(store, ref, last)
        self._asker = asker
        self._asking = anyio.Lock()
        self._asked: set[str] = set()
        self._done: set[str] = set()
        self._budget = budget or Budget(Limits())
        self._thread_id = thread_id
        self._rounds = 0
        self._performing = 0
        self._last_size = 0
        self.charged = Spent()
        """What the turn counts against the limits, as far as it was made here or `add`ed."""
        self.metered = False
        """Whether any of its effects said what it took."""

    @property
    def last(self) -> Hash | None:
        """The newest record on disk."""
        return self._writer.last

    def rest(self) -> tuple[list[Stored], Hash | None]:
        """What waits for the next record, for the commit of the step, and the last of it all."""
        return self._writer.rest()

    async def flush(self) -> None:
        """Write what waits for the next record: the turn ends without a step.

        Raises:
            StoreError: it could not be written.
        """
        await self._writer.flush()

    @property
    def pending(self) -> Mapping[str, Question]:
        """The questions that nobody has answered yet."""
        return self._known.pending

    async def run(
        self,
        key: str,
        perform: Callable[[], Awaitable[T]],
        *,
        type: type[T],
        effect: Effect = Effect.READ,
        digest: str = "",
        request: Callable[[], bytes] | None = None,
        metered: Metered[T] | None = None,
    ) -> T:
        """See `Journal.run`."""
        if key in self._done:
            raise JournalMismatch(key, "this turn has its result already; take a key of its own")
        known = self._known.results.get(key)
        if known is not None:
            check_input(known.record, digest, request, self._last_size)
            self._done.add(key)
            self._last_size = known.record.size or self._last_size
            value = decode(known.bytes, type)
            if metered is not None:
                self._rounds += not key.startswith(SUPERVISOR_KEYS)
                self.metered = True  # what it counts is `add`ed with all that is recorded
            return value
        if effect is Effect.UNSAFE and key in self._known.intents:
            check_input(self._known.intents[key], digest, request, self._last_size)
            raise OutcomeUnknown(key)
        record = self._describe(key, effect, digest, request)
        if self.interrupted and metered is not None:
            await self._lose(key, metered)
        if metered is not None or effect is not Effect.READ:  # a read may have been put off
            self.interrupted = False
        reserved = self._reserve(key, metered) if metered is not None else None
        began_s = time.monotonic()
        try:
            if effect is Effect.UNSAFE:
                await self._append(key, "intent", effect=effect, digest=record.digest)
            elif effect is Effect.REPEATABLE:
                await self._writer.flush()  # it may do what was read, under a key that stays
            value = await self._perform(key, perform, effect)
        except BaseException as error:
            if reserved is not None:
                self._budget.release(reserved)
            if metered is not None and isinstance(error, anyio.get_cancelled_exc_class()):
                try:
                    await self._lose(key, metered)
                except StoreError:  # the cancellation must go on
                    _log.exception("what %r took at most was not recorded", key)
            raise
        if metered is not None and reserved is not None:
            self._budget.release(reserved)
            charged = self._charge(metered, value)
            record = msgspec.structs.replace(
                record, charged_tokens=charged.tokens, charged_micros=charged.micros
            )
        data = encode(value)
        record, objects = with_result(record, data)
        free = effect is Effect.READ and metered is None and request is None
        quick = time.monotonic() - began_s < QUICK_READ_S and len(data) <= MOST_WAITING_BYTES
        if free and quick and self._writer.waiting < MOST_WAITING:
            self._writer.put_off(record, *objects)
        else:
            await self._writer.append(record, *objects, wait=self._performing > 0)
        self._done.add(key)
        return value

    async def ask(self, key: str, question: Question) -> Answer:
        """See `Journal.ask`."""
        self._asked.add(key)
        asked = self._known.questions.get(key)
        if asked is not None and asked != question:
            difference = compare(msgspec.json.encode(asked), msgspec.json.encode(question))
            raise JournalMismatch(key, "another question was asked", difference)
        if (answer := self._known.answers.get(key)) is not None:
            return answer
        if asked is None:
            self._known.questions[key] = question
            try:
                await self._append(key, "question", msgspec.json.encode(question), wait=True)
            except StoreError:
                del self._known.questions[key]  # nobody could answer it
                raise
        if self._asker is not None:
            async with self._asking:
                answer = await self._asker(key, question)
            if answer is not None:
                await self.answer(key, answer)
                return answer
        raise Suspended(question.text, key=key)

    async def withdraw_unasked(self) -> None:
        """Take back what an earlier run asked and this one, which got as far, did not ask again."""
        for key in [key for key in self._known.pending if key not in self._asked]:
            await self._append(key, "unasked")
            del self._known.questions[key]

    async def answer(self, key: str, answer: Answer) -> None:
        """Record a person's answer.

        Raises:
            AlreadyAnswered: the question has one.
            QuestionError: nothing was asked under this key.
        """
        pending = self._known.pending
        if key in self._known.answers:
            raise AlreadyAnswered(key, list(pending))
        if key not in pending:
            raise QuestionError(key, list(pending))
        await self._append(key, "answer", msgspec.json.encode(answer))
        self._known.answers[key] = answer

    def recorded(self, key: str) -> bytes | None:
        """See `LastingJournal.recorded`."""
        known = self._known.results.get(key)
        return None if known is None else known.bytes

    async def note(self, event: Event) -> None:
        """See `Journal.note`."""
        await self._note(event)

    async def _perform(self, key: str, perform: Callable[[], Awaitable[T]], effect: Effect) -> T:
        self._performing += 1
        try:
            return await perform()
        except Suspended:
            # It asked before it did anything, so it may be begun again.
            if effect is Effect.UNSAFE:
                await self._append(key, "withdrawn")
            raise
        finally:
            self._performing -= 1

    def _describe(
        self, key: str, effect: Effect, digest: str, request: Callable[[], bytes] | None
    ) -> TurnRecord:
        """What is recorded of an effect beside its result. Called before it is performed."""
        size, drawn = 0, ""
        if request is not None:
            data = request()
            digest = digest or hashlib.sha256(data).hexdigest()
            size, drawn = len(data), sketch(data, sketch_start(self._last_size))
            self._last_size = size
        return TurnRecord(
            key=key, at_ms=0, effect=effect, digest=short_digest(digest), size=size, sketch=drawn
        )

    def _reserve(self, key: str, metered: Metered[T]) -> Spent:
        is_round = not key.startswith(SUPERVISOR_KEYS)
        limit = self._budget.limits.max_rounds
        if is_round and limit is not None and self._rounds >= limit:
            raise LimitReached(
                "max_rounds", f"the limit of {limit} model calls in one turn is reached"
            )
        reserved = self._budget.reserve(metered.model, metered.at_most)
        self._rounds += is_round
        return reserved

    def _charge(self, metered: Metered[T], value: T) -> Spent:
        charged = self._budget.charge(metered.model, metered.used(value), metered.at_most)
        self._budget.count(charged, thread_id=self._thread_id)
        self.add(charged)
        return charged

    async def _lose(self, key: str, metered: Metered[T]) -> None:
        """Count a call whose reply nobody will see. What it took is unknown: the worst case."""
        worst = self._budget.price(metered.model, metered.at_most())
        self._budget.count(worst, thread_id=self._thread_id)
        self.add(worst)
        record = TurnRecord(
            key=key,
            at_ms=now_ms(),
            kind="lost",
            charged_tokens=worst.tokens,
            charged_micros=worst.micros,
        )
        await self._writer.append(record)

    def add(self, charged: Spent) -> None:
        """Count towards the turn what was spent or is recorded. The budget has the latter."""
        self.charged = self.charged.plus(charged)
        self.metered = True

    async def _append(
        self,
        key: str,
        kind: TurnKind,
        value: bytes | None = None,
        *,
        effect: Effect = Effect.READ,
        digest: str = "",
        wait: bool = False,
    ) -> None:
        raw = msgspec.UNSET if value is None else msgspec.Raw(value)
        record = TurnRecord(
            key=key, at_ms=now_ms(), kind=kind, effect=effect, digest=digest, value=raw
        )
        await self._writer.append(record, wait=wait)


def with_result(record: TurnRecord, data: bytes) -> tuple[TurnRecord, tuple[Stored, ...]]:
    """Put a result into its record: JSON inside it, which saves an object, else as a content."""
    if _is_json(data):
        return msgspec.structs.replace(record, at_ms=now_ms(), value=msgspec.Raw(data)), ()
    return msgspec.structs.replace(record, at_ms=now_ms()), (content(data),)


def check_input(
    record: TurnRecord, digest: str, request: Callable[[], bytes] | None, last_size: int
) -> None:
    """Make sure that a record is the answer to the same input.

    Raises:
        JournalMismatch: it isn't; says where the input first differs, as far as that is known.
    """
    if not digest and request is None:
        same, data = not record.digest, None
    elif request is not None and not digest:
        data = request()
        same = record.digest == short_digest(hashlib.sha256(data).hexdigest())
    else:
        same, data = record.digest == short_digest(digest), None
    if same:
        return
    if request is None or not record.size:
        raise JournalMismatch(record.key, f"its input is another one; {_ADVICE}")
    data = request() if data is None else data
    difference = find_difference(
        data, size=record.size, sketched=record.sketch, start=sketch_start(last_size)
    )
    reason = f"its input is another one ({len(data)} bytes, recorded are {record.size}); {_ADVICE}"
    raise JournalMismatch(record.key, reason, difference, now=data)


def encode(value: object) -> bytes:
    """A result as bytes."""
    return value if isinstance(value, bytes) else msgspec.json.encode(value)


def decode(data: bytes, type_: type[T]) -> T:
    """A result from its bytes."""
    if type_ is bytes:
        return cast("T", data)
    return msgspec.json.decode(data, type=type_)


def _is_json(data: bytes) -> bool:
    """Whether the bytes are one JSON value that comes back from inside another as it is."""
    try:
        data.decode()
        inside = b"[[[%s]]]" % data  # a record has it that deep, and depth is limited
        return bytes(_unwrap.decode(inside)[0][0][0]) == data
    except (UnicodeDecodeError, msgspec.MsgspecError, RecursionError, IndexError):
        return False
