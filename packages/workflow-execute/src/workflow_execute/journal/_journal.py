"""The journal of one role's turn on a store: each result is on disk before it is used."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar, Unpack

import anyio
import msgspec

from workflow_cas import Store, StoreError
from workflow_execute._budget import NO_CHARGE, Budget, Charge
from workflow_execute._errors import JournalMismatch
from workflow_execute._ids import now_ms
from workflow_execute._records import SUPERVISOR_KEYS, TurnRecord
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.journal._files import ThreadFiles
from workflow_execute.journal._input import check_input, describe_input
from workflow_execute.journal._meter import TurnMeter
from workflow_execute.journal._questions import Asker, Questions
from workflow_execute.journal._results import check_journal_key, decode, encode, with_result
from workflow_execute.journal._turn_records import TurnRecords
from workflow_execute.journal._turn_writer import TurnWriter
from workflow_protocol import (
    Answer,
    Effect,
    Event,
    Hash,
    Metered,
    ModelReplied,
    OutcomeUnknown,
    Question,
    RoleStarted,
    RunOptions,
    Suspended,
    ToolFinished,
    Usage,
    check_run_options,
    current_work,
    working,
)

T = TypeVar("T")

_log = logging.getLogger("workflow_execute")

QUICK_READ_S = 0.01
"""A read that took less than this isn't worth a commit of its own: its result is written with the
next record or before an effect, and is read again if the process dies in between."""
MOST_DEFERRED = 100
"""So many quick reads may wait, which take a second at most to be done again, ..."""
MOST_DEFERRED_BYTES = 64 * 1024
"""... each with a result no longer than this, as they are kept in memory."""


class StoreJournal:
    """Records effects as a chain of `turn` nodes under one ref.

    Args:
        store: where the records go.
        ref: the name of the ref that points to the last record.
        notify: hears the events.
        budget: what model calls draw from.
        thread_id: the thread in whose name they do.
        asker: asks a person at once.
        entries: what earlier runs of this turn left, oldest first.
        last: the hash of the last of these.
        interrupted: the process died in this turn, perhaps during a model call.
        files: the versions of the thread's files.
    """

    def __init__(
        self,
        store: Store,
        ref: str,
        notify: Callable[[Event], Awaitable[None]],
        *,
        budget: Budget,
        thread_id: str,
        asker: Asker | None = None,
        entries: Iterable[JournalEntry] = (),
        last: Hash | None = None,
        interrupted: bool = False,
        files: ThreadFiles | None = None,
    ) -> None:
        self._notify = notify
        self._files = files or ThreadFiles(None)
        self._known = TurnRecords.of(entries)
        self.interrupted = interrupted
        """The process died in this turn, which hasn't come to where that was."""
        self.writer = TurnWriter(store, ref, last)
        self.questions = Questions(self.writer, self._known, asker, thread_id=thread_id)
        self.usage = Usage()
        """Of the role's model calls, as far as they were told."""
        self.skipped_calls: list[str] = []
        """Calls that the model wrote after its result."""
        self.meter = TurnMeter(budget, thread_id, self.writer)
        self._done: set[str] = set()
        self._charges: dict[str, Charge] = {}
        self._performing = 0
        self._last_size = 0

    async def run(
        self, key: str, perform: Callable[[], Awaitable[T]], **options: Unpack[RunOptions[T]]
    ) -> T:
        """See `Journal.run`."""
        check_run_options(options)
        check_journal_key(key)
        if key in self._done:
            raise JournalMismatch(
                key, "this turn has used this key already; give each effect a key of its own"
            )
        outer = current_work()
        if (known := self._known.results.get(key)) is not None:
            value = self._reuse(known, options)
            outer.take(known.record.artifacts)
            return value
        effect = options.get("effect", Effect.READ)
        if effect is Effect.UNSAFE and (intent := self._known.intents.get(key)) is not None:
            check_input(intent, options, self._last_size)
            self._files.expect_changes()  # it may have been done, with no record of what it left
            raise OutcomeUnknown(key)
        record = describe_input(key, effect, options, self._last_size)
        if outer.outer is not None:
            record = msgspec.structs.replace(record, nested=True)
        self._last_size = record.size or self._last_size
        metered = options.get("metered")
        if self.interrupted:
            await self._pass_interruption(record, metered)
        reserved = NO_CHARGE if metered is None else self.meter.reserve(key, metered)
        work = outer.begin()
        try:
            with working(work):
                value, took_s = await self._perform(record, perform)
        except BaseException as error:
            outer.drop(work)
            if metered is not None:
                await self._give_up_call(key, metered, reserved, error)
            raise
        charge = NO_CHARGE
        if metered is not None:
            charge = self._charges[key] = self.meter.settle(reserved, metered, value)
        data = encode(value, key)
        record, objects = with_result(record, data, charge, took_s)
        work.is_open = False
        if artifacts := work.published():
            record = msgspec.structs.replace(record, artifacts=artifacts)
        is_free_read = effect is Effect.READ and metered is None and options.get("request") is None
        quick = is_free_read and took_s < QUICK_READ_S and not work.carried
        if quick and len(data) <= MOST_DEFERRED_BYTES and self.writer.queued < MOST_DEFERRED:
            self.writer.defer(record, *objects)
        elif effect is Effect.READ and not work.carried:
            await self.writer.append(record, *objects, wait=self._performing > 0)
        else:
            queued = await self._files.queue_result(self.writer, work, record, *objects)
            await self.writer.write(queued, wait=self._performing > 0)
        self._done.add(key)
        return value

    async def ask(self, key: str, question: Question) -> Answer:
        """See `Journal.ask`."""
        return await self.questions.ask(key, question)

    def recorded(self, key: str) -> bytes | None:
        """See `LastingJournal.recorded`."""
        known = self._known.results.get(key)
        return None if known is None else known.bytes

    async def note(self, event: Event) -> None:
        """See `Journal.note`."""
        if isinstance(event, RoleStarted):
            self.questions.role = event.role
            if self._has_begun:
                event = msgspec.structs.replace(event, recorded=True)
        elif isinstance(event, ToolFinished) and event.skipped:
            self.skipped_calls.append(f"{event.key} {event.name}")
        elif isinstance(event, ModelReplied):
            if not event.key.startswith(SUPERVISOR_KEYS):
                self.usage += event.usage
            event = self._with_cost(event)
        if (known := self._known.results.get(event.key)) is not None:
            event = _told_again(event, known.record)
        await self._notify(event)

    @property
    def _has_begun(self) -> bool:
        """Whether an earlier run of the turn recorded anything. The supervisor comes before it."""
        known = self._known
        keys = (*known.results, *known.intents, *known.questions)
        return any(not key.startswith(SUPERVISOR_KEYS) for key in keys)

    def _with_cost(self, event: ModelReplied) -> ModelReplied:
        """Add what the call counts against the limits, where that is known."""
        known = self._known.results.get(event.key)
        charge = self._charges.pop(event.key, NO_CHARGE)
        micros = charge.micros if known is None else known.record.charged_micros
        if not micros and not self.meter.has_price(event.model, event.usage):
            return event
        return msgspec.structs.replace(event, cost_micros=micros)

    def _reuse(self, known: JournalEntry, options: RunOptions[T]) -> T:
        """Return a recorded result, if it is the answer to the same input."""
        key = known.record.key
        check_input(known.record, options, self._last_size)
        self._done.add(key)
        self._last_size = known.record.size or self._last_size
        value = decode(known.bytes, options["type"])
        if (metered := options.get("metered")) is not None:
            self.meter.reuse(key, metered.model)
        return value

    async def _pass_interruption(self, record: TurnRecord, metered: Metered[T] | None) -> None:
        """Count the model call that the process may have died in, at the first one not recorded."""
        if metered is not None:
            await self.meter.charge_lost_call(record.key, metered)
        if metered is not None or record.effect is not Effect.READ:  # a read may be unrecorded
            self.interrupted = False

    async def _perform(
        self, record: TurnRecord, perform: Callable[[], Awaitable[T]]
    ) -> tuple[T, float]:
        """Perform an effect when what has to be on disk before it is there; give its seconds."""
        key, effect = record.key, record.effect
        if effect is not Effect.READ:
            await self._files.before_effect(self.writer)
        if effect is Effect.UNSAFE:
            intent = TurnRecord(
                key=key, at_ms=now_ms(), kind="intent", effect=effect, digest=record.digest
            )
            await self.writer.append(intent)
        elif effect is Effect.REPEATABLE:
            await self.writer.flush()  # it may do what was read, under a key that stays
        self._performing += 1
        began_s = time.monotonic()
        try:
            return await perform(), time.monotonic() - began_s
        except Suspended:
            # It asked before it did anything, so it may be begun again.
            if effect is Effect.UNSAFE:
                await self.writer.append(TurnRecord(key=key, at_ms=now_ms(), kind="withdrawn"))
            raise
        finally:
            self._performing -= 1

    async def _give_up_call(
        self, key: str, metered: Metered[T], reserved: Charge, error: BaseException
    ) -> None:
        """Settle a model call that raised: one that was cancelled may have cost its worst case."""
        self.meter.release(reserved)
        if isinstance(error, anyio.get_cancelled_exc_class()):
            try:
                await self.meter.charge_lost_call(key, metered)
            except StoreError:  # the cancellation must go on
                _log.exception("the charge of the lost call %r was not recorded", key)


def _told_again(event: Event, record: TurnRecord) -> Event:
    """The event of a call that an earlier run recorded, with the time that it took then."""
    if isinstance(event, ModelReplied | ToolFinished):
        return msgspec.structs.replace(event, recorded=True, elapsed_ms=record.took_ms)
    return msgspec.structs.replace(event, recorded=True)
