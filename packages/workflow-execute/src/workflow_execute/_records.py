"""What a thread leaves in the store. Payloads of nodes; each hash in them is in `refs` too.

thread/<id>/head    -> the last `state`, or the `start` before the first step
thread/<id>/turn    -> the last `turn` record of the role that is at work; absent between steps
thread/<id>/status  -> the `status` of the latest run
"""

from __future__ import annotations

from typing import Literal

import msgspec

from workflow_protocol import Effect, Hash, Usage

FORMAT = 1
"""Of the payloads below; a reader refuses a higher one."""

ThreadState = Literal["running", "suspended", "failed", "completed", "cancelled"]


class StartRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a thread began. Node type `start`."""

    format: int
    thread_id: str
    workflow: str
    """The name it was run under, for people."""
    prompt: Hash
    workspace: str
    at_ms: int
    depth: int = 0
    bundle: Hash | None = None
    parent_state: Hash | None = None


class StateRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One step. Node type `state`."""

    role: str
    step: int
    parent: Hash
    """The state before, or the start."""
    value: Hash
    content: Hash
    at_ms: int
    elapsed_ms: int = 0
    turn: Hash | None = None
    """The last record of the turn's journal."""
    child_thread: str | None = None
    usage: Usage = Usage()


class TurnRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One journal record of a role's turn. Node type `turn`; a chain by `previous`."""

    key: str
    at_ms: int
    result: Hash | None = None
    """`None` is an intent: the effect was about to start."""
    effect: Effect = Effect.READ
    digest: str = ""
    previous: Hash | None = None


class StatusRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the latest run of a thread stands. Node type `status`."""

    state: ThreadState
    at_ms: int
    return_code: int | None = None
    summary: str = ""
    """The completion's summary, or the reason for any other state."""
    error: str = ""
    """The type of the exception, for `failed`."""
