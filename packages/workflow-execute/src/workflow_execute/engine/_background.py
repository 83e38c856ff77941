"""Threads that run beside their callers: in the task group of `Engine.running`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import anyio
from anyio.abc import TaskGroup

from workflow_execute._errors import EngineNotRunning
from workflow_execute._result import ThreadResult
from workflow_execute.engine._feed import Feed
from workflow_execute.run._services import RunServices
from workflow_protocol import Event, ThreadId, ThreadStarted

_log = logging.getLogger("workflow_execute")
_RETRY_S = 0.05

Work = Callable[[RunServices], Awaitable[ThreadResult[Any]]]


class BackgroundRun:
    """A run of a thread in the background."""

    def __init__(self, thread_id: ThreadId) -> None:
        self.thread_id = thread_id
        self.feed = Feed()
        self.has_begun = False
        self._result: ThreadResult[Any] | None = None
        self.error: Exception | None = None
        """What ended the run instead of a result."""
        self._begun = anyio.Event()
        self._ended = anyio.Event()

    def hear(self, event: Event) -> None:
        """Take in what the thread does, and its child threads: an observer."""
        if isinstance(event, ThreadStarted) and event.thread == self.thread_id:
            self.has_begun = True
            self._begun.set()
        self.feed.put(event)

    async def begun(self) -> None:
        """Wait until the beginning of the run is recorded.

        Raises:
            Exception: it could not begin.
        """
        await self._begun.wait()
        if not self.has_begun:
            raise self.error or EngineNotRunning()

    async def result(self) -> ThreadResult[Any]:
        """Wait until it ends.

        Raises:
            Exception: what the run raised, such as `JournalMismatch` and `StoreError`.
        """
        await self._ended.wait()
        if self._result is None:
            raise self.error or EngineNotRunning()
        return self._result

    async def carry_out(self, work: Awaitable[ThreadResult[Any]]) -> None:
        """Do the work and keep what comes of it."""
        try:
            self._result = await work
        except Exception as error:  # noqa: BLE001 - raised where somebody waits for the thread
            self.error = error
            if self.has_begun:
                _log.warning(
                    "the run of thread %s ended by an error", self.thread_id, exc_info=True
                )
        finally:
            self.feed.close()
            self._begun.set()
            self._ended.set()


class Background:
    """All that an engine runs in the background.

    Nothing cancels these runs but a signal, so that a shutdown is recorded as such.
    """

    def __init__(self, services: RunServices, group: TaskGroup) -> None:
        self._services = services
        self._group = group
        self._runs: dict[ThreadId, BackgroundRun] = {}
        self._is_closing = False
        self._all_ended = anyio.Event()
        self.given_up: dict[ThreadId, str] = {}
        """Threads whose run ended by an error, and what it said: they are as they were."""

    def has(self, thread_id: ThreadId) -> bool:
        """Whether a thread runs here, or is about to."""
        return thread_id in self._runs

    async def find(self, thread_id: ThreadId) -> BackgroundRun | None:
        """The run of a thread, if it runs here. One that is about to begin is waited for."""
        running = self._runs.get(thread_id)
        if running is not None:
            with contextlib.suppress(Exception):  # raised where somebody asked for it to begin
                await running.begun()
        return running if running is not None and running.has_begun else None

    async def run(self, thread_id: ThreadId, work: Work) -> BackgroundRun:
        """Run a thread; return when the beginning is recorded.

        Raises:
            EngineNotRunning: it is being closed.
            Exception: what the work raised before that.
        """
        if self._is_closing:
            raise EngineNotRunning
        running = self._runs.get(thread_id)
        if running is None:
            running = self._runs[thread_id] = BackgroundRun(thread_id)
            self._group.start_soon(self._carry_out, running, work)
        await running.begun()
        return running

    async def _carry_out(self, running: BackgroundRun, work: Work) -> None:
        services = replace(self._services, observers=(*self._services.observers, running.hear))
        with anyio.CancelScope(shield=True):
            await running.carry_out(work(services))
        del self._runs[running.thread_id]
        if running.has_begun and running.error is not None:
            self.given_up[running.thread_id] = str(running.error)
        if self._is_closing and not self._runs:
            self._all_ended.set()

    def close(self, wait_s: float) -> None:
        """Let the runs end by themselves for so long, then shut down those that are left.

        They are shut down by a task of the group, which can't be cancelled.
        """
        self._is_closing = True
        if self._runs:
            self._group.start_soon(self._shut_down, wait_s)

    async def _shut_down(self, wait_s: float) -> None:
        with anyio.CancelScope(shield=True):
            with anyio.move_on_after(wait_s):
                await self._all_ended.wait()
            while self._runs:  # again and again: one that is just beginning does not hear it yet
                for thread_id in tuple(self._runs):
                    self._services.signals.send_here(thread_id, "shutdown")
                with anyio.move_on_after(_RETRY_S):
                    await self._all_ended.wait()
