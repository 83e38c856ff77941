"""What all runs of an engine have in common."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from workflow_cas import Store
from workflow_execute._supervisor import SupervisorFn
from workflow_execute.journal._folders import FolderVersionsByPath
from workflow_execute.journal._questions import Asker
from workflow_execute.owners._signals import Signals
from workflow_protocol import Event, Resolved, ThreadId
from workflow_workspace import FolderVersions

Observer = Callable[[Event], None]


@runtime_checkable
class TracingObserver(Protocol):
    """An observer that makes a trace of each run.

    The engine calls it in the task that does what is told of: what it makes current there, such as
    a span, is current for the model call or the tool that begins.
    """

    def __call__(self, event: Event) -> None:
        """Hear an event, as any observer."""
        ...

    def traceparent(self, thread: ThreadId) -> str:
        """Name the trace of a run whose `ThreadStarted` it has heard, in the form of W3C.

        The engine keeps it in the thread's status, and gives it to the next run's `ThreadStarted`.
        Empty where there is no trace.
        """
        ...


_log = logging.getLogger("workflow_execute")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunServices:
    """The store, and who is told and asked what. See `Engine` for each."""

    store: Store
    locks: Path | None
    signals: Signals
    observers: tuple[Observer, ...]
    asker: Asker | None
    supervisor: SupervisorFn | None
    supervise_every: int
    run_options: tuple[str, ...] = ()
    folders: FolderVersionsByPath | None = None
    """Takes versions of workspaces; `None` where none are kept."""

    def versions_of(self, workspace: Path) -> FolderVersions | None:
        """What takes the versions of a workspace, if any are kept."""
        return None if self.folders is None else self.folders.of(workspace)

    async def notify(self, event: Event) -> None:
        """Tell the observers. What one raises is logged and dropped."""
        if isinstance(event, Resolved):
            return
        for observer in self.observers:
            try:
                observer(event)
            except Exception:  # noqa: BLE001 - whatever it raises, the thread goes on
                _log.exception("an observer failed at %r", event)

    def traceparent(self, thread: ThreadId) -> str:
        """The trace of a run that has begun, of the first observer that makes one."""
        for observer in self.observers:
            if isinstance(observer, TracingObserver):
                try:
                    if traceparent := observer.traceparent(thread):
                        return traceparent
                except Exception:  # noqa: BLE001 - whatever it raises, the thread goes on
                    _log.exception("an observer could not name the trace of thread %s", thread)
        return ""
