"""The journal of one role's turn on a store: each result is on disk before it is used."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar, cast

import msgspec

from workflow_cas import RefMove, Store, Stored, content, node
from workflow_execute._errors import JournalMismatch
from workflow_execute._ids import now_ms
from workflow_execute._records import TurnRecord
from workflow_protocol import Answer, Effect, Event, Hash, OutcomeUnknown, Question, Suspended

T = TypeVar("T")


class StoreJournal:
    """Records effects as a chain of `turn` nodes under one ref.

    Args:
        store: where the records go.
        ref: the name of the ref that points to the last record.
        records: what earlier runs of this turn left, oldest first, with the bytes of each result.
        last: the hash of the last of these.
        note: hears the events.
    """

    def __init__(
        self,
        store: Store,
        ref: str,
        note: Callable[[Event], Awaitable[None]],
        *,
        records: Iterable[tuple[TurnRecord, bytes | None]] = (),
        last: Hash | None = None,
    ) -> None:
        self._store = store
        self._ref = ref
        self._note = note
        self._known = {record.key: (record, data) for record, data in records}
        self.last = last

    async def run(
        self,
        key: str,
        perform: Callable[[], Awaitable[T]],
        *,
        type: type[T],
        effect: Effect = Effect.READ,
        digest: str = "",
        request: Callable[[], bytes] | None = None,
    ) -> T:
        """See `Journal.run`."""
        del request
        known = self._known.get(key)
        if known is not None:
            record, data = known
            if record.digest != digest:
                raise JournalMismatch(key, "its input differs from what was recorded")
            if data is not None:
                return _decode(data, type)
            if effect is Effect.UNSAFE:
                raise OutcomeUnknown(key)
        elif effect is not Effect.READ:
            await self._append(TurnRecord(key=key, at_ms=now_ms(), effect=effect, digest=digest))
        value = await perform()
        result = content(_encode(value))
        await self._append(
            TurnRecord(key=key, at_ms=now_ms(), result=result.hash, effect=effect, digest=digest),
            result,
        )
        return value

    async def ask(self, key: str, question: Question) -> Answer:
        """See `Journal.ask`."""
        raise Suspended(question.text, key=key)

    async def note(self, event: Event) -> None:
        """See `Journal.note`."""
        await self._note(event)

    async def _append(self, record: TurnRecord, *objects: Stored) -> None:
        """Chain a record to the last one. The store keeps commits in the order of the calls."""
        previous = self.last
        record = msgspec.structs.replace(record, previous=previous)
        turn = node("turn", record, [h for h in (previous, record.result) if h is not None])
        self.last = turn.hash
        await self._store.commit([*objects, turn], [RefMove(self._ref, previous, turn.hash)])


def _encode(value: object) -> bytes:
    return value if isinstance(value, bytes) else msgspec.json.encode(value)


def _decode(data: bytes, type_: type[T]) -> T:
    if type_ is bytes:
        return cast("T", data)
    return msgspec.json.decode(data, type=type_)
