"""The thread that writes to a SQLite store: what waits when it is free becomes one transaction."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

import anyio
from anyio import lowlevel, to_thread

from workflow_cas._entries import Entry
from workflow_cas._errors import StoreError, StoreFull
from workflow_cas._objects import RefMove, Stored
from workflow_cas.sqlite._apply import apply
from workflow_cas.sqlite._database import Connections
from workflow_cas.sqlite._rows import pack


@dataclass(slots=True, eq=False)
class _Commit:
    """A commit on its way: `done` once it is written or refused, with `error` if refused."""

    objects: Sequence[Stored]
    moves: Sequence[RefMove]
    entries: Sequence[Entry]
    done: anyio.Event = field(default_factory=anyio.Event)
    error: StoreError | None = None


async def _wait_until_done(commit: _Commit) -> None:
    """Wait for a commit that has begun. asyncio's own cancellation gets through a shield."""
    with anyio.CancelScope(shield=True):
        while not commit.done.is_set():
            with suppress(anyio.get_cancelled_exc_class()):
                await commit.done.wait()


class Writer:
    """Groups the commits of the tasks of one event loop, in a thread of its own.

    A shared worker thread cost twice the CPU (98 against 52 microseconds a commit), and tools may
    keep those busy.

    Args:
        connections: give the one that writes.
        moved: called in the event loop after a transaction that moved refs.
    """

    def __init__(self, connections: Connections, moved: Callable[[], None]) -> None:
        self._connections = connections
        self._moved = moved
        self._waiting: list[_Commit] = []
        self._writing = False
        self._closing = False
        self._batches: SimpleQueue[list[_Commit] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        loop: Any = lowlevel.current_token().native_token
        call_soon = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon  # or trio's
        self._call_soon: Callable[..., object] = call_soon
        self.transaction_lock = threading.Lock()
        """Held during a transaction; a thread that holds it writes alone in this process."""

    async def commit(
        self, objects: Sequence[Stored], moves: Sequence[RefMove], entries: Sequence[Entry]
    ) -> None:
        """See `Store.commit`."""
        self._connections.check_usable(write=True)
        if self._closing:
            raise StoreError("it is being closed; use it inside its `async with`")
        mine = _Commit(objects, moves, entries)
        self._waiting.append(mine)
        try:
            await lowlevel.checkpoint()  # who is about to commit too comes along
            if not self._writing:
                self._write_waiting()
            await mine.done.wait()
        except anyio.get_cancelled_exc_class():
            if mine in self._waiting:
                self._waiting.remove(mine)
            else:
                await _wait_until_done(mine)
            raise
        if mine.error is not None:
            raise mine.error

    async def close(self) -> None:
        """Write what waits and end the thread."""
        self._closing = True
        if not self._writing:
            self._write_waiting()
        if self._thread is not None:
            await to_thread.run_sync(self._thread.join)

    def _write_waiting(self) -> None:
        if not self._waiting:
            if self._closing:
                self._batches.put(None)
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="workflow-cas", daemon=True)
            self._thread.start()
        self._batches.put(self._waiting)
        self._waiting, self._writing = [], True

    def _finish(self, batch: Sequence[_Commit]) -> None:
        self._writing = False
        self._write_waiting()
        for commit in batch:
            commit.done.set()
        if any(commit.moves for commit in batch):
            self._moved()

    def _run(self) -> None:
        while (batch := self._batches.get()) is not None:
            with self.transaction_lock:
                self._write(batch)
            with suppress(RuntimeError):  # the event loop is gone, and with it who waits
                self._call_soon(self._finish, batch)

    def _write(self, batch: Sequence[_Commit]) -> None:
        try:
            packed = [[pack(stored.data) for stored in commit.objects] for commit in batch]
            with self._connections.writer() as connection:  # from here on, others wait
                for commit, data in zip(batch, packed, strict=True):
                    commit.error = apply(
                        connection, commit.objects, data, commit.moves, commit.entries
                    )
            return
        except StoreError as raised:
            error = raised
        except Exception as raised:  # noqa: BLE001 - a bug: nobody must believe it was written
            error = StoreError(f"the commit failed, nothing was written: {raised!r}")
        # Lack of room, or an object too large, may be due to one of them: each is tried alone.
        if len(batch) > 1 and type(error) in {StoreFull, StoreError}:
            for commit in batch:
                self._write([commit])
            return
        for commit in batch:
            commit.error = error
