"""Following a thread that this engine does not run, by what is recorded of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from workflow_cas import Store
from workflow_execute._result import ThreadResult
from workflow_execute._workflow import AnyWorkflow
from workflow_execute.threads._context import context_of
from workflow_execute.threads._read import StoredThread, read_thread
from workflow_execute.threads._summary import thread_ref
from workflow_protocol import Event, RoleFinished, ThreadEnded, ThreadId


async def recorded_result(
    store: Store, workflow: AnyWorkflow, thread_id: ThreadId
) -> ThreadResult[Any]:
    """Wait until a thread has ended, whoever runs it, and give what is recorded of its last run.

    Raises:
        ThreadNotFound: it is deleted.
        ThreadNotResumable: the workflow has not the roles of its steps, or other schemas.
    """
    stored = await _wait(store, thread_id, None)
    status, role = stored.status, workflow.definition.result
    return ThreadResult(
        thread_id=thread_id,
        state=status.state,
        return_code=status.return_code or 0,
        summary=status.summary,
        steps=context_of(stored, workflow).steps,
        origin=status.origin,
        traceback=status.traceback,
        cause=status.cause,
        limit=status.limit,
        waits_for=tuple(map(ThreadId, status.waits_for)),
        result_role=role.name if role is not None else "",
    )


async def recorded_events(store: Store, thread_id: ThreadId) -> AsyncGenerator[Event]:
    """Give each step that is or will be committed, and the end.

    Raises:
        ThreadNotFound: the thread is deleted.
    """
    told = 0
    while True:
        stored = await _wait(store, thread_id, told)
        for number, step in enumerate(stored.steps[told:], told):
            yield RoleFinished(
                thread=thread_id,
                role=step.record.role,
                step=number,
                value=step.value.decode(),
                usage=step.record.usage,
                elapsed_ms=step.record.elapsed_ms,
            )
        told = len(stored.steps)
        if _has_ended(stored):
            status = stored.status
            yield ThreadEnded(
                thread=thread_id,
                step=told,
                state=status.state,
                return_code=status.return_code or 0,
                summary=status.summary,
                error=status.error,
                origin=status.origin,
                cause=status.cause,
            )
            return


def _has_ended(stored: StoredThread) -> bool:
    return stored.status.state != "running"


async def _wait(store: Store, thread_id: ThreadId, told: int | None) -> StoredThread:
    """Wait until a thread has ended or, where that is given, has more steps than `told`."""

    def is_it(stored: StoredThread) -> bool:
        return _has_ended(stored) or (told is not None and len(stored.steps) > told)

    stored = await read_thread(store, thread_id)
    if is_it(stored):
        return stored
    async with store.watch(thread_ref(thread_id, "")) as moves:
        while not is_it(stored := await read_thread(store, thread_id)):
            async for move in moves:
                if not move.name.endswith("/turn"):  # which moves often, and tells nothing of it
                    break
    return stored
