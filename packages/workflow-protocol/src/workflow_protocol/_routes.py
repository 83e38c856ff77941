"""Where a thread goes that its table doesn't say: after a failure, and at a limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from workflow_protocol._errors import Fault
from workflow_protocol._items import Items
from workflow_protocol._role import RoleDefinition
from workflow_protocol._short import cut, short
from workflow_protocol._transition import (
    END,
    START,
    Role,
    Target,
    Transition,
    name_of_target,
    target_fault,
)


class Route(NamedTuple):
    """One of them as it is written, and where it stands."""

    place: str
    source: Target
    target: Target


def read_routes(on_failure: Items[Target, Target]) -> tuple[list[Route], list[Fault]]:
    """The routes as they are written, without what can't be one."""
    routes: list[Route] = []
    faults: list[Fault] = []
    if not callable(getattr(on_failure, "items", None)):
        words = f"it is of type {_kind(on_failure)}; use a dict of roles by role"
        return [], [Fault("on_failure", words)]
    for source, target in on_failure.items():
        if words := target_fault(source):
            faults.append(Fault("on_failure", f"a key {words}; use a role"))
            continue
        place = f"on_failure[{short(name_of_target(source))}]"
        if words := target_fault(target):
            faults.append(Fault(place, f"this {words}; use a role"))
        else:
            routes.append(Route(place, source, target))
    return routes, faults


def led_to(routes: Iterable[Route]) -> Iterator[tuple[str, str]]:
    """The names that a route leads from and to."""
    for route in routes:
        yield name_of_target(route.source), name_of_target(route.target)


def resolve_routes(routes: Iterable[Route], roles: Sequence[Role]) -> Mapping[str, Role]:
    """The roles that routes lead to, by the name of who failed."""
    known = {role.name: role for role in roles}
    return {name_of_target(route.source): known[name_of_target(route.target)] for route in routes}


def role_named(target: Target | None, roles: Sequence[Role]) -> Role | None:
    """The role that a target names; `None` for none."""
    if target is None:
        return None
    return next(role for role in roles if role.name == name_of_target(target))


def route_faults(
    routes: Sequence[Route], roles: Sequence[Role], rows: Mapping[str, Sequence[Transition]]
) -> Iterator[Fault]:
    """All that is wrong with routes, given the roles and the rows of the table."""
    known = {role.name: role for role in roles}
    sound: dict[str, Route] = {}
    for route in routes:
        faults = [*_reference_faults(route, known)]
        yield from faults
        if faults:
            continue
        sound[name_of_target(route.source)] = route
        name = name_of_target(route.target)
        if not _leads_to_end(name, rows):
            words = f"no path of the table leads from {short(name)} to END; add a transition"
            yield Fault(route.place, words)
    yield from _circle_faults(sound)


def limit_leads_to(at_limit: Target | None) -> Iterator[tuple[str, str]]:
    """The name of the role at a limit, as one that is led to, whoever was at work."""
    if at_limit is not None and not target_fault(at_limit):
        yield START, name_of_target(at_limit)


def at_limit_faults(
    at_limit: Target | None, roles: Sequence[Role], rows: Mapping[str, Sequence[Transition]]
) -> Iterator[Fault]:
    """All that is wrong with the role at a limit."""
    if at_limit is None:
        return
    if words := target_fault(at_limit):
        yield Fault("at_limit", f"it {words}; use a role")
        return
    name = name_of_target(at_limit)
    if name == END:
        words = "a limit can't lead to END; name a role, whose row may lead there"
        yield Fault("at_limit", words)
        return
    faults = [*_role_faults("at_limit", at_limit, {role.name: role for role in roles})]
    yield from faults
    if not faults and not _leads_to_end(name, rows):
        words = f"no path of the table leads from {short(name)} to END; add a transition"
        yield Fault("at_limit", words)


def _reference_faults(route: Route, known: Mapping[str, Role]) -> Iterator[Fault]:
    source, target = name_of_target(route.source), name_of_target(route.target)
    if target == END:
        words = "a failure can't lead to END; name a role, whose row may lead there"
        yield Fault(route.place, words)
    for each in (route.source, route.target):
        if each != END or each is not route.target:
            yield from _role_faults(route.place, each, known)
    if source == target:
        words = "a failure leads back to the role itself, which may go on for ever; name another"
        yield Fault(route.place, words)


def _role_faults(place: str, target: Target, known: Mapping[str, Role]) -> Iterator[Fault]:
    """What keeps a target from being a role of the table."""
    name = name_of_target(target)
    if name not in known:
        there = cut(", ".join(known)) or "none"
        yield Fault(place, f"{short(name)} is not among the roles of the table ({there})")
    elif isinstance(target, RoleDefinition) and target is not known[name]:
        words = f"another role is called {short(name)} too; give the one of the table"
        yield Fault(place, words)


def _circle_faults(routes: Mapping[str, Route]) -> Iterator[Fault]:
    """Failures that lead round in a circle, each of which is told once."""
    told: set[str] = set()
    for start in routes:
        path: list[str] = []
        name = start
        while name in routes and name not in path and name not in told:
            path.append(name)
            name = name_of_target(routes[name].target)
        if name in path and (circle := path[path.index(name) :])[1:]:
            words = " → ".join([*circle, name])
            yield Fault(
                routes[name].place,
                f"failures lead in a circle ({words}), which may go on for ever; end it with a "
                "role that has no entry in on_failure",
            )
        told.update(path)


def _leads_to_end(name: str, rows: Mapping[str, Sequence[Transition]]) -> bool:
    seen = {name}
    waiting = [name]
    while waiting:
        for transition in rows.get(waiting.pop(), ()):
            target = name_of_target(transition.to)
            if target == END:
                return True
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return False


def _kind(value: object) -> str:
    return type(value).__name__
