"""What a thread leaves in the store: the payloads of its nodes.

thread/<id>/head    -> the last `state`; before the first step the `start`, or a `branch`
thread/<id>/turn    -> the last `turn` record of the role that is at work; absent between steps
thread/<id>/status  -> the `status` of the latest run
signal/<id>         -> the `signal` that asks a running thread to pause or to stop; mostly absent

A node's `refs` name what it needs, and payloads refer to them by their position: a hash is 64
bytes, and a thread has a record for each model call and each tool call.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from workflow_protocol import Artifact, Effect, Hash, Usage

FORMAT = 1
"""Of the payloads below; a reader refuses a higher one."""

SUPERVISOR_KEYS = "supervisor/"
"""How the supervisor's journal keys begin. They stand among those of the turn that it precedes."""

ThreadState = Literal["running", "suspended", "failed", "completed", "cancelled"]
ShownState = ThreadState | Literal["interrupted"]
"""`interrupted` is a thread that was running when its process died."""
SUSPENDED_CODE = 3
"""The return code of a thread that waits for a person or a limit, to tell it from a failed one."""

Cause = Literal["", "question", "limit", "paused", "forked", "shutdown"]
"""What a suspended thread waits for. After `shutdown` it waits for `Engine.recover`."""
TurnKind = Literal[
    "result", "intent", "withdrawn", "lost", "question", "unasked", "answer", "attempt", "files"
]


class StartRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a thread began. Node type `start`."""

    format: int
    """Of the payloads; see `FORMAT`."""
    thread_id: str
    """The thread that begins."""
    workflow: str
    """The name it was run under, for people."""
    prompt: Hash
    """The content with its task."""
    workspace: str
    """The folder that its roles work in."""
    at_ms: int
    """When, in ms since 1970."""
    depth: int = 0
    """How many threads are above it."""
    bundle: Hash | None = None
    """What it runs; `None` for a workflow of a program's own."""
    parent_state: Hash | None = None
    """The state of the parent thread from which this child was started."""
    parent_thread: str | None = None
    """The thread that started it."""
    tags: tuple[str, ...] = ()
    """What it is found by, besides. Forks keep them."""
    registered: bool = False
    """A child that runs what its bundle gives, which was registered under the name; other children
    run what an adapter of the thread above has."""
    key: str = ""
    """The key that it was submitted with: see `key_ref`."""
    versioned: bool = False
    """Its records say which version of the workspace's files each effect left."""


class BranchRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """From here on something is different. Node type `branch`; its first ref is what precedes it.

    A fork begins with one, and a thread that is resumed with another bundle has one there.
    """

    format: int
    """Of the payloads; see `FORMAT`."""
    thread_id: str
    """The thread that begins or goes on here."""
    at_ms: int
    """When, in ms since 1970."""
    origin: str = ""
    """The thread that this one was forked from."""
    workflow: str | None = None
    """The name that it runs under from here; `None` for the same as before."""
    prompt: Hash | None = None
    """The content with its new task; `None` for the same."""
    workspace: str | None = None
    """Its new folder; `None` for the same."""
    bundle: Hash | None = None
    """Its new bundle; `None` for the same."""


class Allowed(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a thread may take in all, once it went to its `at_limit` role, or its limits if they
    leave more; `None` is no limit."""

    max_steps: int | None = None
    max_rounds: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    max_seconds: float | None = None


class StateRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step. Node type `state`; its first ref is the state before, or the start."""

    role: str
    """Who made the step."""
    step: int
    """Which it is, counted from 0."""
    at_ms: int
    """When it was committed, in ms since 1970."""
    elapsed_ms: int = 0
    """How long the turn was at work, all its runs together."""
    value: int = 1
    """The position of the role's value as JSON."""
    content: int = 1
    """The position of the role's words; the same as the value where it has no others."""
    turn: int | None = None
    """The position of the last record of the turn's journal."""
    child_threads: tuple[str, ...] = ()
    """The threads that the turn started; what they came to is among the refs."""
    usage: Usage = Usage()
    """What its models and agents took."""
    charged_tokens: int | None = None
    """What the step counts against limits, where that isn't its usage."""
    charged_micros: int = 0
    """The same in millionths of the currency of the price table."""
    skipped_calls: tuple[str, ...] = ()
    """The key and tool of each call that the model wrote after its result, so that it was not
    made."""
    models: tuple[str, ...] = ()
    """The models that the role asked."""
    artifacts: tuple[Artifact, ...] = ()
    """What the turn published."""
    run_options: tuple[str, ...] = ()
    """What was set for the run that made the step, as the status of that run has it."""
    error: str = ""
    """The type of what ended the turn without a value; the content says more, as JSON."""
    limit: str = ""
    """The limit that ended it, where one did, ..."""
    allowed: Allowed | None = None
    """... and what the thread may take from there on."""
    files: int | None = None
    """The position of the version of the workspace's files that the step left, as far as known."""


class TurnRecord(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    rename={
        "key": "k", "at_ms": "t", "kind": "c", "effect": "e", "digest": "d", "size": "n",
        "fingerprint": "s", "value": "v", "first": "f", "charged_tokens": "u",
        "charged_micros": "m", "by": "b", "took_ms": "w", "role": "r",
        "artifacts": "a", "nested": "i", "files": "g",
    },
):  # fmt: skip
    """One journal record of a role's turn. Node type `turn`; its first ref is the record before.

    `intent`: the effect is about to start. `withdrawn`: it didn't after all. `lost`: a model call
    was cut off and counts as its worst case. `question`, `answer`: what a person was asked and
    said. `unasked`: the question has no place in the turn any more. `attempt`: the turn is begun
    anew; what is before is history. `files`: the workspace's files before the next effect, where
    no record has them so.
    """

    key: str
    """Unique within the turn, such as `llm/3`."""
    at_ms: int
    """When it was written, in ms since 1970."""
    kind: TurnKind = "result"
    """What it tells; see above."""
    effect: Effect = Effect.READ
    """What doing it twice means."""
    digest: str = ""
    """The first 12 bytes of the input's digest, in base64."""
    size: int = 0
    """The bytes of the input. `fingerprint` tells where they differ from others, roughly; see
    `_differences`."""
    fingerprint: str = ""
    """A few bytes of it, by which a replay says where an input differs."""
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    """The result, if it is JSON; otherwise it is a content, and the last ref."""
    first: bool = False
    """There is no record before this one."""
    charged_tokens: int = 0
    """What a model call counts against limits."""
    charged_micros: int = 0
    """The same in millionths of the currency of the price table."""
    by: str = ""
    """Who gave an answer: the user and the process."""
    took_ms: int = 0
    """How long the effect was at work, the commits around it not counted."""
    artifacts: tuple[Artifact, ...] = ()
    """What the effect published."""
    nested: bool = False
    """It was performed inside another effect, so it isn't asked for where that has a result."""
    role: str = ""
    """The role at work. Of each run, the first record that the role makes has it."""
    files: bool = False
    """Its first ref after the record before is a version of the workspace's files: those that the
    effect left."""


class StatusRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the latest run of a thread stands. Node type `status`."""

    state: ThreadState
    """How the run stands."""
    at_ms: int
    """Since when, in ms since 1970."""
    return_code: int | None = None
    """That of the command; `None` while it runs."""
    summary: str = ""
    """The completion's summary, or the reason for any other state."""
    error: str = ""
    """The type of the exception, for `failed`."""
    origin: str = ""
    """The file, line and function of the user's code that raised it."""
    traceback: str = ""
    """Of that exception, its middle left out if it is long."""
    limit: str = ""
    """The name of the limit that is reached, for the cause `limit`."""
    cause: Cause = ""
    """What a suspended thread waits for."""
    place: str = ""
    """The role at work when it ended, for all but `completed`."""
    turn_ms: int = 0
    """How long the unfinished turn has been at work, all its runs together."""
    died: bool = False
    """Its process died before, perhaps during a model call that counts; stopped since."""
    waits_for: tuple[str, ...] = ()
    """The threads below it that a suspended thread waits for."""
    run_options: tuple[str, ...] = ()
    """What was set for the latest run alone, such as another model, as people write it."""
    traceparent: str = ""
    """Of the latest run's trace, if an observer made one; see `TracingObserver`."""
    at_step: int = 0
    """How many steps there were. What follows is of the turn after these."""
    charged_tokens: int = 0
    """What that turn has counted against limits by now."""
    charged_micros: int = 0
    """The same in millionths of the currency of the price table."""
    models: tuple[str, ...] = ()
    """The models that it has asked by now."""


class SignalRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody asks of a running thread. Node type `signal`."""

    signal: Literal["pause", "cancel"]
    at_ms: int
