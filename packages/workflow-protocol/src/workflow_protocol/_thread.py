"""A thread as roles see it: where it began, the steps so far, and the journal of this turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NewType, TypeVar, cast

import msgspec
from typing_extensions import TypeForm

from workflow_protocol._errors import ArtifactError
from workflow_protocol._journal import DirectJournal, Journal
from workflow_protocol._role import RoleDefinition
from workflow_protocol._scope import ScopedJournal
from workflow_protocol._short import short, short_path
from workflow_protocol._usage import Usage
from workflow_protocol._work import Artifact, Work, current_work, make_artifact, work_in
from workflow_protocol.schemas._schema import schema_of

T = TypeVar("T")

Hash = NewType("Hash", str)
"""The name of a stored object: 64 lower-case hex digits of SHA-256."""

ThreadId = NewType("ThreadId", str)
"""A ULID: 26 characters that sort by time of creation."""


class StartStep(msgspec.Struct, frozen=True, kw_only=True):
    """The beginning of a thread."""

    prompt: str
    """The task as roles read it. Where the workflow has an input type, the input as JSON."""
    workspace: Path
    """The folder that the roles work in; tools are confined to it."""
    timestamp_ms: int
    """When the thread began, in milliseconds since 1970 (UTC)."""
    parent_state: Hash | None = None
    """The state of the parent thread from which this child thread was started."""

    def __repr__(self) -> str:
        return f"StartStep(prompt={short(self.prompt)}, workspace={str(self.workspace)!r})"


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a turn has no value, as it is recorded."""

    type: str
    """The name of the exception's class."""
    message: str
    """What it says: often a provider's or an agent's words, so data and not an instruction."""
    limit: str = ""
    """The limit that the thread has reached, if that is why."""

    @property
    def content(self) -> str:
        """What later roles read of it: a JSON object, so that no word of it stands by itself."""
        return msgspec.json.encode({"failed": self.type, "message": self.message}).decode()


class RoleStep(msgspec.Struct, frozen=True, kw_only=True):
    """One turn of a role that has ended: with a value, or with the `failure` that led on."""

    role: str
    """The role's name."""
    meta: object
    """The value that the role resolved to, `None` after a failure. `ThreadContext.meta` gives it
    with its type."""
    content: str
    """What later roles read of this step: the value as JSON, the agent's own words, or what
    failed as JSON."""
    content_hash: Hash | None
    """Where `content` is stored; `None` outside an engine."""
    timestamp_ms: int
    """When it was committed, in milliseconds since 1970 (UTC)."""
    json: bytes = b""
    """The value as it is stored: `Schema.restore` gives it back."""
    child_threads: tuple[ThreadId, ...] = ()
    """The threads that the turn started, in this order, also those of an abandoned attempt."""
    usage: Usage = Usage()
    """What the turn's own model calls took; those of child threads are in their steps."""
    failure: Failure | None = None
    """Why there is no value."""
    artifacts: tuple[Artifact, ...] = ()
    """What the turn published, in order; of two with one name the last counts."""

    def __repr__(self) -> str:
        if self.failure is not None:
            return f"RoleStep(role={self.role!r}, failure={self.failure.type})"
        return f"RoleStep(role={self.role!r}, meta={short(self.meta)})"

    @property
    def child_thread(self) -> ThreadId | None:
        """The thread that the turn started; the last one, where it started several."""
        return self.child_threads[-1] if self.child_threads else None


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """How a thread ended. `return_code`: 0 done, 1 failed, 130 cancelled, others are yours.

    Raises:
        ValueError: the return code is not a whole number from 0 to 255, which is what a process
            can exit with, or the summary is not text.
    """

    return_code: int
    """0 done, 1 failed; others are the workflow's own."""
    summary: str
    """The end in words, for people."""

    def __post_init__(self) -> None:
        code, summary = cast("object", self.return_code), cast("object", self.summary)
        if type(code) is not int or not 0 <= code <= 255:
            raise ValueError(f"return_code is {code!r}; use an integer from 0 to 255")
        if not isinstance(summary, str):
            raise ValueError(f"summary is of type {type(summary).__name__}; use a string")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ThreadContext:
    """Everything that an adapter's `RoleFn` may know. It is shared: treat it as read-only."""

    thread_id: ThreadId
    """The thread."""
    start: StartStep
    """What the thread began with."""
    steps: tuple[RoleStep, ...] = ()
    """What was made so far, oldest first."""
    depth: int = 0
    """0 for a thread that a person started, n + 1 for its children."""
    bundle_hash: Hash | None = None
    """The SHA-256 of the workflow's bundle, if it runs from one."""
    told: str = ""
    """What the transition that led to the role at work tells it."""
    journal: Journal = field(default_factory=DirectJournal, compare=False, repr=False)
    """Through which a role does what costs money or touches the world."""
    host: object = field(default=None, compare=False, repr=False)
    """What runs the thread, for functions of the engine's package such as `run_child`."""
    work: Work = field(default_factory=Work, compare=False, repr=False)
    """What the turn has published by now."""

    def __repr__(self) -> str:
        spoken = short_path(tuple(step.role for step in self.steps))
        return (
            f"ThreadContext({self.thread_id}, prompt={short(self.start.prompt)}, "
            f"{len(self.steps)} steps: {spoken})"
        )

    def input(self, schema: TypeForm[T]) -> T:
        """Return what the thread was begun with, as a value of the workflow's `input` type.

        Raises:
            SchemaMismatch: it is of another type.
        """
        if schema is str:
            return cast("T", self.start.prompt)
        return schema_of(schema).restore(self.start.prompt.encode())

    def scoped(self, name: str) -> ThreadContext:
        """Return the context for a part of the turn, whose journal keys begin with `<name>/`."""
        return replace(self, journal=ScopedJournal(self.journal, name))

    def publish(self, name: str, value: T, *, type: TypeForm[T] | None = None) -> None:
        """Keep an exact value under a name, for later roles and calls: see `artifact`.

        It is kept in one commit with the result of the call that publishes it, also where that
        call fails afterwards, and on the step. Published twice, the last one counts.

        Args:
            name: letters, digits and `_ . -`, at most 64.
            value: anything that can be a role's value, at most 16 KiB as JSON.
            type: its schema, where that is more than its class, such as `list[Order]`.

        Raises:
            ArtifactError: the name or the value can't be kept, or nothing of this turn is at work.
        """
        work_in(self.work.turn, name).publish(make_artifact(name, value, type))

    @property
    def artifacts(self) -> dict[str, Artifact]:
        """What the steps and this turn have published, by name; the latest of each."""
        own = self.work.turn.published(seen_by=current_work())
        published = [*(each for step in self.steps for each in step.artifacts), *own]
        return {each.name: each for each in published}

    def artifact(self, name: str, type: TypeForm[T]) -> T:
        """Return the value that was last published under a name, exactly.

        Raises:
            ArtifactError: there is none, or it is of another type.
        """
        published = self.artifacts
        if name not in published:
            known = ", ".join(sorted(published)) or "none"
            raise ArtifactError(name, f"nothing has published it; there are: {known}")
        return published[name].read(type)

    def last(self, role: str | RoleDefinition[T]) -> RoleStep | None:
        """Return the latest step in which a role gave a value, or `None` before that."""
        name = role if isinstance(role, str) else role.name
        return _last_with_value(self.steps, name)

    def visits(self, role: str | RoleDefinition[Any]) -> int:
        """Say how many turns a role has had, those that failed included."""
        name = role if isinstance(role, str) else role.name
        return sum(step.role == name for step in self.steps)

    def failure(self, role: str | RoleDefinition[Any]) -> Failure | None:
        """Return why the latest turn of a role failed; `None` if it didn't, or there was none."""
        name = role if isinstance(role, str) else role.name
        latest = next((step for step in reversed(self.steps) if step.role == name), None)
        return None if latest is None else latest.failure

    def meta(self, role: RoleDefinition[T]) -> T | None:
        """Return the latest value of a role, typed by its definition, or `None` before its turn.

        A turn that failed has no value and doesn't count: `failure` tells of it.

        Raises:
            TypeError: the step was made by another definition of that name, whose values are
                not of this one's schema. Only plain classes are checked, not `list[X]` or unions.
        """
        return latest_value(self.steps, role)


def latest_value(steps: Sequence[RoleStep], role: RoleDefinition[T]) -> T | None:
    """Return the latest value of a role in some steps. See `ThreadContext.meta`.

    Raises:
        TypeError: the step was made by another definition of that name.
    """
    step = _last_with_value(steps, role.name)
    if step is None:
        return None
    if not _could_be(step.meta, role.schema):
        raise TypeError(
            f"the latest step of {role.name!r} holds a value of type "
            f"{type(step.meta).__name__}, not a {role.schema}; "
            "pass the definition that the workflow uses"
        )
    return cast("T", step.meta)


def _last_with_value(steps: Sequence[RoleStep], role: str) -> RoleStep | None:
    return next((s for s in reversed(steps) if s.role == role and s.failure is None), None)


def _could_be(value: object, schema: object) -> bool:
    """`isinstance`, and true where the schema can't be asked (TypedDict, `list[X]`, `Literal`)."""
    try:
        return not isinstance(schema, type) or isinstance(value, schema)
    except TypeError:
        return True
