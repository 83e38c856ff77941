"""How a run of a thread ended."""

from __future__ import annotations

from dataclasses import dataclass

from workflow_execute._errors import ThreadNotCompleted
from workflow_execute._records import Cause, ThreadState
from workflow_protocol import RoleStep, ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadResult:
    """How a run of a thread ended."""

    thread_id: ThreadId
    state: ThreadState
    return_code: int
    """0 completed (or the workflow's own code), 1 failed, 3 suspended, 130 cancelled."""
    summary: str
    """The completion's summary, or the reason for any other state."""
    steps: tuple[RoleStep, ...]
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
    waits_for: tuple[ThreadId, ...] = ()
    """The threads below it that a suspended thread waits for: they are the ones to answer."""

    @property
    def value(self) -> object:
        """The value of the last step; `None` where nothing was to be done.

        Raises:
            ThreadNotCompleted: the thread failed, was suspended or cancelled.
        """
        if self.state != "completed":
            raise ThreadNotCompleted(
                f"thread {self.thread_id} is {self.state}: {self.summary}"
            ) from self.error
        return self.steps[-1].meta if self.steps else None
