"""`create_workflow`: a definition bound to adapters, and the one step that a thread is made of."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, Unpack, cast, runtime_checkable

import msgspec
from typing_extensions import TypeVar

from workflow_cas import content
from workflow_execute._binding import bound_adapters
from workflow_execute._errors import RoleValueError
from workflow_execute._failure import message_of
from workflow_execute._ids import now_ms
from workflow_execute._models_in_place import Models, model_in_place, models_in_use
from workflow_protocol import (
    AdapterBinding,
    AdapterFn,
    Answer,
    Completion,
    Event,
    Failure,
    Journal,
    ModelReplied,
    Question,
    Replied,
    Resolved,
    RoleDefinition,
    RoleFailed,
    RoleStarted,
    RoleStep,
    RunOptions,
    Schema,
    SchemaMismatch,
    ThreadContext,
    Usage,
    Work,
    WorkflowDefinition,
    completion_of,
    is_made_anew,
    next_transition,
    recorded_result,
    schema_of,
    stored_form,
    working,
)

T = TypeVar("T")
In = TypeVar("In", contravariant=True, default=str)
Out = TypeVar("Out", covariant=True, default=object)

MAX_FAILURE_CHARS = 4_000
"""So much of a failure's words is kept."""
VALUE_KEY = "value"
"""The journal's key of a value with parts that are made anew each time."""


class ReplayedFailure(RoleFailed):
    """A replay has come to where the records of a turn that failed end. `failure` is how."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Workflow(Generic[In, Out]):
    """A definition with the adapters that carry out its roles. Made by `create_workflow`."""

    definition: WorkflowDefinition[In, Out]
    """Its roles, and who comes after whom."""
    adapters: Mapping[str, AdapterFn]
    """By role name."""

    def __repr__(self) -> str:
        return f"Workflow({' → '.join(list(self.adapters)[:20])})"

    def using(self, models: Models) -> AbstractContextManager[None]:
        """Use other models while the block runs, without building the workflow anew.

            with workflow.using(ScriptedLlm([say("Hello!")])):
                await engine.start(workflow, "Greet.")

        It holds in this context alone: for what is started in the block, not for other tasks. What
        a role's turn starts, a child workflow included, uses the model of that turn. Agents of the
        command line and supervisors keep their own models.

        Args:
            models: one for all roles, or some by role or by a role's name; other roles keep theirs.
                Each is a model, a provider or a model's name. Of blocks inside each other, the
                inner one comes first.

        Raises:
            DefinitionError: when the block is entered: a key is no role of the workflow, or a value
                is no model.
        """
        return models_in_use(self, self.definition, models)

    def task(self, input: In, *, key: str = "", name: str = "") -> ChildTask[Out]:
        """Give the task of running it as a child thread, for `run_child` and `run_children`.

        Args:
            input: the child's task: text, or a value of the workflow's `input` type.
            key: tells children of one turn apart, the same each time the turn is carried out.
            name: what the workflow is called where people see it; as its first role if not given.
        """
        name = name or self.definition.roles[0].name
        return ChildTask(workflow=self, input=input, name=name, key=key)

    @property
    def registered_children(self) -> dict[str, str]:
        """The names under which child workflows have to be registered, and which roles run them.

        Those of `workflow_adapter`, in this workflow and in those that it has as objects. What a
        function starts by a name of its own choice is not known before it does.
        """
        found: dict[str, str] = {}
        seen: list[AnyWorkflow] = []
        ahead: list[tuple[AnyWorkflow, str]] = [(self, "role ")]
        while ahead:
            each, place = ahead.pop(0)
            if any(each is other for other in seen):
                continue
            seen.append(each)
            for role, adapter in each.adapters.items():
                if isinstance(adapter, RunsChildren):
                    here, below = f"{place}{role!r}", adapter.child_workflow()
                    if below is None:
                        found.setdefault(adapter.name, here)
                    else:
                        ahead.append((below, f"{here} → "))
        return found

    async def advance(self, ctx: ThreadContext) -> RoleStep | Completion:
        """Carry out the next role's turn, or say how the thread ends.

        What happens is decided by `ctx` alone. Everything that costs or changes something goes
        through `ctx.journal`; the step is not stored here. Where the role fails, and `on_failure`
        says where that leads, the step has the failure instead of a value.

        Raises:
            RoleFailed: the role failed, and nothing says where that leads.
            RoutingError: no transition applies.
            RoleValueError: the adapter's value is not of the role's schema.
        """
        transition = next_transition(self.definition, ctx)
        role = transition.to
        if isinstance(role, str):
            return completion_of(self.definition, ctx)
        work = Work()
        work.in_engine = True
        ctx = replace(ctx, told=transition.told(ctx), work=work)
        try:
            with working(work):
                step = await self._take_turn(role, ctx)
        finally:
            work.is_open = False
        return msgspec.structs.replace(step, artifacts=work.published())

    async def _take_turn(self, role: RoleDefinition[T], ctx: ThreadContext) -> RoleStep:
        turn = _TurnJournal(ctx.journal)
        await turn.note(RoleStarted(role=role.name, step=len(ctx.steps)))
        try:
            with model_in_place(self, role.name):
                given = await _run_role(role, self.adapters[role.name], replace(ctx, journal=turn))
        except ReplayedFailure as error:
            return failed_step(role.name, error.failure, turn.usage)
        except RoleFailed as error:
            if role.name not in self.definition.on_failure:
                raise
            return failed_step(role.name, failure_of(error), turn.usage)
        source, schema = turn.source_of(given), schema_of(role.schema)
        stored, value = _to_store(role, given, source)
        if is_made_anew(schema, given, source):  # a replay would make others
            stored = await ctx.journal.run(VALUE_KEY, _giving(stored), type=bytes)
            value = schema.restore(stored)
        words = encoded_value(schema, value, stored) if turn.content is None else turn.content
        return RoleStep(
            role=role.name,
            meta=value,
            json=stored,
            content=words,
            content_hash=content(words).hash,
            timestamp_ms=now_ms(),
            usage=turn.usage,
        )


def failure_of(error: Exception) -> Failure:
    """What is recorded of the exception that a turn failed with."""
    words = message_of(error)
    cut = words if len(words) <= MAX_FAILURE_CHARS else f"{words[: MAX_FAILURE_CHARS - 2]} …"
    return Failure(type=type(error).__name__, message=cut)


def failed_step(role: str, failure: Failure, usage: Usage) -> RoleStep:
    """The step of a turn that failed."""
    words = failure.content
    return RoleStep(
        role=role,
        meta=None,
        content=words,
        content_hash=content(words).hash,
        timestamp_ms=now_ms(),
        usage=usage,
        failure=failure,
    )


@runtime_checkable
class RunsChildren(Protocol):
    """An adapter whose roles are child threads, as `workflow_adapter` makes it."""

    @property
    def name(self) -> str:
        """What the workflow is called."""
        ...

    def child_workflow(self) -> AnyWorkflow | None:
        """What the children run; `None` for what is registered under the name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildTask(Generic[Out]):
    """A thread to start from inside a turn. `Workflow.task` makes it."""

    workflow: Workflow[Any, Out] | None = None
    """What it runs; `None` for the workflow that is registered under `name`, whose values come as
    plain JSON data."""
    input: object
    """The task: text, or a value of the workflow's `input` type."""
    name: str
    """What the workflow is called where people see it."""
    key: str = ""
    """Tells children of one turn apart, the same each time the turn is carried out."""


AnyWorkflow = Workflow[Any, object]
"""A workflow of whatever input and result."""


def create_workflow(
    definition: WorkflowDefinition[In, Out], binding: AdapterBinding
) -> Workflow[In, Out]:
    """Bind a definition to adapters. It has no side effects: entry scripts call it at import.

    Example:
        ```python
        poet = RoleDefinition(name="poet", system_prompt="Write a haiku.", schema=str)
        run = create_workflow(
            WorkflowDefinition(table={START: poet, poet: END}, result=poet),
            AdapterBinding(create_llm_adapter("default")),
        )
        ```

    Raises:
        DefinitionError: an override is for no role of the definition, or a role has no adapter.
            All faults at once, each with its place.
    """
    return Workflow(definition, bound_adapters(definition, binding))


async def _run_role(role: RoleDefinition[T], adapter: AdapterFn, ctx: ThreadContext) -> T:
    """Run a role's turn, telling apart what an adapter commonly gets wrong.

    Raises:
        RoleValueError: the adapter gave no function, its function nothing to wait for, or it wants
            to end the process, which runs other threads too.
    """
    turn = cast("object", adapter(role.system_prompt, role.schema))
    if not callable(turn):
        raise RoleValueError(
            f"the adapter of {role.name!r} returned a value of type {type(turn).__name__} "
            "instead of an async function; an adapter is a plain `def` that returns an `async def`"
        )
    working = turn(ctx)
    if not inspect.isawaitable(working):
        raise RoleValueError(
            f"the role function of {role.name!r} is not async: it returned a value of type "
            f"{type(working).__name__}; make it an `async def`"
        )
    try:
        return cast("T", await working)
    except SystemExit as error:
        raise RoleValueError(
            f"the role {role.name!r} called sys.exit({error.code!r}); return a value or raise an "
            "exception instead"
        ) from error


def _to_store(role: RoleDefinition[T], value: T, source: bytes | None) -> tuple[bytes, T]:
    """The JSON that a role's value is stored as, and the value as all who read it get it.

    Raises:
        RoleValueError: it is not of the role's schema, or can't be stored.
    """
    schema = schema_of(role.schema)
    try:
        return stored_form(schema, value, source)
    except SchemaMismatch as error:
        raise RoleValueError(
            f"the adapter of {role.name!r} returned a value of type {type(value).__name__}, "
            f"which does not fit {schema.title}: {error}"
        ) from error


def _giving(data: bytes) -> Callable[[], Awaitable[bytes]]:
    async def give() -> bytes:
        return data

    return give


def encoded_value(schema: Schema[T], value: T, stored: bytes) -> str:
    """What later roles read of a value: its encoding, which computed fields belong to."""
    try:
        return schema.encode(value).decode()
    except Exception:  # noqa: BLE001 - a serializer of the schema may raise anything
        return stored.decode()


@dataclass(slots=True)
class _TurnJournal:
    """Passes on to the thread's journal, and keeps what the step is made of."""

    inner: Journal
    usage: Usage = field(default_factory=Usage)
    content: str | None = None
    sources: list[Resolved[Any]] = field(default_factory=list[Resolved[Any]])

    def source_of(self, value: object) -> bytes | None:
        """The JSON that this very value was read from, if the adapter told it."""
        return next((each.json for each in reversed(self.sources) if each.value is value), None)

    async def run(
        self,
        key: str,
        perform: Callable[[], Awaitable[T]],
        **options: Unpack[RunOptions[T]],
    ) -> T:
        return await self.inner.run(key, perform, **options)

    async def ask(self, key: str, question: Question) -> Answer:
        return await self.inner.ask(key, question)

    async def note(self, event: Event) -> None:
        if isinstance(event, ModelReplied):
            self.usage += event.usage
        elif isinstance(event, Replied):
            self.content = event.content
        elif isinstance(event, Resolved):
            self.sources.append(event)
            return
        await self.inner.note(event)

    def recorded(self, key: str) -> bytes | None:
        return recorded_result(self.inner, key)
