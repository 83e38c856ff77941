"""A workflow: a table of roles and who speaks next. Definitions are checked when they are built."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, cast, overload

from typing_extensions import TypeForm, TypeVar

from workflow_protocol._errors import DefinitionError, Fault, RoutingError
from workflow_protocol._functions import function_fault
from workflow_protocol._role import RoleDefinition
from workflow_protocol._table import read_table, result_faults, schema_faults
from workflow_protocol._thread import Completion, ThreadContext
from workflow_protocol._transition import START, Role, Table, Transition

In = TypeVar("In", contravariant=True, default=str)
Out = TypeVar("Out", covariant=True, default=object)
A = TypeVar("A")
B = TypeVar("B")


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
        description: what the workflow does, for people.
        complete: says how the thread ended when the table leads to `END`: a pure function, as
            conditions are. A workflow whose end may mean failure returns another code than 0.

    Raises:
        DefinitionError: unknown or unreachable roles, holes, reserved or doubled names, types
            that can't be validated. All faults at once, each with its place.
    """

    description: str
    roles: tuple[Role, ...]
    """In the order in which they appear in the table."""
    table: Mapping[str, tuple[Transition, ...]]
    """By role name, and `START`."""
    input: TypeForm[Any]
    result: Role | None
    complete: Complete

    @overload
    def __init__(
        self: WorkflowDefinition[str, object],
        *,
        table: Table,
        description: str = "",
        complete: Complete = completed,
    ) -> None: ...
    @overload
    def __init__(
        self: WorkflowDefinition[A, object],
        *,
        table: Table,
        input: TypeForm[A],
        description: str = "",
        complete: Complete = completed,
    ) -> None: ...
    @overload
    def __init__(
        self: WorkflowDefinition[str, B],
        *,
        table: Table,
        result: RoleDefinition[B],
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
        description: str = "",
        complete: Complete = completed,
    ) -> None: ...
    def __init__(
        self,
        *,
        table: Table,
        input: Any = str,
        result: Any = None,
        description: str = "",
        complete: Complete = completed,
    ) -> None:
        roles, rows, found = read_table(table)
        faults: list[Fault] = [*found, *schema_faults("input", input)]
        if not isinstance(cast("object", description), str):
            kind = type(cast("object", description)).__name__
            faults.append(Fault("description", f"it is of type {kind}; use text"))
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


def next_transition(definition: AnyDefinition, ctx: ThreadContext) -> Transition:
    """Say where a thread goes next: to a role or `END`. Pure, a function of the thread.

    Raises:
        RoutingError: no transition applied.
        TypeError: a condition gave something else than True or False.
    """
    current = ctx.steps[-1].role if ctx.steps else START
    for transition in definition.table.get(current, ()):
        if transition.condition is None or transition.condition.holds(ctx):
            return transition
    raise RoutingError(current)


def next_role(definition: AnyDefinition, ctx: ThreadContext) -> Role | None:
    """Say who speaks next: a role, or `None` for the end. As `next_transition`.

    Raises:
        RoutingError: no transition applied.
        TypeError: a condition gave something else than True or False.
    """
    target = next_transition(definition, ctx).to
    return None if isinstance(target, str) else target
