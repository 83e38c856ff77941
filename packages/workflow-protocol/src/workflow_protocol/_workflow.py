"""A workflow: a table of roles and who speaks next. Definitions are checked when they are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, cast, overload

from typing_extensions import TypeForm, TypeVar

from workflow_protocol._errors import DefinitionError, Fault, RoutingError
from workflow_protocol._functions import call_with, function_fault
from workflow_protocol._given import escaped_text, text_fault
from workflow_protocol._items import Items
from workflow_protocol._limits import NO_LIMITS, OwnLimits, limit_faults
from workflow_protocol._role import RoleDefinition
from workflow_protocol._routes import (
    at_limit_faults,
    led_to,
    limit_leads_to,
    read_routes,
    resolve_routes,
    role_named,
    route_faults,
)
from workflow_protocol._table import read_table, result_faults, schema_faults
from workflow_protocol._thread import Completion, Failure, ThreadContext
from workflow_protocol._transition import START, Role, Table, Target, Transition

In = TypeVar("In", contravariant=True, default=str)
Out = TypeVar("Out", covariant=True, default=object)
A = TypeVar("A")
B = TypeVar("B")

NOTHING: Items[Target, Target] = {}


def completed(ctx: ThreadContext) -> Completion:
    """The usual end of a thread: return code 0, and the beginning of the last step as summary."""
    if not ctx.steps:  # a condition led from START straight to END
        return Completion(return_code=0, summary="there was nothing to do")
    last = ctx.steps[-1]
    words = last.content if len(last.content) <= 500 else f"{last.content[:500]} …"
    return Completion(return_code=0, summary=f"{last.role}: {words}")


Complete = Callable[[ThreadContext], Completion]


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class WorkflowDefinition(Generic[In, Out]):
    """A table of roles, checked as a whole when it is built.

    Args:
        table: rows by role: where each leads, and under `START` which begins. A row is a role,
            `END`, or a list of these and of `when(check, role)`; the first whose condition holds
            is taken, and the last has none. The roles of the workflow are those that stand here.
        input: the type of what a thread is begun with: text if not given.
        result: the role whose value is the workflow's; only its row may lead to `END`. Without
            one it is the value of whoever spoke last, and has no type.
        on_failure: where the thread goes when a role could not do its work, by that role: to
            another role of the table. A failure is what derives from `RoleFailed`: a model out of
            rounds, a provider that failed. Without an entry the thread fails, and can be resumed.
        at_limit: the role of the table to which a thread goes, once, when it has reached a limit:
            of steps, rounds, tokens, costs or seconds. From there on it may take `ALLOWANCE`, or
            what the limits leave if that is more. Without it the thread is suspended.
        limits: what one thread of the workflow may take, beside the limits of the engine.
        description: what the workflow does, for people.
        complete: says how the thread ended when the table leads to `END`: a pure function, as
            conditions are. A workflow whose end may mean failure returns another code than 0.

    Raises:
        DefinitionError: unknown or unreachable roles, holes, reserved or doubled names, types
            that can't be validated. All faults at once, each with its place.
    """

    description: str
    roles: tuple[Role, ...] = field(init=False)
    """In the order in which they appear in the table."""
    table: Mapping[str, tuple[Transition, ...]]
    """By role name, and `START`."""
    input: TypeForm[Any]
    result: Role | None
    on_failure: Mapping[str, Role]
    """Where a failure leads, by the name of the role that failed."""
    at_limit: Role | None
    """Where a limit leads."""
    limits: OwnLimits
    complete: Complete

    @overload
    def __init__(
        self: WorkflowDefinition[str, object],
        *,
        table: Table,
        on_failure: Items[Target, Target] = NOTHING,
        at_limit: Target | None = None,
        limits: OwnLimits = NO_LIMITS,
        description: str = "",
        complete: Complete = completed,
    ) -> None: ...
    @overload
    def __init__(
        self: WorkflowDefinition[A, object],
        *,
        table: Table,
        input: TypeForm[A],
        on_failure: Items[Target, Target] = NOTHING,
        at_limit: Target | None = None,
        limits: OwnLimits = NO_LIMITS,
        description: str = "",
        complete: Complete = completed,
    ) -> None: ...
    @overload
    def __init__(
        self: WorkflowDefinition[str, B],
        *,
        table: Table,
        result: RoleDefinition[B],
        on_failure: Items[Target, Target] = NOTHING,
        at_limit: Target | None = None,
        limits: OwnLimits = NO_LIMITS,
        description: str = "",
        complete: Complete = completed,
    ) -> None: ...
    @overload
    def __init__(
        self: WorkflowDefinition[A, B],
        *,
        table: Table,
        input: TypeForm[A],
        result: RoleDefinition[B],
        on_failure: Items[Target, Target] = NOTHING,
        at_limit: Target | None = None,
        limits: OwnLimits = NO_LIMITS,
        description: str = "",
        complete: Complete = completed,
    ) -> None: ...
    def __init__(
        self,
        *,
        table: Table,
        input: Any = str,
        result: Any = None,
        on_failure: Items[Target, Target] = NOTHING,
        at_limit: Target | None = None,
        limits: OwnLimits = NO_LIMITS,
        description: str = "",
        complete: Complete = completed,
    ) -> None:
        routes, misfits = read_routes(on_failure)
        roles, rows, found = read_table(
            table,
            [*led_to(routes), *limit_leads_to(at_limit)],
            beside=[*(each.target for each in routes), at_limit],
        )
        faults: list[Fault] = [*found, *misfits, *route_faults(routes, roles, rows)]
        faults += [*at_limit_faults(at_limit, roles, rows), *limit_faults(limits)]
        faults += schema_faults("input", input)
        if not isinstance(cast("object", description), str):
            kind = type(cast("object", description)).__name__
            faults.append(Fault("description", f"it is of type {kind}; use text"))
        elif words := text_fault(description):
            faults.append(Fault("description", f"it {words}"))
        if words := function_fault(complete):
            faults.append(Fault("complete", f"it {words}"))
        if result is not None:
            faults += result_faults(rows, roles, result)
        if faults:
            raise DefinitionError(faults)
        fields: dict[str, object] = {
            "description": description,
            "roles": roles,
            "table": rows,
            "input": input,
            "result": result,
            "on_failure": resolve_routes(routes, roles),
            "at_limit": role_named(at_limit, roles),
            "limits": dict(limits),
            "complete": complete,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"WorkflowDefinition({' → '.join(role.name for role in self.roles[:20])})"

    def role(self, name: str) -> Role:
        """Return the role of that name.

        Raises:
            KeyError: there is none.
        """
        for role in self.roles:
            if role.name == name:
                return role
        raise KeyError(name)


AnyDefinition = WorkflowDefinition[Any, object]
"""A definition of whatever input and result."""


def completion_of(definition: AnyDefinition, ctx: ThreadContext) -> Completion:
    """Say how a thread ended that has reached `END`. A file's name in the summary may be odd.

    Raises:
        TypeError: `complete` gave something else than a `Completion`.
    """
    done = cast("object", call_with(definition.complete, ctx, "`complete` of the workflow"))
    if not isinstance(done, Completion):
        raise TypeError(
            f"`complete` of the workflow returned a value of type {type(done).__name__}; "
            "return a Completion"
        )
    return Completion(return_code=done.return_code, summary=escaped_text(done.summary))


def next_transition(definition: AnyDefinition, ctx: ThreadContext) -> Transition:
    """Say where a thread goes next: to a role or `END`. Pure, a function of the thread.

    After a turn that failed it is what `on_failure` says.

    Raises:
        RoutingError: no transition applied.
        TypeError: a condition gave something else than True or False.
    """
    if ctx.steps and (failure := ctx.steps[-1].failure) is not None:
        return _after_failure(definition, ctx.steps[-1].role, failure)
    current = ctx.steps[-1].role if ctx.steps else START
    for transition in definition.table.get(current, ()):
        if transition.condition is None or transition.condition.holds(ctx):
            return transition
    raise RoutingError(current)


def _after_failure(definition: AnyDefinition, role: str, failure: Failure) -> Transition:
    """Where a recorded failure leads.

    Raises:
        RoutingError: the workflow has no such route, so it isn't the one that made the record.
    """
    to = definition.at_limit if failure.limit else definition.on_failure.get(role)
    if to is not None:
        return Transition(to)
    if failure.limit:
        raise RoutingError(
            role, f"the thread reached {failure.limit}, and the workflow has no at_limit; add it"
        )
    raise RoutingError(
        role,
        f"its turn failed ({failure.type}), and the workflow has no entry for {role!r} in "
        "on_failure; add it",
    )


def next_role(definition: AnyDefinition, ctx: ThreadContext) -> Role | None:
    """Say who speaks next: a role, or `None` for the end. As `next_transition`.

    Raises:
        RoutingError: no transition applied.
        TypeError: a condition gave something else than True or False.
    """
    target = next_transition(definition, ctx).to
    return None if isinstance(target, str) else target
