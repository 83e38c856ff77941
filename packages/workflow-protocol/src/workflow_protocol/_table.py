"""Reads the table of a definition: its roles, its rows, and all that is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from typing_extensions import TypeForm

from workflow_protocol._errors import Fault, SchemaTypeError
from workflow_protocol._functions import function_fault
from workflow_protocol._given import text_fault
from workflow_protocol._role import RoleDefinition
from workflow_protocol._short import cut, short
from workflow_protocol._transition import (
    END,
    START,
    Role,
    Table,
    Target,
    Transition,
    name_of_target,
    target_fault,
)
from workflow_protocol.schemas._schema import schema_of
from workflow_protocol.schemas._stored import check_storable

MAX_NAME_CHARS = 100
_NAME = re.compile(r"[a-z][a-z0-9]*([_-][a-z0-9]+)*")


class Cell(NamedTuple):
    """One transition of a row, and where it stands."""

    place: str
    transition: Transition


class Line(NamedTuple):
    """One row, and where it stands."""

    place: str
    key: Target
    cells: list[Cell]


class ReadTable(NamedTuple):
    """What a table holds. Where there are faults the rest is incomplete."""

    roles: tuple[Role, ...]
    """In the order in which they appear."""
    rows: Mapping[str, tuple[Transition, ...]]
    """By role name and `START`; each transition leads to a role or to `END`."""
    faults: Sequence[Fault]


def read_table(
    table: Table,
    led_to: Iterable[tuple[str, str]] = (),
    beside: Iterable[Target | None] = (),
) -> ReadTable:
    """Read it, and find all that is wrong with it.

    Args:
        table: the table.
        led_to: the names of roles, or `START`, from which something else leads to a role, too.
        beside: what is named beside the table. A role of it is one whose row stands under its name
            alone, as in the table of a definition that was built.
    """
    lines, faults = _read_lines(table)
    unread = len(faults)
    known: dict[str, Role] = {}
    routed: dict[str, Role] = {
        each.name: each for each in beside if isinstance(each, RoleDefinition)
    }
    for place, named in _mentions(lines):
        target = routed.get(named, named) if isinstance(named, str) else named
        if isinstance(target, RoleDefinition):
            first = known.setdefault(target.name, target)
            if first is not target:
                words = f"another role is called {short(target.name)} too; give each its own name"
                faults.append(Fault(place, words))
    faults += _role_faults(known.values())
    faults += _line_faults(lines, known)
    if unread == 0:  # else a path may seem to be missing that stands in what can't be read
        faults += _path_faults(lines, known, list(led_to))
    return ReadTable(tuple(known.values()), _rows(lines, known), faults)


def _read_lines(table: Table) -> tuple[list[Line], list[Fault]]:
    """The rows as they are written, without what can't stand in a table."""
    lines: list[Line] = []
    faults: list[Fault] = []
    if not callable(getattr(table, "items", None)):
        kind = type(cast("object", table)).__name__
        return [], [Fault("table", f"it is of type {kind}; use a dict of rows by role")]
    for key, row in table.items():
        if words := target_fault(key):
            faults.append(Fault("table", f"a key {words}; use a role or START"))
            continue
        place = f"table[{short(name_of_target(key))}]"
        cells: list[Cell] = []
        for at, each in _places(place, row):
            transition = each if isinstance(each, Transition) else Transition(cast("Target", each))
            if words := target_fault(transition.to):
                use = "use a role, END, when(check, role), or a list of these"
                faults.append(Fault(at, f"this {words}; {use}"))
            else:
                cells.append(Cell(at, transition))
        lines.append(Line(place, key, cells))
    return lines, faults


def _places(place: str, row: object) -> Iterator[tuple[str, object]]:
    """What stands in a row, and where."""
    if isinstance(row, Sequence) and not isinstance(row, str | bytes):
        for index, each in enumerate(cast("Sequence[object]", row)):
            yield f"{place}[{index}]", each
    else:
        yield place, row


def _mentions(lines: Sequence[Line]) -> Iterator[tuple[str, Target]]:
    for line in lines:
        yield line.place, line.key
        for cell in line.cells:
            yield cell.place, cell.transition.to


def _role_faults(roles: Iterable[Role]) -> Iterable[Fault]:
    for role in roles:
        place = f"role {short(role.name)}"
        if role.name in {START, END}:
            yield Fault(place, "this name is reserved; choose another")
        elif not _NAME.fullmatch(role.name) or len(role.name) > MAX_NAME_CHARS:
            words = "use lower-case words joined by - or _, such as 'code-reviewer'"
            yield Fault(place, f"{words}, of at most {MAX_NAME_CHARS} characters")
        for field in ("description", "system_prompt"):
            value = cast("object", getattr(role, field))
            if not isinstance(value, str):
                yield Fault(f"{place}.{field}", f"it is of type {type(value).__name__}; use text")
            elif words := text_fault(value):
                yield Fault(f"{place}.{field}", f"it {words}")
        yield from schema_faults(f"{place}.schema", role.schema)


def schema_faults(place: str, schema: TypeForm[Any]) -> Iterable[Fault]:
    """What keeps a type from being that of a value which is stored."""
    try:
        check_storable(schema)
        schema_of(schema)
    except SchemaTypeError as error:
        yield Fault(place, str(error))


def _line_faults(lines: Sequence[Line], known: Mapping[str, Role]) -> Iterable[Fault]:
    seen: set[str] = set()
    for line in lines:
        name = name_of_target(line.key)
        if name in seen:
            yield Fault(line.place, "this role has two rows; merge them")
        seen.add(name)
        yield from _reference_faults(line.place, line.key, known, reserved=START)
        for index, (place, transition) in enumerate(line.cells):
            yield from _reference_faults(place, transition.to, known, reserved=END)
            yield from _transition_faults(place, transition)
            if transition.condition is None and index < len(line.cells) - 1:
                yield Fault(place, "it has no condition, so those after it are never taken")
        if line.cells and line.cells[-1].transition.condition is not None:
            yield Fault(line.place, "the last target has a condition; add a bare role or END to it")


def _reference_faults(
    place: str, target: Target, known: Mapping[str, Role], *, reserved: str
) -> Iterable[Fault]:
    if target == START and reserved != START:
        yield Fault(place, "START is no target; name the role to begin with again")
    elif target == END and reserved != END:
        yield Fault(place, "END ends the thread, so it has no row; leave it out")
    elif isinstance(target, str) and target != reserved and target not in known:
        there = cut(", ".join(known)) or "none"
        yield Fault(place, f"{short(target)} is not among the roles of the table ({there})")


def _transition_faults(place: str, transition: Transition) -> Iterable[Fault]:
    condition, tell = transition.condition, cast("object", transition.tell)
    if condition is not None:
        name = cast("object", condition.name)
        if words := function_fault(condition.check):
            yield Fault(place, f"the check {short(name)} {words}" if name else f"the check {words}")
        elif not name:
            yield Fault(place, "the check has no name of its own; write when(…, name='…')")
        elif not isinstance(name, str):
            yield Fault(place, f"the name of the check is of type {type(name).__name__}; use text")
        elif words := text_fault(f"{name} {condition.description}"):
            yield Fault(place, f"what is said of the check {words}")
    if not isinstance(tell, str):
        if not callable(tell):
            kind = type(tell).__name__
            yield Fault(place, f"`tell` is of type {kind}; use text or a function of the thread")
        elif words := function_fault(tell):
            yield Fault(place, f"the function that `tell` is given {words}")
    elif words := text_fault(tell):
        yield Fault(place, f"`tell` {words}")
    if tell and transition.to == END:
        yield Fault(place, "nobody reads what END is told; leave `tell` out")


def _path_faults(
    lines: Sequence[Line], known: Mapping[str, Role], led_to: Sequence[tuple[str, str]]
) -> Iterable[Fault]:
    rows = {name_of_target(line.key): line.cells for line in lines}
    if not known:
        yield Fault("table", "there are no roles; begin it with START: role")
    for name in (START, *known):
        if not rows.get(name):
            yield Fault(
                f"table[{short(name)}]", "there is no transition from here; name a role, or END"
            )
    reachable = _reachable(rows, led_to)
    for name in known:
        if name not in reachable:
            yield Fault(
                f"role {short(name)}", "no path leads from START to this role; add a transition"
            )


def _reachable(rows: Mapping[str, Sequence[Cell]], led_to: Sequence[tuple[str, str]]) -> set[str]:
    found: set[str] = set()
    waiting = [START]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [name_of_target(cell.transition.to) for cell in rows.get(name, ())]
            waiting += [target for source, target in led_to if source == name]
    return found


def _rows(lines: Sequence[Line], known: Mapping[str, Role]) -> Mapping[str, tuple[Transition, ...]]:
    return {
        name_of_target(line.key): tuple(
            Transition(
                known.get(name_of_target(transition.to), transition.to),
                transition.condition,
                transition.tell,
            )
            for _, transition in line.cells
        )
        for line in lines
    }


def result_faults(
    rows: Mapping[str, Sequence[Transition]], roles: Sequence[Role], result: object
) -> Iterable[Fault]:
    """Ways to `END` that don't come from the role whose value is the workflow's."""
    if not isinstance(result, RoleDefinition):
        kind = type(result).__name__
        yield Fault("result", f"it is of type {kind}; give the role whose value is the result")
        return
    if not any(role is result for role in roles):
        yield Fault("result", "this role is not in the table; give one that is")
        return
    name = cast("Role", result).name
    ends = [
        (source, index)
        for source, row in rows.items()
        for index, transition in enumerate(row)
        if transition.to == END
    ]
    for source, index in ends:
        if source != name:
            place = f"table[{short(source)}]" + (f"[{index}]" if len(rows[source]) > 1 else "")
            yield Fault(place, f"END is reached from here, but the result is that of {short(name)}")
    if name not in dict(ends):
        yield Fault("result", f"no transition leads from {short(name)} to END; add one")
