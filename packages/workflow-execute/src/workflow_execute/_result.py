"""How a run of a thread ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, cast

from typing_extensions import TypeVar

from workflow_execute._errors import ThreadNotCompleted
from workflow_execute._records import Cause, ThreadState
from workflow_protocol import RoleDefinition, RoleStep, ThreadId, latest_value

T = TypeVar("T")
Out = TypeVar("Out", covariant=True, default=object)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ThreadResult(Generic[Out]):
    """How a run of a thread ended."""

    thread_id: ThreadId
    """By which it is resumed, shown and answered."""
    state: ThreadState
    """How the run ended, or what it waits for."""
    return_code: int
    """0 completed (or the workflow's own code), 1 failed, 3 suspended, 130 cancelled."""
    summary: str
    """The completion's summary, or the reason for any other state."""
    steps: tuple[RoleStep, ...]
    """What its roles made, oldest first."""
    error: Exception | None = None
    """What a role raised, for `failed`."""
    origin: str = ""
    """The file, line and function of the user's code that raised it."""
    traceback: str = ""
    """Of that exception, as it is recorded."""
    cause: Cause = ""
    """What a suspended thread waits for."""
    limit: str = ""
    """The name of the limit that is reached, for the cause `limit`: a field of `Limits`."""
    limit_of: str = ""
    """The thread whose limit it is; empty where it is the engine's for a whole tree."""
    waits_for: tuple[ThreadId, ...] = ()
    """The threads below it that a suspended thread waits for: they are the ones to answer."""

    result_role: str = ""
    """The role whose value it is, where the workflow has a `result`."""

    def __repr__(self) -> str:
        shown = self.summary if len(self.summary) <= 200 else f"{self.summary[:199]}…"
        return (
            f"ThreadResult({self.thread_id}, {self.state} ({self.return_code}), "
            f"{len(self.steps)} steps: {shown!r})"
        )

    @property
    def value(self) -> Out:
        """The value of the workflow's `result`, else of the last step that gave one.

        It is `None` where nothing was to be done.

        Raises:
            ThreadNotCompleted: the thread failed, was suspended or cancelled, or the supervisor
                ended it before the role of the result spoke.
        """
        given = [step for step in self.steps if step.failure is None]
        last = given[-1] if given else None
        why = ""
        if self.state != "completed":
            why = f"it is {self.state}"
        elif self.result_role and (last is None or last.role != self.result_role):
            why = f"it was ended before the role {self.result_role!r} gave the result"
        if why:
            raise ThreadNotCompleted(
                f"thread {self.thread_id} has no value: {why}: {self.summary}"
            ) from self.error
        return cast("Out", last.meta if last is not None else None)

    def of(self, role: RoleDefinition[T]) -> T | None:
        """Return the latest value of a role, typed by its definition; `None` before its turn.

        Raises:
            TypeError: the step was made by another definition of that name.
        """
        return latest_value(self.steps, role)
