"""What all runs of an engine have in common."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workflow_cas import Store
from workflow_execute._supervisor import SupervisorFn
from workflow_execute.journal._questions import Asker
from workflow_execute.owners._signals import Signals
from workflow_protocol import Event, Resolved

Observer = Callable[[Event], None]

_log = logging.getLogger("workflow_execute")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunServices:
    """The store, and who is told and asked what. See `Engine` for each."""

    store: Store
    locks: Path | None
    signals: Signals
    observer: Observer | None
    asker: Asker | None
    supervisor: SupervisorFn | None
    supervise_every: int

    async def notify(self, event: Event) -> None:
        """Tell the observer. What it raises is logged and dropped."""
        if self.observer is not None and not isinstance(event, Resolved):
            try:
                self.observer(event)
            except Exception:  # noqa: BLE001 - whatever it raises, the thread goes on
                _log.exception("an observer failed at %r", event)
