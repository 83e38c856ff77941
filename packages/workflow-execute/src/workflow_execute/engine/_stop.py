"""Stopping a thread, whoever runs it: its owner is told, or if there is none, the end recorded."""

from __future__ import annotations

import anyio

from workflow_cas import RefConflict, RefMove
from workflow_execute._errors import ThreadBusy, ThreadNotResumable
from workflow_execute.owners._locks import owning
from workflow_execute.owners._signals import Signal
from workflow_execute.run._services import RunServices
from workflow_execute.threads._read import read_thread
from workflow_execute.threads._summary import thread_ref
from workflow_execute.threads._tree import cancel_children, commit_stop
from workflow_protocol import ThreadId

STOP_TIMEOUT_S = 30.0
_RETRY_S = 0.1


async def stop_thread(
    services: RunServices, thread_id: ThreadId, signal: Signal, timeout_s: float
) -> None:
    """Signal a thread until it has stopped. See `Engine.pause` and `Engine.cancel`."""
    store, signals = services.store, services.signals
    stored = await read_thread(store, thread_id)
    deadline = anyio.current_time() + timeout_s
    wanted = ("cancelled", "") if signal == "cancel" else ("suspended", "paused")
    while True:
        try:
            if not signals.send_here(thread_id, signal):
                async with owning(services.locks, thread_id, patience_s=0):
                    await _record_stop(services, thread_id, signal)
                    return
        except RefConflict:
            pass  # it ended by itself at this moment: see how
        except ThreadBusy:
            status = thread_ref(thread_id, "status")
            same = RefMove(status, stored.status_hash, stored.status_hash)
            await signals.send(thread_id, signal, status=same)
            if anyio.current_time() > deadline:
                raise
        await anyio.sleep(_RETRY_S)
        stored = await read_thread(store, thread_id)
        if (stored.status.state, stored.status.cause) == wanted:
            return


async def _record_stop(services: RunServices, thread_id: ThreadId, signal: Signal) -> None:
    """Record the end of a thread that nobody runs."""
    store, signals = services.store, services.signals
    stored = await read_thread(store, thread_id)
    if stored.status.state == "completed":
        await signals.remove_with(thread_id, lambda moves: store.commit([], moves))
        raise ThreadNotResumable(f"thread {thread_id} is completed")
    await signals.remove_with(thread_id, lambda moves: commit_stop(store, stored, signal, moves))
    if signal == "cancel":
        await cancel_children(store, thread_id)
