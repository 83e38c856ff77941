"""A handle: what a caller has of a thread that runs beside it, here or in another process."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from typing import Any, Generic, TypeVar, cast

import anyio

from workflow_execute._result import ThreadResult
from workflow_execute._workflow import Workflow
from workflow_execute.engine._background import BackgroundRun
from workflow_execute.engine._feed import EventsMissed
from workflow_execute.engine._follow import recorded_events, recorded_result
from workflow_execute.engine._stop import STOP_TIMEOUT_S, stop_thread
from workflow_execute.owners._cancellation import cancelled_by_anyio
from workflow_execute.run._services import RunServices
from workflow_protocol import Event, ThreadId, WorkflowError

Out = TypeVar("Out", covariant=True)


class ThreadHandle(Generic[Out]):
    """A thread that runs in the background, or has run; `Engine.submit` and others give it.

        result = await handle
        async for event in handle: ...

    `await` waits until this run of the thread ends in one of its states. Any number of tasks may
    wait, before and after the end. A wait that is cancelled leaves the thread alone; see `result`.

    `async for` gives the events of the run and of its child threads, from the first that is kept,
    and ends with the run. Each loop goes at its own pace. Of a run in this engine the last 1000
    events are kept, or 4 million characters of text in them; a loop that comes late or is slow gets
    an `EventsMissed` in place of what is gone. Of a thread that another process runs, or that has
    ended, it gives what is recorded: a `RoleFinished` for each step, and `ThreadEnded`.
    """

    id: ThreadId
    """The thread's id."""
    is_new: bool
    """Whether the call that gave this handle has begun the thread."""

    def __init__(
        self,
        services: RunServices,
        workflow: Workflow[Any, Out],
        thread_id: ThreadId,
        run: BackgroundRun | None,
        *,
        is_new: bool = False,
    ) -> None:
        self.id = thread_id
        self.is_new = is_new
        self._services = services
        self._workflow = workflow
        self._run = run

    def __repr__(self) -> str:
        return f"ThreadHandle({self.id})"

    @property
    def runs_here(self) -> bool:
        """Whether it is of a run in the engine that gave it."""
        return self._run is not None

    def __await__(self) -> Generator[Any, Any, ThreadResult[Out]]:
        """Wait for the end: see `result`."""
        return self._wait().__await__()

    def __aiter__(self) -> AsyncIterator[Event | EventsMissed]:
        """Give the events, from the first that is kept."""
        if self._run is not None:
            return self._run.feed.read()
        return cast(
            "AsyncGenerator[Event | EventsMissed]", recorded_events(self._services.store, self.id)
        )

    async def result(self, *, cancel_thread: bool = False) -> ThreadResult[Out]:
        """Wait until this run of the thread ends, and return how, as `await handle` does.

        Of a thread that another process ran, `error` is `None`: what was raised is in `summary`,
        `origin` and `traceback`. Where that process has died, this waits until another has taken
        the thread up and ended it.

        Args:
            cancel_thread: cancel the thread if the wait for it is cancelled.

        Raises:
            JournalMismatch: a thread that was taken up asks for something else than is recorded,
                because of another model or prompt. It is as it was before.
            ThreadNotResumable: it ran elsewhere, with a workflow whose values are of other types.
            ThreadNotFound: it ran elsewhere and is deleted.
            StoreError: the store failed.
        """
        return await (self._wait_or_cancel() if cancel_thread else self._wait())

    async def cancel(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End the thread as cancelled, whoever runs it: see `Engine.cancel`."""
        await stop_thread(self._services, self.id, "cancel", timeout_s)

    async def pause(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Suspend the thread, whoever runs it: see `Engine.pause`."""
        await stop_thread(self._services, self.id, "pause", timeout_s)

    async def _wait(self) -> ThreadResult[Out]:
        if self._run is not None:
            return await self._run.result()
        return await recorded_result(self._services.store, self._workflow, self.id)

    @cancelled_by_anyio
    async def _wait_or_cancel(self) -> ThreadResult[Out]:
        try:
            return await self._wait()
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(STOP_TIMEOUT_S, shield=True):
                with contextlib.suppress(WorkflowError):  # it has ended by itself
                    await self.cancel()
            raise
