"""What the engine can fail with, beside what a role raises.

WorkflowError
├── BindingError           fix the binding: it names a role that the definition has not
├── RoleValueError         fix the adapter: it returned something that is not of the role's schema
├── ThreadNotFound         there is no such thread in this store
├── ThreadBusy             another process (or task) runs this thread
├── ThreadNotCompleted     `ThreadResult.value` was asked of a thread that did not complete
├── ThreadNotResumable     it is completed already, or its definition no longer fits
└── JournalMismatch        a replayed turn asked for something else than it did before
"""

from __future__ import annotations

from workflow_protocol import WorkflowError


class BindingError(WorkflowError):
    """The binding does not fit the definition."""


class RoleValueError(WorkflowError):
    """An adapter returned a value that is not of the role's schema."""


class ThreadNotFound(WorkflowError):
    """There is no thread of this id."""

    def __init__(self, thread_id: str, near: str = "") -> None:
        self.thread_id = thread_id
        hint = f"; did you mean {near}?" if near else ""
        super().__init__(f"there is no thread {thread_id!r}{hint}")


class ThreadBusy(WorkflowError):
    """Another process or task runs this thread now."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(f"thread {thread_id} is being run elsewhere; wait for it to end")


class ThreadNotCompleted(WorkflowError):
    """The thread has no value: it failed, was suspended or cancelled."""


class ThreadNotResumable(WorkflowError):
    """The thread can't go on."""


class JournalMismatch(WorkflowError):
    """A turn that is carried out again asked for something else than it did before."""

    def __init__(self, key: str, reason: str) -> None:
        self.key = key
        super().__init__(f"the record of {key!r} can't be used for this turn: {reason}")
