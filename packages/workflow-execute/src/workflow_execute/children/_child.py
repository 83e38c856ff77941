"""Child threads: a part of a turn that is a thread of its own.

The turn's journal keeps the child's id before the child begins, and what it came to when it is
completed. So whatever dies in between, the same child is resumed, and there is never a second one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

import anyio
import msgspec
from typing_extensions import TypeForm
from typing_extensions import TypeVar as DefaultTypeVar

from workflow_execute._errors import (
    ChildCancelled,
    ChildGaveUp,
    ChildSuspended,
    LimitReached,
)
from workflow_execute._ids import new_thread_id
from workflow_execute._input import checked_text, compared_input, input_text, plain_text
from workflow_execute._records import Cause
from workflow_execute._workflow import ChildTask
from workflow_execute.threads._read import CHILD_BUNDLE, CHILD_RESULT, CHILD_THREAD
from workflow_protocol import (
    Artifact,
    Effect,
    Hash,
    Resolved,
    RoleFailed,
    Suspended,
    ThreadContext,
    ThreadId,
    WorkflowError,
    expect_type,
    schema_of,
)

T = TypeVar("T")
Out = DefaultTypeVar("Out", covariant=True, default=object)

AT_ONCE = 4
"""How many children of one turn run at the same time, if nothing else is said."""


class ChildRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a completed child came to, as the journal of the turn above keeps it."""

    thread_id: str
    """The child."""
    return_code: int
    """0 if it is done, else that of its completion."""
    summary: str
    """Its completion in words."""
    role: str = ""
    """Who gave the value; nobody, where the child had no steps."""
    value: msgspec.Raw = msgspec.Raw(b"null")
    """The value of its last step, as JSON."""
    artifacts: tuple[Artifact, ...] = ()
    """What its steps published; of a name the last."""


def latest(published: Iterable[Artifact]) -> tuple[Artifact, ...]:
    """Of each name the last."""
    return tuple({each.name: each for each in published}.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildResult(Generic[Out]):
    """How a child thread completed."""

    thread_id: ThreadId
    """Of the child."""
    name: str
    """The child's workflow, as its task called it."""
    return_code: int
    """0 if it is done, else that of its completion."""
    summary: str
    """Its completion in words."""
    last_value: object = field(repr=False)
    """The value of its last step, whatever the return code; `None` where it had no steps."""
    json: bytes = field(repr=False)
    """The same as JSON."""
    artifacts: Mapping[str, Artifact] = field(default_factory=dict[str, Artifact], repr=False)
    """What its steps published, by name. `workflow_adapter` publishes it with the role's step;
    where a turn starts children by itself, it publishes what it wants to."""

    @property
    def value(self) -> Out:
        """The value of the workflow's `result`, else of its last step.

        Raises:
            ChildFailed: the child ended with a return code other than 0.
        """
        self._check_return_code()
        return cast("Out", self.last_value)

    def read(self, schema: TypeForm[T]) -> T:
        """Give the value as one of a schema.

        Raises:
            ChildGaveUp: the child ended with a return code other than 0.
            SchemaMismatch: the value does not fit.
        """
        self._check_return_code()
        return schema_of(schema).restore(self.json)

    def _check_return_code(self) -> None:
        if self.return_code:
            raise ChildGaveUp(
                self.thread_id,
                f"child thread {self.thread_id} ({self.name}) ended with return code "
                f"{self.return_code}: {self.summary}; start the turn again (fresh), or read "
                "`return_code` and `last_value` first (in a `convert`)",
                return_code=self.return_code,
            )


@runtime_checkable
class ChildHost(Protocol):
    """What an engine puts into `ThreadContext.host`, so that a turn can start threads."""

    async def find_bundle(self, name: str) -> Hash:
        """Give the stored bundle of the workflow that is registered under a name now."""
        ...

    async def run_child(
        self, task: ChildTask[Any], thread_id: ThreadId, text: str, bundle: Hash | None
    ) -> ChildRecord:
        """Begin the child of this id, or resume it, and run it until it is completed."""
        ...


async def run_child(ctx: ThreadContext, task: ChildTask[Out]) -> ChildResult[Out]:
    """Run a workflow as a child thread from inside a turn, once, and give what it came to.

    Carried out again, it resumes the child that it has, or returns what that came to. Children of
    one turn need a `key` each.

    Raises:
        ChildFailed: the child failed.
        ChildCancelled: somebody cancelled the child.
        ChildSuspended: the child waits for an answer, a limit or a person.
        LimitReached: there are too many levels of child threads.
        InputError: the child's workflow takes another input, or a text of the task is not UTF-8.
        WorkflowNotFound: nothing is registered under the task's name, and it has no workflow.
        JournalMismatch: the child was started with another input.
        WorkflowError: no engine runs this thread.
    """
    expect_type(task, ChildTask, "the task", use="write workflow.task(input, key=…)")
    journal, key = ctx.journal, checked_text(task.key or "0", "the key of the child")
    checked_text(task.name, "the name of the child")
    text = (
        plain_text(task.input) if task.workflow is None else input_text(task.workflow, task.input)
    )
    compared = text.encode() if task.workflow is None else compared_input(task.workflow, text)
    bundle: Hash | None = None
    if task.workflow is None:

        async def find() -> str:
            return await _host_of(ctx, task).find_bundle(task.name)

        # On disk before the child's id: a resume takes this one, whatever the name means then.
        bundle = Hash(await journal.run(f"{CHILD_BUNDLE}/{key}", find, type=str))
    thread_id = ThreadId(
        await journal.run(
            f"{CHILD_THREAD}/{key}",
            _new_id,
            type=str,
            effect=Effect.REPEATABLE,  # on disk before the child begins
            digest=hashlib.sha256(f"{task.name}\0".encode() + compared).hexdigest(),
        )
    )

    async def perform() -> ChildRecord:
        return await _host_of(ctx, task).run_child(task, thread_id, text, bundle)

    record = await journal.run(
        f"{CHILD_RESULT}/{key}", perform, type=ChildRecord, effect=Effect.REPEATABLE
    )
    json = bytes(record.value)
    value = _value_of(task, record)
    await journal.note(Resolved(value=value, json=json))  # a role may give it on as its own value
    return ChildResult(
        thread_id=thread_id,
        name=task.name,
        return_code=record.return_code,
        summary=record.summary,
        last_value=value,
        json=json,
        artifacts={each.name: each for each in record.artifacts},
    )


def _host_of(ctx: ThreadContext, task: ChildTask[Any]) -> ChildHost:
    if not isinstance(ctx.host, ChildHost):
        raise WorkflowError(
            f"the child workflow {task.name!r} needs an engine: use Engine or run_workflow"
        )
    return ctx.host


def _value_of(task: ChildTask[Any], record: ChildRecord) -> object:
    """The last value of a child: of its role's schema, where its workflow is known here."""
    if not record.role:
        return None
    if task.workflow is None:
        return msgspec.json.decode(record.value)
    return schema_of(task.workflow.definition.role(record.role).schema).restore(bytes(record.value))


async def run_children(
    ctx: ThreadContext, tasks: Sequence[ChildTask[Out]], *, at_once: int = AT_ONCE
) -> list[ChildResult[Out]]:
    """Run several children of one turn together, each as far as it can go.

    Each of them ends before this does: one that fails or waits does not stop the others, and what
    they came to is kept.

    Args:
        ctx: the turn's thread.
        tasks: what to run; a task without a `key` goes by its position.
        at_once: how many run at the same time.

    Raises:
        ValueError: two have the same key.
        ChildFailed: one failed; the others' faults are its notes.
        ChildCancelled: none failed, and one was cancelled.
        ChildSuspended: the others are completed, and this says what is waited for.
    """
    for task in tasks:
        expect_type(task, ChildTask, "a task", use="write workflow.task(input, key=…)")
    keyed = [replace(task, key=task.key or str(at)) for at, task in enumerate(tasks)]
    if len({task.key for task in keyed}) < len(keyed):
        raise ValueError(
            f"two children have the same key; give each its own: {[task.key for task in keyed]}"
        )
    limiter = anyio.CapacityLimiter(at_once)
    ended: dict[str, ChildResult[Out] | Exception] = {}

    async def run(task: ChildTask[Out]) -> None:
        async with limiter:
            try:
                ended[task.key] = await run_child(ctx, task)
            except Exception as error:  # noqa: BLE001 - raised below, when all have ended
                ended[task.key] = error

    async with anyio.create_task_group() as group:
        for task in keyed:
            group.start_soon(run, task)
    outcomes = [ended[task.key] for task in keyed]
    faults = [each for each in outcomes if isinstance(each, Exception)]
    if faults:
        raise _error_to_raise(faults)
    return [each for each in outcomes if isinstance(each, ChildResult)]


async def _new_id() -> str:
    return new_thread_id()


def _error_to_raise(faults: Sequence[Exception]) -> Exception:
    """The fault that the turn ends with; what else was wrong is noted on it."""
    waits = [each for each in faults if isinstance(each, Suspended)]
    cancelled = [each for each in faults if isinstance(each, ChildCancelled)]
    failed = [each for each in faults if each not in waits and each not in cancelled]
    if not failed and not cancelled:
        return _merge_suspensions(waits)
    # One that a workflow may lead on from must not hide a bug.
    worst = (sorted(failed, key=lambda each: isinstance(each, RoleFailed)) or cancelled)[0]
    for other in faults:
        if other is not worst:
            worst.add_note(str(other))
    return worst


def _limit_of(wait: Suspended) -> tuple[str, str]:
    """The limit that is reached, and the thread whose it is."""
    if isinstance(wait, ChildSuspended):
        return wait.limit, wait.limit_of
    return (wait.limit, wait.thread) if isinstance(wait, LimitReached) else ("", "")


def _merge_suspensions(waits: Sequence[Suspended]) -> Suspended:
    """One suspension for all. A question is named before a limit: a person can do something."""
    if len(waits) == 1:
        return waits[0]
    causes: list[Cause] = [
        each.cause if isinstance(each, ChildSuspended) else "limit" for each in waits
    ]
    threads = [t for each in waits if isinstance(each, ChildSuspended) for t in each.threads]
    limits = (each for each in map(_limit_of, waits) if each[0])
    limit, limit_of = next(limits, ("", ""))
    return ChildSuspended(
        "; ".join(dict.fromkeys(each.reason for each in waits)),
        cause="question" if "question" in causes else causes[0],
        threads=list(dict.fromkeys(threads)),
        limit=limit,
        limit_of=limit_of,
    )
