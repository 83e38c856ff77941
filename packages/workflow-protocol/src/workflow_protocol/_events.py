"""What observers are told while a thread runs: a progress line, a trace, a live view.

Adapters make these through `Journal.note`, and name the journal's key of what they tell of. The
engine adds the rest of the address: which thread, below which others, which step and role, and
whether it was told before.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from workflow_protocol._usage import Usage

T = TypeVar("T")


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event", tag=True):
    """Each class below repeats `frozen`, which type checkers do not inherit."""

    thread: str = ""
    """The thread's id. This and the next four fields are the engine's."""
    parents: tuple[str, ...] = ()
    """The threads above it, topmost first; none for a thread that a person started."""
    role: str = ""
    """The role at work; empty where none is."""
    step: int = 0
    """The step at work, counted from 0."""
    recorded: bool = False
    """It happened in an earlier run, and is told again because a resumed turn comes by it."""
    key: str = ""
    """The journal's key of the model call or tool call, such as `llm/3` or `tool/3/0`: it begins
    and ends under this key, and no other call of the turn has it."""


class ThreadStarted(_Event, frozen=True):
    """A thread began or, if `recorded`, went on. Its child threads' events come before its end."""

    prompt: str
    workflow: str = ""
    """The name that it was started under."""
    previous_trace: str = ""
    """The W3C `traceparent` of the run before, if an observer traced it."""


class RoleStarted(_Event, frozen=True):
    """The turn of `role` began, or goes on if `recorded`."""


class RoundStarted(_Event, frozen=True):
    """A model is being asked; `ModelReplied` or `ModelFailed` follows under the same key.

    `round` counts from 0 within the turn.
    """

    round: int
    max_rounds: int


class ModelReplied(_Event, frozen=True):
    """The reply of one model call. The engine adds `usage` to the step's."""

    round: int
    usage: Usage
    text: str = ""
    """The beginning of what the model said beside its calls."""
    elapsed_ms: int = 0
    model: str = ""
    """The name that was asked for."""
    finish: str = ""
    """Why the reply ended: `stop`, `tool_calls`, `length`, …"""


class ModelFailed(_Event, frozen=True):
    """A model could not be asked, after all retries. The turn ends, unless the role catches it."""

    round: int
    error: str
    """The type of the exception."""
    message: str
    """The beginning of what it says."""
    elapsed_ms: int = 0


class ToolStarted(_Event, frozen=True):
    """A tool call is about to run; `ToolFinished` follows under the same key. `arguments` is JSON.

    What an agent of the command line calls has no key of its own, but a `call_id`.
    """

    name: str
    arguments: str
    call_id: str = ""
    """The model's id for the call."""


class ToolFinished(_Event, frozen=True):
    """A tool call ended. `summary` is the beginning of its result."""

    name: str
    ok: bool
    skipped: bool = False
    """It was not made: the model gave its result earlier in the same reply."""
    summary: str = ""
    elapsed_ms: int = 0
    call_id: str = ""


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
    """A step of `role` was committed. `value` is the role's value as JSON."""

    value: str
    usage: Usage
    elapsed_ms: int = 0


class ThreadEnded(_Event, frozen=True):
    """A run of a thread ended; see the states of the engine."""

    state: str
    return_code: int
    summary: str
    error: str = ""
    """The type of the exception, where a role failed."""
    origin: str = ""
    """The file, line and function that raised it, where that is known."""
    cause: str = ""
    """What a suspended thread waits for: `question`, `limit` or `paused`."""


Event = (
    ThreadStarted
    | RoleStarted
    | RoundStarted
    | ModelReplied
    | ModelFailed
    | ToolStarted
    | ToolFinished
    | Retrying
    | Replied
    | Resolved[Any]
    | RoleFinished
    | ThreadEnded
)
"""Any event; `msgspec.json.encode` gives a tagged object, one line each."""
