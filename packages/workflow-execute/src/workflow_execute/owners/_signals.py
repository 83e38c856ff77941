"""Pausing and cancelling a thread that another task or process runs."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Literal

import anyio

from workflow_cas import RefConflict, RefMove, Store, StoreError, node
from workflow_execute._ids import now_ms
from workflow_execute._records import SignalRecord
from workflow_protocol import Hash, ThreadId

Signal = Literal["pause", "cancel"]
LocalSignal = Signal | Literal["shutdown"]
"""`shutdown` is never sent to another process: the engine of the thread is closed."""

_PREFIX = "signal/"
_RETRY_S = 1.0

_log = logging.getLogger("workflow_execute")


def signal_ref(thread_id: ThreadId) -> str:
    """The name of the ref that a signal to a thread is left under."""
    return _PREFIX + thread_id


class Signals:
    """Tells the threads that run here what others ask of them.

    One of the running threads watches the store for all; when it ends, the next takes over.

    Args:
        watch: whether other processes can see the store.
    """

    def __init__(self, store: Store, *, watch: bool) -> None:
        self._store = store
        self._watch = watch
        self._leading = anyio.Lock()
        self._running: dict[ThreadId, list[Callable[[LocalSignal], None]]] = {}

    async def follow(self, thread_id: ThreadId, act: Callable[[LocalSignal], None]) -> None:
        """Call `act` when somebody signals, until this is cancelled. Several may follow one."""
        acts = self._running.setdefault(thread_id, [])
        acts.append(act)
        try:
            if not self._watch:
                await anyio.sleep_forever()
            while True:
                try:
                    await self._dispatch(signal_ref(thread_id))  # sent before this could hear it
                    async with self._leading:
                        await self._lead()
                except StoreError:
                    _log.exception("signals can't be read, trying again")
                await anyio.sleep(_RETRY_S)
        finally:
            acts.remove(act)
            if not acts:
                del self._running[thread_id]

    def runs_here(self, thread_id: ThreadId) -> bool:
        """Whether this engine runs the thread."""
        return thread_id in self._running

    def run_among(self, thread_ids: Iterable[ThreadId]) -> set[ThreadId]:
        """Which of some threads this engine runs."""
        return {each for each in thread_ids if each in self._running}

    def send_here(self, thread_id: ThreadId, signal: LocalSignal) -> bool:
        """Signal a thread that runs in this engine; false if it doesn't."""
        acts = tuple(self._running.get(thread_id, ()))
        for act in acts:
            act(signal)
        return bool(acts)

    async def send(self, thread_id: ThreadId, signal: Signal, *, status: RefMove) -> None:
        """Leave a signal in the store for whoever runs the thread, unless it is there.

        Args:
            status: checks that the thread has not ended meanwhile: nobody would take it away.
        """
        name = signal_ref(thread_id)
        found = await self._store.ref(name)
        if found is not None and await self._read(found) == signal:
            return  # moving it again would only get in the way of the owner, who takes it away
        record = node("signal", SignalRecord(signal=signal, at_ms=now_ms()))
        try:
            await self._store.commit([record], [RefMove(name, found, record.hash), status])
        except RefConflict:
            return  # somebody else signals at the same moment, or it has ended

    async def remove_with(
        self, thread_id: ThreadId, commit: Callable[[list[RefMove]], Awaitable[None]]
    ) -> None:
        """Commit with the move that takes away a signal that is left over or was followed.

        Whoever sends it sends it again until the thread ends, perhaps at this moment.
        """
        name = signal_ref(thread_id)
        while True:
            found = await self._store.ref(name) if self._watch else None
            try:
                return await commit([RefMove(name, found, None)] if found is not None else [])
            except RefConflict as conflict:
                if conflict.name != name:
                    raise

    async def _lead(self) -> None:
        async with self._store.watch(_PREFIX) as moves:
            for name in await self._store.refs(_PREFIX):
                await self._dispatch(name)
            async for move in moves:
                await self._dispatch(move.name)

    async def _dispatch(self, name: str) -> None:
        thread_id = ThreadId(name.removeprefix(_PREFIX))
        found = await self._store.ref(name)
        if thread_id in self._running and found is not None:
            self.send_here(thread_id, await self._read(found))

    async def _read(self, found: Hash) -> Signal:
        return (await self._store.get(found)).as_node().read(SignalRecord).signal
