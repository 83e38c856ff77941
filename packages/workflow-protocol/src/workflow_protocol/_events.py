"""What observers are told while a thread runs: a progress line, a trace, a live view.

Adapters make these through `Journal.note`, and name the journal's key of what they tell of. The
engine adds the rest of the address: which thread, below which others, which step and role, and
whether it was told before.

Each begin has one end, however it comes about (a result, a fault, a limit, a cancellation), unless
the process dies:

ThreadStarted   ThreadEnded
RoleStarted     RoleFinished or RoleStopped
RoundStarted    ModelReplied or ModelFailed     under the same key
ToolStarted     ToolFinished                    under the same key
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from workflow_protocol._errors import Suspended
from workflow_protocol._usage import Usage

T = TypeVar("T")

_MESSAGE_CHARS = 200


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
    """It happened in an earlier run, and is told again because a resumed turn comes by its record.
    Whoever counts calls, tokens or costs leaves these out, and then counts nothing twice. A call
    whose record was not on disk yet when the process died is made again, and told as new again."""
    key: str = ""
    """The journal's key of the model call or tool call, such as `llm/3` or `tool/3/0`: it begins
    and ends under this key, and no other call of the turn has it."""


class ThreadStarted(_Event, frozen=True):
    """A thread began or, if `recorded`, went on. Its child threads' events come before its end."""

    prompt: str
    """The task."""
    workflow: str = ""
    """The name that it was started under."""
    previous_trace: str = ""
    """The W3C `traceparent` of the run before, if an observer traced it."""


class RoleStarted(_Event, frozen=True):
    """The turn of `role` began, or goes on if `recorded`: an earlier run has recorded a part of it.

    `RoleFinished` or `RoleStopped` follows.
    """


class RoundStarted(_Event, frozen=True):
    """A model is being asked; `ModelReplied` or `ModelFailed` follows under the same key.

    `round` counts from 0 within the turn.
    """

    round: int
    """Counted from 0 within the turn."""
    max_rounds: int
    """How many the turn may have."""
    model: str = ""
    """The name that is asked for."""
    provider: str = ""
    """The provider's name in the configuration, or else the host of its base URL."""


class ModelReplied(_Event, frozen=True):
    """The reply of one model call. The engine adds `usage` to the step's."""

    round: int
    """Counted from 0 within the turn."""
    usage: Usage
    """The tokens that it took."""
    text: str = ""
    """The beginning of what the model said beside its calls."""
    elapsed_ms: int = 0
    """From the request to the reply, retries included; of a recorded one, as it was then."""
    model: str = ""
    """The name that was asked for."""
    response_model: str = ""
    """The name of the model that replied, where the reply tells one."""
    provider: str = ""
    """The provider's name in the configuration, or else the host of its base URL."""
    finish: str = ""
    """Why the reply ended: `stop`, `tool_calls`, `length`, …"""
    cost_micros: int | None = None
    """What the call counts against `max_cost`, in millionths of the currency: by the price table,
    or else what the provider says. `None` where neither tells. The engine sets it."""


class ModelFailed(_Event, frozen=True):
    """A model call ended without a reply: after all retries, by a limit, or cancelled. The turn
    ends, unless the role catches it."""

    round: int
    """Counted from 0 within the turn."""
    error: str
    """What `error_type` gives of the exception."""
    message: str
    """The beginning of what it says."""
    elapsed_ms: int = 0
    """From the request to its end, retries included."""
    model: str = ""
    """The name that was asked for."""
    provider: str = ""
    """The provider's name in the configuration, or else the host of its base URL."""


class ToolStarted(_Event, frozen=True):
    """A tool call is about to run; `ToolFinished` follows under the same key. `arguments` is JSON.

    Of what an agent of the command line calls, the key begins with that of the agent's run.
    """

    name: str
    """Of the tool."""
    arguments: str
    """A JSON object as text."""
    call_id: str = ""
    """The model's id for the call."""
    round: int = 0
    """Of the reply that made the call; of an agent of the command line, its run."""


class ToolFinished(_Event, frozen=True):
    """A tool call ended. `summary` is the beginning of its result."""

    name: str
    """Of the tool."""
    ok: bool
    """Whether the call did what was asked."""
    skipped: bool = False
    """It was not made, and nothing told that it began: the model gave its result earlier in the
    same reply."""
    summary: str = ""
    """The beginning of the result, or of what was wrong."""
    elapsed_ms: int = 0
    """How long the call took; of a recorded one, as it was then."""
    call_id: str = ""
    """The model's id for the call."""
    round: int = 0
    """Of the reply that made the call."""
    error: str = ""
    """Why it is not `ok`: the name of the class of what the tool raised, or one of `CALL_FAULTS`;
    empty for what was skipped."""


CALL_FAULTS = frozenset(
    {
        "cancelled",
        "denied",
        "invalid_arguments",
        "suspended",
        "timeout",
        "tool_error",
        "unfinished",
        "unknown_outcome",
        "unknown_tool",
    }
)
"""What `ToolFinished.error` may be beside the name of an exception's class.

`cancelled`: the thread was stopped, or its time is over. `denied`: by a guard or a person.
`invalid_arguments`: they don't fit the tool's parameters. `suspended`: the call waits for a person
or a limit, and begins again when the thread is resumed. `timeout`: the tool took longer than it
may. `unfinished`: an agent of the command line ended before the call did. `unknown_outcome`: it was
at work when the process died. `unknown_tool`: there is none of this name. `tool_error`: it failed,
and more is not known, as inside an agent of the command line.
"""


class Retrying(_Event, frozen=True):
    """A provider fault passed by; the request of `key` is sent again after `wait_s` seconds."""

    reason: str
    """What went wrong."""
    attempt: int
    """Which attempt has failed, counted from 1."""
    wait_s: float
    """Seconds until the next one."""
    round: int = 0
    """Of the model call, counted from 0."""


class Replied(_Event, frozen=True):
    """An adapter's own words for the step. The engine stores them as the step's content."""

    content: str
    """The words, which later roles read in the place of the value."""


class Resolved(_Event, Generic[T], frozen=True):
    """The JSON from which an adapter read the role's value. The engine hears it, observers don't.

    Where the value's own encoding would be read back as another value, the step is stored as this.
    """

    value: T
    """What was read."""
    json: bytes
    """What it was read from."""


class RoleFinished(_Event, frozen=True):
    """A step of `role` was committed. `value` is the role's value as JSON."""

    value: str
    """As JSON."""
    usage: Usage
    """What the whole turn took."""
    elapsed_ms: int = 0
    """How long the turn was at work."""


class RoleStopped(_Event, frozen=True):
    """The turn of `role` ended without a value. A resume of the thread goes on with it.

    Where `on_failure` of the workflow leads on from there, the turn is a step that failed, and the
    next role begins.
    """

    error: str
    """What `error_type` gives of the exception."""
    message: str
    """The beginning of what it says."""
    elapsed_ms: int = 0
    """How long the turn was at work."""
    leads_to: str = ""
    """The role that comes next, where the failure leads on."""


class ThreadEnded(_Event, frozen=True):
    """A run of a thread ended; see the states of the engine."""

    state: str
    """`interrupted` where the store failed, so that the end is not recorded."""
    return_code: int
    """0 done, 1 failed, 3 suspended, 130 cancelled; others are a workflow's own."""
    summary: str
    """The completion in words, or the reason for any other end."""
    error: str = ""
    """The type of the exception, where a role failed."""
    origin: str = ""
    """The file, line and function that raised it, where that is known."""
    cause: str = ""
    """What a suspended thread waits for: `question`, `limit`, `paused` or `shutdown`."""


class WorkspaceVersioned(_Event, frozen=True):
    """From here on versions of the workspace's files are kept, or they are no more."""

    workspace: str
    """The folder."""
    first: bool = False
    """Nothing was known of the folder before."""
    left_out: tuple[str, ...] = ()
    """Some of the paths whose files are not kept, other than what .gitignore names."""
    reason: str = ""
    """Why no versions are kept; empty where they are."""


class WorkspaceDiffers(_Event, frozen=True):
    """A thread goes on, and its files are not as it left them; or they were, and are put back."""

    workspace: str
    """The folder."""
    count: int
    """How many files differ, or did."""
    paths: tuple[str, ...]
    """The first of them, relative to the folder."""
    put_back: bool = False
    """They are as the thread left them again."""
    stay: tuple[str, ...] = ()
    """The first of those that could not be put back: other files that no version keeps."""
    version: str = ""
    """The hash of the version that has the files as they were found."""


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
    | RoleStopped
    | WorkspaceVersioned
    | WorkspaceDiffers
    | ThreadEnded
)
"""Any event; `msgspec.json.encode` gives a tagged object, one line each."""


def error_type(error: BaseException) -> str:
    """What events call the exception that ended something.

    Returns:
        `suspended` where a person or a limit is waited for, `cancelled` for a cancellation, Ctrl-C
        included; of all others the name of the class.
    """
    if isinstance(error, Suspended):
        return "suspended"
    return type(error).__name__ if isinstance(error, Exception | SystemExit) else "cancelled"


def error_message(error: BaseException) -> str:
    """The beginning of what an exception says, for events; empty for a cancellation."""
    if not isinstance(error, Exception):
        return ""
    try:
        return str(error)[:_MESSAGE_CHARS]
    except Exception:  # noqa: BLE001 - the class may be anybody's
        return ""
