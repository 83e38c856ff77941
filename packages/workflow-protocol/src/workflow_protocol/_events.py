"""What observers are told while a thread runs: a progress line, a trace, a live view.

Adapters make these through `Journal.note`; the engine adds which thread, step and role it was.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from workflow_protocol._usage import Usage

T = TypeVar("T")


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=True):
    """Each class below repeats `frozen`, which type checkers do not inherit."""


class ThreadStarted(_Event, frozen=True):
    """A thread began or went on. Its child threads' events come between this and its end."""

    thread_id: str
    prompt: str
    depth: int = 0
    """0 for the thread that a person started, n + 1 for its children."""


class RoleStarted(_Event, frozen=True):
    """A role's turn began; `step` counts from 0."""

    role: str
    step: int


class RoundStarted(_Event, frozen=True):
    """A model is being asked. `round` counts from 0 within the turn."""

    round: int
    max_rounds: int


class ModelReplied(_Event, frozen=True):
    """The reply of one model call. The engine adds `usage` to the step's."""

    round: int
    usage: Usage
    text: str = ""
    """The beginning of what the model said beside its calls."""
    elapsed_ms: int = 0


class ToolStarted(_Event, frozen=True):
    """A tool call is about to run. `arguments` is JSON."""

    name: str
    arguments: str


class ToolFinished(_Event, frozen=True):
    """A tool call ended. `summary` is the beginning of its result."""

    name: str
    ok: bool
    summary: str = ""
    elapsed_ms: int = 0


class Retrying(_Event, frozen=True):
    """A provider fault passed by; the request is sent again after `wait_s` seconds."""

    reason: str
    attempt: int
    wait_s: float


class Replied(_Event, frozen=True):
    """An adapter's own words for the step. The engine stores them as the step's content."""

    content: str


class Resolved(_Event, Generic[T], frozen=True):
    """The JSON from which an adapter read the role's value. The engine hears it, observers don't.

    Where the value's own encoding would be read back as another value, the step is stored as this.
    """

    value: T
    json: bytes


class RoleFinished(_Event, frozen=True):
    """A step was committed. `value` is the role's value as JSON."""

    role: str
    step: int
    value: str
    usage: Usage
    elapsed_ms: int = 0


class ThreadEnded(_Event, frozen=True):
    """A run of a thread ended; see the states of the engine."""

    thread_id: str
    state: str
    return_code: int
    summary: str
    depth: int = 0
    """As in `ThreadStarted`."""


Event = (
    ThreadStarted
    | RoleStarted
    | RoundStarted
    | ModelReplied
    | ToolStarted
    | ToolFinished
    | Retrying
    | Replied
    | Resolved[Any]
    | RoleFinished
    | ThreadEnded
)
"""Any event; `msgspec.json.encode` gives a tagged object, one line each."""
