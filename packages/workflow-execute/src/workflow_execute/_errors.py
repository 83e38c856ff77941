"""What the engine can fail with, beside what a role raises.

WorkflowError
├── InputError             fix the input: it is not of the workflow's input type
├── WorkflowNotFound       register the workflow: a child is to run it by its name
├── RoleValueError         fix the adapter: it returned something that is not of the role's schema
├── ThreadNotFound         there is no such thread in this store
├── ThreadBusy             another process (or task) runs this thread
├── ThreadNotCompleted     `ThreadResult.value` was asked of a thread that did not complete
├── ThreadNotResumable     it is completed already, or its definition no longer fits
├── ThreadNotDeletable     another thread needs it: delete that one
├── ThreadNotExportable    another thread started it: export that one
├── SecretInThread         the value of a key is in it: it would leave with the file
├── ThreadFileError        get the file again: it is no thread file, not whole, or newer than this
├── ThreadExists           the store has the thread that is imported, otherwise than the file
├── KeyConflict            use another key: this one began a thread for something else
├── EngineNotRunning       submit inside of `async with engine.running()`
├── ForkError              fix the step: the thread has not so many
├── QuestionError          the thread asks nothing under this key
│   └── AlreadyAnswered    it did, and somebody has answered
├── JournalMismatch        a turn that is carried out again asks for something else than before
│   └── NotRecorded        a replay came to something that was never done
├── ChildFailed            a child thread failed
│   └── ChildGaveUp           it could not do it, or completed with another return code than 0
├── ChildCancelled         somebody cancelled a child thread
└── Suspended
    ├── LimitReached       raise the limit and resume
    └── ChildSuspended     settle what the child thread waits for and resume
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from workflow_execute._differences import Difference
from workflow_execute._records import Cause
from workflow_protocol import RoleFailed, Suspended, ThreadId, WorkflowError


class InputError(WorkflowError, ValueError):
    """What a thread is to begin with is not of the workflow's input type."""


class WorkflowNotFound(WorkflowError):
    """A workflow that a name stands for can't be had; `name` is the name."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        super().__init__(f"the workflow {name!r} can't be started: {reason}")


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
        super().__init__(
            f"thread {thread_id} is running elsewhere; wait until it ends, or pause or cancel it"
        )


class ThreadNotCompleted(WorkflowError):
    """The thread has no value: it failed, was suspended or cancelled."""


class ThreadNotResumable(WorkflowError):
    """The thread can't go on."""


class ThreadNotDeletable(WorkflowError):
    """The thread is a child; `parent` is the thread that started it and needs it."""

    def __init__(self, thread_id: str, parent: str) -> None:
        self.thread_id = thread_id
        self.parent = parent
        super().__init__(
            f"thread {thread_id} is a child of thread {parent}; delete thread {parent} instead"
        )


class ThreadNotExportable(WorkflowError):
    """The thread is a child; `parent` is the thread that started it and is exported with it."""

    def __init__(self, thread_id: str, parent: str) -> None:
        self.thread_id = thread_id
        self.parent = parent
        super().__init__(
            f"thread {thread_id} is a child of thread {parent}; export thread {parent}, which "
            "brings it along"
        )


class SecretInThread(WorkflowError):
    """The value of the key `name` is in the object `hash` of a thread that was to be exported."""

    def __init__(self, name: str, hash: str) -> None:
        self.name = name
        self.hash = hash
        super().__init__(
            f"the thread holds the value of {name}, in its object {hash}: nothing was exported. "
            "The value can't be taken out, because records are named by their contents; replace "
            "that key with a new one, or add --with-secrets (`with_secrets=True`) to let it leave"
        )


class ThreadFileError(WorkflowError):
    """The file at `path` is not a thread file that can be read. Nothing was taken from it."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"{str(path)!r} can't be read: {reason}")


class ThreadExists(WorkflowError):
    """The store has a thread of this id already, and it isn't as in the file."""

    def __init__(self, thread_id: str) -> None:
        self.thread_id = thread_id
        super().__init__(
            f"thread {thread_id} is in this store already, and has gone on otherwise than in the "
            "file; nothing was imported. Delete it here first, or import the file into another "
            "home (--home)"
        )


class KeyConflict(WorkflowError):
    """A key has begun a thread for something else. `differs` names what: `workflow`, `input`."""

    def __init__(self, key: str, thread_id: str, differs: Mapping[str, str]) -> None:
        self.key = key
        self.thread_id = thread_id
        self.differs = tuple(differs)
        said = " and ".join(f"another {what}{words}" for what, words in differs.items())
        super().__init__(
            f"the key {key!r} has begun thread {thread_id} with {said}; use a key of its own for "
            "each task"
        )


class EngineNotRunning(WorkflowError):
    """Threads can be run in the background only while the engine is told to."""

    def __init__(self) -> None:
        super().__init__(
            "the engine runs nothing in the background now; do this inside of "
            "`async with engine.running():`"
        )


class ForkError(WorkflowError):
    """A thread can't be forked there."""


class QuestionError(WorkflowError):
    """A thread asks nothing under this key; `pending` holds the keys that it asks."""

    def __init__(self, key: str, pending: Sequence[str], message: str = "") -> None:
        self.key = key
        self.pending = tuple(pending)
        known = ", ".join(map(repr, pending))
        known = f"open questions: {known}" if pending else "no question is open"
        super().__init__(f"{message or f'there is no question {key!r}'}; {known}")


class AlreadyAnswered(QuestionError):
    """The question has its answer, which can't be changed. `said` tells it, and who gave it."""

    def __init__(self, key: str, pending: Sequence[str], said: str) -> None:
        self.said = said
        super().__init__(key, pending, f"the question {key!r} has an answer already: {said}")


class JournalMismatch(WorkflowError):
    """A turn that is carried out again asked for something else than it did before.

    `reason` says what, `difference` where, as far as that is known; `now` holds the bytes of the
    new request.
    """

    def __init__(
        self,
        key: str,
        reason: str,
        difference: Difference | None = None,
        *,
        now: bytes | None = None,
        advice: str = "",
    ) -> None:
        self.key = key
        self.reason = reason
        self.difference = difference
        self.now = now
        parts = [reason, *([str(difference)] if difference else []), *([advice] if advice else [])]
        super().__init__(f"the record of {key!r} can't be used for this turn: {'; '.join(parts)}")


class NotRecorded(JournalMismatch):
    """A replay came to something that was never done, so that it has no result."""

    def __init__(self, key: str) -> None:
        super().__init__(key, "nothing is recorded under this key")


class LimitReached(Suspended):
    """A limit of the thread is reached. `limit` names it; raise it and resume.

    `thread` is the thread whose limit it is; empty where it is the engine's for a whole tree.
    """

    def __init__(self, limit: str, reason: str, *, thread: str = "") -> None:
        self.limit = limit
        self.thread = thread
        super().__init__(reason)


class ChildFailed(WorkflowError):
    """A child thread failed, or completed with a return code other than 0.

    One that failed goes on when its parent thread is resumed. One that completed
    keeps its code: start the turn again (fresh), or let `convert` read it.
    """

    def __init__(self, thread_id: ThreadId, message: str, *, return_code: int) -> None:
        self.thread_id = thread_id
        self.return_code = return_code
        super().__init__(message)


class ChildGaveUp(ChildFailed, RoleFailed):
    """A child thread could not do its work, though no code is wrong: see `RoleFailed`.

    A role of it failed so, or it completed with a return code other than 0.
    """


class ChildCancelled(WorkflowError):
    """Somebody cancelled a child thread; resuming the parent thread resumes it too."""

    def __init__(self, thread_id: ThreadId, message: str) -> None:
        self.thread_id = thread_id
        super().__init__(message)


class ChildSuspended(Suspended):
    """A child thread waits: `cause` says for what, `threads` which one, at the very bottom.

    `limit` names the limit that is reached, if that is the cause, and `limit_of` the thread whose
    limit it is: see `LimitReached`.
    """

    def __init__(
        self,
        reason: str,
        *,
        cause: Cause,
        threads: Sequence[ThreadId],
        limit: str = "",
        limit_of: str = "",
    ) -> None:
        self.cause: Cause = cause
        self.limit = limit
        self.limit_of = limit_of
        self.threads = tuple(threads)
        super().__init__(reason)
