"""A workflow: a table of roles and who speaks next. Definitions are checked when they are built."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from workflow_protocol._errors import DefinitionError, Fault, RoutingError, SchemaTypeError
from workflow_protocol._role import RoleDefinition
from workflow_protocol._thread import Completion, ThreadContext
from workflow_protocol.schemas._json_schema import JsonObject
from workflow_protocol.schemas._schema import schema_of
from workflow_protocol.schemas._stored import check_storable

START = "__start__"
"""The key of the table that says which role begins."""
END = "__end__"
"""The target that ends the thread."""

Role = RoleDefinition[Any]

_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """A named question about the thread. `check` is pure and synchronous: replay asks it again.

    Raises:
        TypeError: `check` is a coroutine function, whose result would always count as true.
    """

    name: str
    description: str
    check: Callable[[ThreadContext], bool]

    def __post_init__(self) -> None:
        if inspect.iscoroutinefunction(self.check):
            raise TypeError(f"the check of condition {self.name!r} is async; make it a plain `def`")

    def holds(self, ctx: ThreadContext) -> bool:
        """Ask it.

        Raises:
            TypeError: `check` gave something else than True or False.
        """
        answer = cast("object", self.check(ctx))
        if not isinstance(answer, bool):
            raise TypeError(f"condition {self.name!r} returned {answer!r}; return True or False")
        return answer


class Transition(msgspec.Struct, frozen=True):
    """Go `to` a role or `END`, `when` the condition holds; without one it always holds."""

    to: Role | str
    when: Condition | None = None


def completed(ctx: ThreadContext) -> Completion:
    """The usual end of a thread: return code 0, and the beginning of the last step as summary."""
    if not ctx.steps:  # a condition led from START straight to END
        return Completion(return_code=0, summary="there was nothing to do")
    last = ctx.steps[-1]
    words = last.content if len(last.content) <= 500 else f"{last.content[:500]} …"
    return Completion(return_code=0, summary=f"{last.role}: {words}")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowDefinition:
    """Roles and the table of transitions, checked as a whole when it is built.

    The keys of `table` are role definitions (or their names) and `START`. The first transition
    whose condition holds is taken; the last of each list must have none.

    Raises:
        DefinitionError: unknown or unreachable roles, holes, reserved or doubled names, schemas
            that can't be validated. All faults at once, each with its place.
    """

    description: str
    roles: Sequence[Role]
    table: Mapping[Role | str, Sequence[Transition]]
    complete: Callable[[ThreadContext], Completion] = completed
    """Says how the thread ended when the table leads to `END`: a pure function, as conditions are.
    A workflow whose end may mean failure returns another code than 0."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", tuple(self.roles))
        table = {_name(key): tuple(row) for key, row in self.table.items()}
        faults = [*_role_faults(self.roles), *_table_faults(self.roles, self.table)]
        if faults:
            raise DefinitionError(faults)
        object.__setattr__(self, "table", table)

    def role(self, name: str) -> Role:
        """Return the role of that name.

        Raises:
            KeyError: there is none.
        """
        for role in self.roles:
            if role.name == name:
                return role
        raise KeyError(name)


def next_role(definition: WorkflowDefinition, ctx: ThreadContext) -> Role | None:
    """Say who speaks next: a role, or `None` for the end. Pure, a function of the steps.

    Raises:
        RoutingError: no transition applied.
        TypeError: a condition gave something else than True or False.
    """
    current = ctx.steps[-1].role if ctx.steps else START
    for transition in definition.table.get(current, ()):
        if transition.when is None or transition.when.holds(ctx):
            target = _name(transition.to)
            return None if target == END else definition.role(target)
    raise RoutingError(current)


class RoleDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A role as data."""

    description: str
    system_prompt: str
    schema: JsonObject
    """JSON Schema of the role's value."""


class Edge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One transition as data. `condition` is `None` for "otherwise"."""

    source: str
    target: str
    condition: str | None = None
    condition_description: str | None = None


class WorkflowDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow as data: what it says of itself without its code."""

    description: str
    roles: dict[str, RoleDescription]
    edges: list[Edge]
    """The transitions in the order of the table."""
    complete: str = "completed"
    """The name of the function that says how a thread ended."""


def describe(definition: WorkflowDefinition) -> WorkflowDescription:
    """Give the definition as plain data, for registries, displays and documentation."""
    return WorkflowDescription(
        description=definition.description,
        roles={
            role.name: RoleDescription(
                description=role.description,
                system_prompt=role.system_prompt,
                schema=schema_of(role.schema).json_schema(),
            )
            for role in definition.roles
        },
        edges=[
            Edge(
                source=_name(source),
                target=_name(transition.to),
                condition=transition.when and transition.when.name,
                condition_description=transition.when and transition.when.description,
            )
            for source, row in definition.table.items()
            for transition in row
        ],
        complete=getattr(definition.complete, "__qualname__", type(definition.complete).__name__),
    )


def _name(role: Role | str) -> str:
    return role if isinstance(role, str) else role.name


def _role_faults(roles: Iterable[Role]) -> Iterable[Fault]:
    seen: set[str] = set()
    for index, role in enumerate(roles):
        place = f"roles[{index}] {role.name!r}"
        if role.name in {START, END}:
            yield Fault(place, "this name is reserved; choose another")
        elif not _NAME.fullmatch(role.name):
            yield Fault(place, "use lower-case words joined by - or _, such as 'code-reviewer'")
        if role.name in seen:
            yield Fault(place, "another role has this name already")
        seen.add(role.name)
        try:
            check_storable(role.schema)
            schema_of(role.schema)
        except SchemaTypeError as error:
            yield Fault(f"{place}.schema", str(error))
    if not seen:
        yield Fault("roles", "there are no roles; add at least one")


def _table_faults(
    roles: Sequence[Role], table: Mapping[Role | str, Sequence[Transition]]
) -> Iterable[Fault]:
    known = {role.name: role for role in roles}
    rows: dict[str, Sequence[Transition]] = {}
    for key, row in table.items():
        name, place = _name(key), f"table[{_name(key)!r}]"
        if name in rows:
            yield Fault(place, "this role has two rows; merge them")
        rows[name] = row
        yield from _reference_faults(place, key, known, reserved={START})
        for index, transition in enumerate(row):
            yield from _reference_faults(f"{place}[{index}]", transition.to, known, reserved={END})
            if transition.when is None and index < len(row) - 1:
                yield Fault(
                    f"{place}[{index}]", "it has no `when`, so those after it are never taken"
                )
        if row and row[-1].when is not None:
            yield Fault(place, "the last transition has a `when`; add one without `when` after it")
    for name in (START, *known):
        if not rows.get(name):
            yield Fault(f"table[{name!r}]", "there is no transition from here; add one")
    reachable = _reachable(rows)
    for name in known:
        if name not in reachable:
            yield Fault(
                f"roles {name!r}", "no path leads from START to this role; add a transition"
            )


def _reference_faults(
    place: str, role: Role | str, known: Mapping[str, Role], reserved: set[str]
) -> Iterable[Fault]:
    name = _name(role)
    if name in reserved and isinstance(role, str):
        return
    if name not in known:
        yield Fault(place, f"{name!r} is not among the roles ({', '.join(known) or 'none'})")
    elif not isinstance(role, str) and known[name] is not role:
        yield Fault(place, f"this is not the definition of {name!r} in `roles`; use that one")


def _reachable(rows: Mapping[str, Sequence[Transition]]) -> set[str]:
    found: set[str] = set()
    waiting = [START]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [_name(transition.to) for transition in rows.get(name, ())]
    return found
