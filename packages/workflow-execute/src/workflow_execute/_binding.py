"""Which adapter carries out which role: the binding, looked up by name and checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from workflow_protocol import (
    AdapterBinding,
    AdapterFn,
    AnyDefinition,
    CheckedAdapter,
    DefinitionError,
    Fault,
    Items,
    RoleDefinition,
    WorkflowDefinition,
)


def bound_adapters(definition: AnyDefinition, binding: AdapterBinding) -> Mapping[str, AdapterFn]:
    """The adapter of each role, by its name.

    Raises:
        DefinitionError: an override is for no role of the definition, or a role has no adapter or
            one that can't carry it out. All faults at once, each with its place.
    """
    if unlike := list(_shape_faults(definition, binding)):
        raise DefinitionError(unlike)
    overrides = list(binding.overrides.items()) if binding.overrides is not None else []
    named = {_name(key): adapter for key, adapter in overrides}
    faults = list(override_faults(definition, [key for key, _ in overrides]))
    adapters: dict[str, AdapterFn] = {}
    for role in definition.roles:
        adapter = named.get(role.name, binding.adapter)
        if callable(adapter):
            adapters[role.name] = adapter
            if isinstance(adapter, CheckedAdapter) and (words := adapter.fault_of(role)):
                faults.append(Fault(f"role {role.name!r}", words))
        elif adapter is None:
            words = "it has no adapter; give AdapterBinding one for all roles, or override this one"
            faults.append(Fault(f"role {role.name!r}", words))
        else:
            place = f"overrides[{role.name!r}]" if role.name in named else "adapter"
            faults.append(Fault(place, f"this is of type {type(adapter).__name__}; use an adapter"))
    if faults:
        raise DefinitionError(list(dict.fromkeys(faults)))
    return adapters


def _shape_faults(definition: object, binding: object) -> Iterable[Fault]:
    """Arguments that are something else, as a checker of types would say too."""
    if not isinstance(definition, WorkflowDefinition):
        kind = type(definition).__name__
        yield Fault("definition", f"it is of type {kind}; use a WorkflowDefinition")
    if not isinstance(binding, AdapterBinding):
        kind = type(binding).__name__
        yield Fault("binding", f"it is of type {kind}; write AdapterBinding(adapter)")
        return
    overrides = cast("object", binding.overrides)
    if overrides is None:
        return
    if not callable(getattr(overrides, "items", None)):
        kind = type(overrides).__name__
        yield Fault("overrides", f"it is of type {kind}; use a dict of adapters by role")
        return
    yield from key_faults(key for key, _ in cast("Items[object, object]", overrides).items())


def key_faults(keys: Iterable[object], *, what: str = "overrides") -> Iterable[Fault]:
    """The keys of a mapping that are neither a role nor the name of one."""
    for key in keys:
        if not isinstance(key, str | RoleDefinition):
            yield Fault(what, f"a key is of type {type(key).__name__}; use a role or its name")


def override_faults(
    definition: AnyDefinition,
    keys: Iterable[RoleDefinition[object] | str],
    *,
    what: str = "overrides",
    one: str = "adapter",
) -> Iterable[Fault]:
    """What is wrong with the keys of a mapping by role, which have the right types.

    Args:
        definition: has the roles.
        keys: of the mapping.
        what: how the mapping is called.
        one: what each of its values is.
    """
    roles = {role.name: role for role in definition.roles}
    seen: set[str] = set()
    for key in keys:
        name = _name(key)
        place = f"{what}[{name!r}]"
        if name not in roles:
            words = f"no role has this name; the roles are {', '.join(roles)}"
            yield Fault(place, words)
        elif not isinstance(key, str) and roles[name] is not key:
            yield Fault(place, "the workflow has another role of this name; use that definition")
        if name in seen:
            yield Fault(place, f"this role has two {one}s here; leave one")
        seen.add(name)


def _name(role: RoleDefinition[object] | str) -> str:
    return role if isinstance(role, str) else role.name
