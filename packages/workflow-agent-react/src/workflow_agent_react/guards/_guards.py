"""Guards: rules in code about what a model may do. They see each call before it runs.

def no_pushes(call: ProposedCall, ctx: ThreadContext) -> Decision:
    if call.name == "shell_exec" and "git push" in call.arguments["command"]:
        return Ask("Push to the remote?")
    return Allow()
"""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Awaitable
from typing import Protocol, TypeAlias, cast

import msgspec

from workflow_agent_react._errors import GuardError
from workflow_agent_react._history import CallHistory
from workflow_protocol import JsonObject, ThreadContext
from workflow_reactor import ToolDefinition


class Allow(msgspec.Struct, frozen=True):
    """Run the call."""


class Deny(msgspec.Struct, frozen=True):
    """Don't run the call. The model sees the reason as its result."""

    reason: str
    """What the model reads as the call's result."""


class Ask(msgspec.Struct, frozen=True):
    """Let a person decide. They see the question, and the call with its arguments."""

    question: str
    """What the person reads, above the call itself."""


Decision: TypeAlias = Allow | Deny | Ask


class ProposedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that a model wants to make: of a tool, or of `resolve` with the role's result."""

    name: str
    """Of the tool; `resolve` for the role's value."""
    arguments: JsonObject
    """As the tool will get them: read and checked."""
    tool: ToolDefinition
    """Its effect class, among other things."""
    history: CallHistory
    """The calls of this turn that were made before it."""


class Guard(Protocol):
    """Judges a call. It may be a plain or an async function, and must not change anything.

    An exception ends the role: nothing runs that a broken rule did not allow. So does a
    `GuardError`, where it gives no decision or changes the call that it was shown.
    """

    def __call__(self, call: ProposedCall, ctx: ThreadContext, /) -> Decision | Awaitable[Decision]:
        """Allow the call, deny it, or ask a person."""
        ...


class VersionedGuard(msgspec.Struct, frozen=True):
    """A guard whose version you name. See `versioned`."""

    guard: Guard
    """Judges the calls."""
    version: str
    """What you call its version."""

    def __call__(self, call: ProposedCall, ctx: ThreadContext, /) -> Decision | Awaitable[Decision]:
        """Judge a call."""
        return self.guard(call, ctx)


def versioned(guard: Guard, version: str) -> VersionedGuard:
    """Name a guard's version: an approval that was given under another one no longer counts.

    Without a version it is the guard's source text. That doesn't see what the guard reads from
    elsewhere, such as a limit in a file: put that into `version`.
    """
    return VersionedGuard(guard, version)


class AllOf(msgspec.Struct, frozen=True):
    """Several guards as one. See `all_of`."""

    guards: tuple[Guard, ...]
    """Asked in this order."""

    @property
    def version(self) -> str:
        """Changes when the version of any does."""
        return "\n".join(map(guard_version, self.guards))

    async def __call__(self, call: ProposedCall, ctx: ThreadContext, /) -> Decision:
        """Judge a call by all of them."""
        questions: list[str] = []
        for guard in self.guards:
            decision = await judge(guard, call, ctx)
            match decision:
                case Deny():
                    return decision
                case Ask(question):
                    questions.append(question)
                case Allow():
                    pass
        return Ask("\n".join(questions)) if questions else Allow()


def all_of(*guards: Guard) -> AllOf:
    """Make one guard of several: the first denial wins; what any of them asks, a person answers.

    So nobody is asked about a call that another rule forbids.
    """
    return AllOf(guards)


async def judge(guard: Guard, call: ProposedCall, ctx: ThreadContext) -> Decision:
    """Ask a guard, plain or async.

    Raises:
        GuardError: it gave no decision, or changed the arguments.
    """
    before = copy.deepcopy(call.arguments)
    given = guard(call, ctx)
    decision = cast("object", await given if inspect.isawaitable(given) else given)
    if not isinstance(decision, Allow | Deny | Ask):
        raise GuardError(
            guard, f"it returned {decision!r}; return Allow(), Deny(reason) or Ask(question)"
        )
    if call.arguments != before:
        raise GuardError(
            guard,
            f"it changed the arguments of {call.name!r}; return Deny(reason) instead",
        )
    return decision


def guard_version(guard: Guard) -> str:
    """The version that a guard names, else its source text, else its type and name."""
    version = getattr(guard, "version", None)
    if isinstance(version, str):
        return version
    subject = guard if inspect.isroutine(guard) else type(guard)
    name = getattr(subject, "__qualname__", repr(subject))
    try:
        return f"{name}\n{inspect.getsource(subject)}"
    except (OSError, TypeError):
        return name


def approval_hash(question: str, call: ProposedCall, guard: Guard) -> str:
    """What an approval covers: this tool, these arguments, as this version of the guard asked."""
    covered = (question, call.name, call.arguments, guard_version(guard))
    return hashlib.sha256(msgspec.json.encode(covered, order="deterministic")).hexdigest()
