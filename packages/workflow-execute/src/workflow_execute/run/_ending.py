"""How a run ends: what each outcome, exception and signal makes of the thread."""

from __future__ import annotations

from typing import Any

import msgspec

from workflow_execute._budget import Limits
from workflow_execute._errors import ChildCancelled, ChildSuspended, LimitReached
from workflow_execute._failure import message_of, origin_of, traceback_of
from workflow_execute._records import SUSPENDED_CODE, Cause, StatusRecord, ThreadState
from workflow_execute._result import ThreadResult
from workflow_execute.owners._signals import LocalSignal
from workflow_protocol import Completion, Suspended, ThreadContext, ThreadId


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """The state that a run leaves its thread in."""

    state: ThreadState
    return_code: int
    summary: str
    cause: Cause = ""
    limit: str = ""
    limit_of: str = ""
    """The thread whose limit it is: see `LimitReached`."""
    waits_for: tuple[ThreadId, ...] = ()
    error: Exception | None = None
    """What a role raised, for `failed`."""
    origin: str = ""
    traceback: str = ""

    @property
    def error_type(self) -> str:
        """The name of the exception's class."""
        return "" if self.error is None else type(self.error).__name__

    @property
    def stopped_by(self) -> str:
        """What events call the reason why a turn has no end: see `error_type`."""
        return self.error_type or self.state

    def status(self, *, at_ms: int, role: str, turn_ms: int, died: bool) -> StatusRecord:
        """What is recorded of it.

        Args:
            at_ms: the time.
            role: the role that was at work, if one was.
            turn_ms: for how long it was.
            died: the process died in its turn before, and the turn hasn't come to there again.
        """
        unfinished = self.state != "completed"
        return StatusRecord(
            state=self.state,
            at_ms=at_ms,
            return_code=self.return_code,
            summary=self.summary,
            error=self.error_type,
            origin=self.origin,
            traceback=self.traceback,
            cause=self.cause,
            limit=self.limit,
            place=role,
            turn_ms=turn_ms if unfinished else 0,
            died=unfinished and died,
            waits_for=self.waits_for,
        )

    def result(self, ctx: ThreadContext, result_role: str) -> ThreadResult[Any]:
        """What the caller gets of it."""
        return ThreadResult(
            thread_id=ctx.thread_id,
            state=self.state,
            return_code=self.return_code,
            summary=self.summary,
            steps=ctx.steps,
            error=self.error,
            origin=self.origin,
            traceback=self.traceback,
            cause=self.cause,
            limit=self.limit,
            limit_of=self.limit_of,
            waits_for=self.waits_for,
            result_role=result_role,
        )


CANCELLED = Ending(state="cancelled", return_code=130, summary="cancelled")


def completed(done: Completion) -> Ending:
    """The workflow's table led to `END`."""
    return Ending(state="completed", return_code=done.return_code, summary=done.summary)


def failed(error: Exception) -> Ending:
    """A role raised, or the store did."""
    return Ending(
        state="failed",
        return_code=1,
        summary=message_of(error),
        error=error,
        origin=origin_of(error),
        traceback=traceback_of(error),
    )


def suspended(
    reason: str,
    cause: Cause,
    *,
    limit: str = "",
    limit_of: str = "",
    waits_for: tuple[ThreadId, ...] = (),
) -> Ending:
    """The thread waits."""
    return Ending(
        state="suspended",
        return_code=SUSPENDED_CODE,
        summary=reason,
        cause=cause,
        limit=limit,
        limit_of=limit_of,
        waits_for=waits_for,
    )


def ended_by_signal(signal: LocalSignal | None, limits: Limits, thread_id: ThreadId) -> Ending:
    """Somebody paused or cancelled the thread, or, without a signal, its time is over."""
    match signal:
        case "pause":
            return suspended("paused", "paused")
        case "cancel":
            return CANCELLED
        case "shutdown":
            return suspended("the process that ran it was shut down", "shutdown")
        case None:
            seconds = limits.max_seconds or 0.0
            reason = f"the limit of {seconds:g} seconds is reached"
            return suspended(reason, "limit", limit="max_seconds", limit_of=thread_id)


def is_question(error: Exception) -> bool:
    """Whether the thread waits for the answer to a question of its own."""
    return isinstance(error, Suspended) and not isinstance(error, LimitReached | ChildSuspended)


def ended_by_error(error: Exception, *, open_questions: int) -> Ending:
    """The role's turn raised; a question, a limit or a child may be why."""
    match error:
        case LimitReached():
            return suspended(error.reason, "limit", limit=error.limit, limit_of=error.thread)
        case ChildSuspended():
            return suspended(
                error.reason,
                error.cause,
                limit=error.limit,
                limit_of=error.limit_of,
                waits_for=error.threads,
            )
        case Suspended():
            others = open_questions - 1
            more = f" (and {others} more questions)" if others > 0 else ""
            return suspended(error.reason + more, "question")
        case ChildCancelled():
            return Ending(state="cancelled", return_code=130, summary=str(error))
        case _:
            return failed(error)
