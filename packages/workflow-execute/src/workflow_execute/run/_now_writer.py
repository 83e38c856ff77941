"""Writes down what a run does now, for `read_now`."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Literal

import msgspec

from workflow_execute._budget import Budget
from workflow_execute._ids import now_ms
from workflow_execute.owners._locks import now_file
from workflow_execute.owners._now import Doing, ThreadNow, write_now
from workflow_protocol import (
    Event,
    ModelFailed,
    ModelReplied,
    Retrying,
    RoleFinished,
    RoleStarted,
    RoleStopped,
    RoundStarted,
    ThreadId,
    ToolFinished,
    ToolStarted,
)

_log = logging.getLogger("workflow_execute")
MOST_SHOWN = 16
"""So many calls at once are named."""
_MOST_CHARS = 120


class NowWriter:
    """Keeps the file of one run. What can't be written is given up: the thread goes on.

    Args:
        locks: the folder of the locks.
        thread_id: the thread, which the caller owns.
        workflow: its name.
        budget: what it draws from.
        ran_before_ms: how long earlier runs took.
    """

    def __init__(
        self, locks: Path, thread_id: ThreadId, workflow: str, budget: Budget, ran_before_ms: int
    ) -> None:
        self._path = now_file(locks, thread_id)
        self._file: int | None = None
        self._budget = budget
        self._doing: dict[str, Doing] = {}
        self._children: dict[ThreadId, None] = {}
        limits, at_ms = budget.tightest(), now_ms()
        self._now = ThreadNow(
            thread=thread_id,
            workflow=workflow,
            pid=os.getpid(),
            since_ms=at_ms,
            at_ms=at_ms,
            max_tokens=limits.max_tokens,
            max_cost=limits.max_cost,
            max_seconds=limits.max_seconds,
            max_steps=limits.max_steps,
            ran_before_ms=ran_before_ms,
        )

    def open(self) -> None:
        """Begin the file."""
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            self._file = os.open(self._path, flags, 0o644)
        except OSError as error:
            self._give_up(error)
        self._write()

    def close(self) -> None:
        """Remove the file. The caller still owns the thread."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        self._path.unlink(missing_ok=True)

    def take(self, event: Event, role: str, step: int) -> None:
        """Take in what the thread does. Whatever it is told again took no time."""
        if self._file is None or event.recorded:
            return
        match event:
            case RoundStarted():
                self._begin("model", event.key, "", event.round)
                self._change(role, step, round=event.round, max_rounds=event.max_rounds)
            case Retrying():
                reason = event.reason[:_MOST_CHARS]
                self._begin("wait", event.key, reason, event.round, wait_s=event.wait_s)
                self._change(role, step)
            case ToolStarted():
                self._begin("tool", event.key, event.name, event.round)
                self._change(role, step)
            case ModelReplied() | ModelFailed() | ToolFinished():
                self._doing.pop(event.key, None)
                self._change(role, step)
            case RoleStarted():
                self._change(role, step, role_since_ms=now_ms(), round=0, max_rounds=0)
            case RoleFinished() | RoleStopped():
                self._change("", step + 1, role_since_ms=0, round=0, max_rounds=0)
            case _:
                pass

    def child_began(self, thread_id: ThreadId) -> None:
        """Name a child thread that runs."""
        self._children[thread_id] = None
        self._write()

    def child_ended(self, thread_id: ThreadId) -> None:
        """Name it no longer."""
        self._children.pop(thread_id, None)
        self._write()

    def _begin(
        self,
        what: Literal["model", "tool", "wait"],
        key: str,
        name: str,
        round: int,
        *,
        wait_s: float = 0.0,
    ) -> None:
        at_ms = now_ms()
        until_ms = at_ms + int(wait_s * 1000) if wait_s else 0
        self._doing[key] = Doing(
            what=what, key=key, since_ms=at_ms, name=name, round=round, until_ms=until_ms
        )

    def _change(self, role: str, step: int, **changes: int) -> None:
        self._now = msgspec.structs.replace(self._now, role=role, step=step, **changes)
        self._write()

    def _write(self) -> None:
        if self._file is None:
            return
        spent = self._budget.whole().spent
        now = msgspec.structs.replace(
            self._now,
            at_ms=now_ms(),
            doing=tuple(self._doing.values())[:MOST_SHOWN],
            tokens=spent.tokens,
            cost_micros=spent.micros,
            child_ids=tuple(self._children)[:MOST_SHOWN],
        )
        try:
            write_now(self._file, now)
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        _log.warning("what the thread does can't be written to %s: %s", self._path, error)
        if self._file is not None:
            os.close(self._file)
            self._file = None
