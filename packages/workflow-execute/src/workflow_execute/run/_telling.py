"""Telling of one run: its observers hear events, and other processes see what is done now."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

import msgspec

from workflow_execute._budget import Budget
from workflow_execute._failure import message_of
from workflow_execute._records import StatusRecord
from workflow_execute.run._ending import Ending
from workflow_execute.run._now_writer import NowWriter
from workflow_execute.run._services import RunServices
from workflow_execute.run._thread_writer import CommittedStep
from workflow_protocol import (
    Event,
    RoleFinished,
    RoleStarted,
    RoleStopped,
    ThreadEnded,
    ThreadId,
    error_type,
)

_MESSAGE_CHARS = 200


class Telling:
    """Gives the events of a run their address: the thread, those above it, the step and the role.

    Args:
        services: has the observers.
        thread_id: the thread.
        parents: the threads above it, topmost first.
        step: how many steps it has.
    """

    def __init__(
        self, services: RunServices, thread_id: ThreadId, parents: Sequence[ThreadId], step: int
    ) -> None:
        self._services = services
        self._thread_id = thread_id
        self._parents = tuple(parents)
        self._step = step
        self._role = ""
        self._now: NowWriter | None = None

    @contextmanager
    def saying_what_it_does(
        self, name: str, budget: Budget, ran_before_ms: int, above: Telling | None
    ) -> Generator[None]:
        """Let other processes see what the run does while the block lasts.

        Args:
            name: of the workflow.
            budget: what the run draws from.
            ran_before_ms: how long its thread was at work before.
            above: the same of the run whose turn it is a part of.
        """
        locks = self._services.locks
        if locks is None:
            yield
            return
        above_now = None if above is None else above._now
        now = self._now = NowWriter(locks, self._thread_id, name, budget, ran_before_ms)
        now.open()
        if above_now is not None:
            above_now.child_began(self._thread_id)
        try:
            yield
        finally:
            now.close()
            if above_now is not None:
                above_now.child_ended(self._thread_id)

    async def tell(self, event: Event) -> None:
        """Tell of what happens in the step at work."""
        if isinstance(event, RoleStarted):
            self._role = event.role
        if self._now is not None:
            self._now.take(event, self._role, self._step)
        if not self._services.observers:
            return
        await self._services.notify(
            msgspec.structs.replace(
                event,
                thread=self._thread_id,
                parents=self._parents,
                role=self._role,
                step=self._step,
            )
        )

    async def step_ended(self, done: CommittedStep, leads_to: str) -> None:
        """Tell of a step that is committed; of one that failed also where that leads."""
        step, failure = done.step, done.step.failure
        if not self._role:  # a limit may end a turn before its role begins
            pass
        elif failure is None:
            await self.tell(
                RoleFinished(value=done.value, usage=step.usage, elapsed_ms=done.elapsed_ms)
            )
        else:
            await self._role_stopped(failure.type, failure.message, done.elapsed_ms, leads_to)
        self._role = ""
        self._step += 1

    async def ended(
        self, ending: Ending, elapsed_ms: int, unwritten: BaseException | None = None
    ) -> None:
        """Tell how the turn at work and the run ended, or that this could not be written."""
        error = ending.stopped_by if unwritten is None else error_type(unwritten)
        await self._role_stopped(error, ending.summary, elapsed_ms)
        ended = ThreadEnded(
            state=ending.state,
            return_code=ending.return_code,
            summary=ending.summary,
            error=ending.error_type,
            origin=ending.origin,
            cause=ending.cause,
        )
        if unwritten is not None:
            ended = msgspec.structs.replace(
                ended,
                state="interrupted",
                return_code=1,
                summary=message_of(unwritten),
                error=error_type(unwritten),
            )
        await self.tell(ended)

    async def left_as_it_was(self, before: StatusRecord, elapsed_ms: int) -> None:
        """Tell that the thread is as it was, as its records don't fit the run."""
        await self._role_stopped("JournalMismatch", "", elapsed_ms)
        await self.tell(
            ThreadEnded(
                state=before.state if before.state != "running" else "interrupted",
                return_code=before.return_code or 0,
                summary=before.summary,
                error=before.error,
                origin=before.origin,
                cause=before.cause,
            )
        )

    async def _role_stopped(
        self, error: str, message: str, elapsed_ms: int, leads_to: str = ""
    ) -> None:
        """End the role at work, if one is."""
        if self._role:
            await self.tell(
                RoleStopped(
                    error=error,
                    message=message[:_MESSAGE_CHARS],
                    elapsed_ms=elapsed_ms,
                    leads_to=leads_to,
                )
            )
            self._role = ""
