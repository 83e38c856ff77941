"""A role's turn while it is at work."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from workflow_execute._budget import NO_CHARGE, Budget
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.journal._files import ThreadFiles
from workflow_execute.journal._journal import StoreJournal
from workflow_execute.run._services import RunServices
from workflow_execute.threads._read import (
    StoredThread,
    children_of_turn,
    current_attempt,
    unfinished_turn_ms,
    was_interrupted,
)
from workflow_execute.threads._summary import thread_ref
from workflow_execute.threads._tree import charge_of_records
from workflow_protocol import Event, ThreadId

Notify = Callable[[Event], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class Turn:
    """The journal of a turn, the child threads that it started, and how long it takes."""

    journal: StoreJournal
    files: ThreadFiles
    """The versions of its thread's files."""
    children: dict[ThreadId, None] = field(default_factory=dict[ThreadId, None])
    """In the order in which they were started."""
    earlier_ms: int = 0
    """How long its earlier runs were at work."""
    began_s: float = field(default_factory=time.monotonic)

    @property
    def elapsed_ms(self) -> int:
        """How long it has been at work, all its runs together."""
        return self.earlier_ms + int((time.monotonic() - self.began_s) * 1000)


def new_turn(
    services: RunServices,
    budget: Budget,
    thread_id: ThreadId,
    notify: Notify,
    files: ThreadFiles,
) -> Turn:
    """A turn that nothing is recorded of; `notify` hears its events."""
    return Turn(
        journal=StoreJournal(
            services.store,
            thread_ref(thread_id, "turn"),
            notify,
            budget=budget,
            thread_id=thread_id,
            asker=services.asker,
            files=files,
        ),
        files=files,
    )


def stored_turn(
    services: RunServices,
    budget: Budget,
    stored: StoredThread,
    attempts: Sequence[Sequence[JournalEntry]],
    notify: Notify,
    files: ThreadFiles,
) -> Turn:
    """The unfinished turn of a stored thread; `attempts` are its records."""
    journal = StoreJournal(
        services.store,
        thread_ref(stored.thread_id, "turn"),
        notify,
        budget=budget,
        thread_id=stored.thread_id,
        asker=services.asker,
        entries=current_attempt(attempts),
        last=stored.turn,
        interrupted=was_interrupted(stored),
        files=files,
    )
    charged = charge_of_records(attempts)
    if charged != NO_CHARGE:
        journal.meter.add(charged)
    journal.meter.add_models(stored.turn_models)
    return Turn(
        journal=journal,
        files=files,
        children=dict.fromkeys(children_of_turn(attempts)),
        earlier_ms=unfinished_turn_ms(stored, attempts),
    )
