"""Appends the records of a turn to the store, each to the one before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import msgspec

from workflow_cas import Node, RefConflict, RefMove, Store, Stored, StoreError, node
from workflow_execute._records import TurnRecord
from workflow_execute.journal._facts import fact_moves
from workflow_execute.owners._commit import commit_shielded
from workflow_protocol import Hash
from workflow_workspace import Version


@dataclass(slots=True, eq=False)
class QueuedRecord:
    """A record that isn't written yet."""

    record: TurnRecord
    objects: tuple[Stored, ...]
    awaited: bool
    version: Version | None = None
    facts: Mapping[str, Stored | None] = field(default_factory=dict[str, Stored | None])
    written: bool = False
    error: StoreError | None = None


class TurnWriter:
    """Appends records to the chain under one ref; those that wait together are one commit."""

    def __init__(self, store: Store, ref: str, last: Hash | None) -> None:
        self.on_answer: Callable[[TurnRecord], None] | None = None
        """Hears of answers that another process has put behind the last record."""
        self._store = store
        self._ref = ref
        self._queue: list[QueuedRecord] = []
        self._role = ""
        self._writing = anyio.Lock(fast_acquire=True)  # a commit is a checkpoint anyway
        self.last = last

    def begin_role(self, role: str) -> None:
        """Name the role whose turn it is with the next record, so that readers know it."""
        self._role = role

    async def append(self, record: TurnRecord, *objects: Stored, wait: bool = False) -> None:
        """Write a record with the objects that it needs, as a whole, even if this is cancelled.

        Args:
            record: the record, before it is known what precedes it.
            objects: new objects; the last of them is the record's result.
            wait: let others that are about to append join in.

        Raises:
            StoreError: it could not be written, and is not.
        """
        await self.write(self.queue(record, *objects), wait=wait)

    def queue(
        self,
        record: TurnRecord,
        *objects: Stored,
        version: Version | None = None,
        facts: Mapping[str, Stored | None] | None = None,
    ) -> QueuedRecord:
        """Give a record its place behind those before it; `write` writes it.

        Args:
            record: the record, before it is known what precedes it.
            objects: new objects; the last of them is the record's result.
            version: the workspace's files with it.
            facts: by their refs, what is remembered and (`None`) forgotten with it.
        """
        mine = QueuedRecord(record, objects, awaited=True, version=version, facts=facts or {})
        self._queue.append(mine)
        return mine

    async def write(self, mine: QueuedRecord, *, wait: bool = False) -> None:
        """Write what is queued up to a record, as a whole, even if this is cancelled.

        Args:
            mine: the record.
            wait: let others that are about to append join in.

        Raises:
            StoreError: it could not be written, and is not.
        """
        with anyio.CancelScope(shield=True):
            if wait:
                await anyio.lowlevel.checkpoint()
            async with self._writing:
                if not mine.written and mine.error is None:
                    await self._write_queue()
        if mine.error is not None:
            raise mine.error

    @property
    def queued(self) -> int:
        """How many records aren't written yet."""
        return len(self._queue)

    def defer(self, record: TurnRecord, *objects: Stored, version: Version | None = None) -> None:
        """Write a record with the next one that is appended, or when the turn ends."""
        self._queue.append(QueuedRecord(record, objects, awaited=False, version=version))

    async def flush(self) -> None:
        """Write what was deferred.

        Raises:
            StoreError: it could not be written, and is still deferred.
        """
        with anyio.CancelScope(shield=True):
            async with self._writing:
                if self._queue and (error := await self._write_queue()) is not None:
                    raise error

    def deferred(self) -> tuple[list[Stored], Hash | None]:
        """What was deferred, for the commit that ends the turn, and the last record with it."""
        return self._chain_records(self._queue)

    def _chain_records(self, batch: Sequence[QueuedRecord]) -> tuple[list[Stored], Hash | None]:
        objects: list[Stored] = []
        last = self.last
        for each in batch:
            record = each.record if last else msgspec.structs.replace(each.record, first=True)
            if each is batch[0] and self._role:
                record = msgspec.structs.replace(record, role=self._role)
            version = each.version
            if version is not None:
                record = msgspec.structs.replace(record, files=True)
                objects += version.objects
            files = None if version is None else version.hash
            needed = (last, files, *(o.hash for o in each.objects))
            turn = node("turn", record, [h for h in needed if h])
            objects += [*each.objects, turn]
            last = turn.hash
        return objects, last

    async def catch_up(self) -> bool:
        """Take over the answers that another process has put behind the last record, if any."""
        async with self._writing:
            return bool(await self._read_answers())

    async def wait_for_answer(self, is_there: Callable[[], bool]) -> None:
        """Wait until another process has given the answer that is waited for."""
        async with self._store.watch(self._ref) as moves:
            await self.catch_up()
            while not is_there():
                await anext(moves)
                await self.catch_up()

    async def _write(
        self, batch: Sequence[QueuedRecord]
    ) -> tuple[Hash | None, BaseException | None]:
        """Commit the records behind the last one, or behind answers that came meanwhile.

        Raises:
            RefConflict: something else came, or an answer that is among the records.
        """
        facts = {ref: stored for each in batch for ref, stored in each.facts.items()}
        kept = [stored for stored in facts.values() if stored is not None]
        while True:
            objects, last = self._chain_records(batch)
            moves = [RefMove(self._ref, self.last, last), *await fact_moves(self._store, facts)]
            try:
                return last, await commit_shielded(self._store, [*objects, *kept], moves)
            except RefConflict as conflict:
                if conflict.name in facts:  # another thread remembers under this key, too
                    continue
                answered = await self._read_answers()
                mine = {each.record.key for each in batch if each.record.kind == "answer"}
                if not answered or answered & mine:
                    raise

    async def _read_answers(self) -> set[str]:
        """The keys of what was answered by another process since; the rest is left alone."""
        found = await self._store.ref(self._ref)
        if self.on_answer is None or found is None or found == self.last:
            return set()

        def is_last(node: Node) -> bool:
            record = node.read(TurnRecord)
            return record.kind != "answer" or record.first or node.refs[0] == self.last

        nodes = await self._store.chain(found, is_last)
        records = [node.read(TurnRecord) for node in nodes]
        if any(record.kind != "answer" or record.first for record in records):
            return set()
        self.last = found
        for record in reversed(records):
            self.on_answer(record)
        return {record.key for record in records}

    async def _write_queue(self) -> StoreError | None:
        batch, self._queue = self._queue, []
        try:
            last, cancelled = await self._write(batch)
        except StoreError as error:
            self._queue = [each for each in batch if not each.awaited] + self._queue
            for each in batch:
                each.error = error
            return error
        self.last = last
        self._role = ""
        for each in batch:
            each.written = True
        if cancelled is not None:
            raise cancelled
        return None
