"""A workflow as data: what it says of itself without its code."""

from __future__ import annotations

from typing import Literal

import msgspec

from workflow_protocol._limits import NO_LIMITS, OwnLimits
from workflow_protocol._transition import name_of_target
from workflow_protocol._workflow import AnyDefinition
from workflow_protocol.schemas._json_schema import JsonObject
from workflow_protocol.schemas._schema import schema_of

LIMIT = "__limit__"
"""The source of the edge that `at_limit` makes. As `START`, it is no name that a role can have."""


class RoleDescription(msgspec.Struct, frozen=True, kw_only=True):
    """A role as data."""

    description: str
    """What it does, for people."""
    system_prompt: str
    """What its model is told."""
    schema: JsonObject
    """JSON Schema of the role's value."""


EdgeKind = Literal["table", "failure", "limit"]
"""`table`: a transition. `failure`: where `on_failure` leads. `limit`: where `at_limit` does."""


class Edge(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way from a role to the next. `condition` is `None` for "otherwise"."""

    source: str
    """A role, or `START`."""
    target: str
    """A role, or `END`."""
    condition: str | None = None
    """Its name; `None` for a way that is taken in any other case."""
    condition_description: str | None = None
    """What it means, for people."""
    kind: EdgeKind = "table"
    """Whether it is a transition or where a failure leads."""


class WorkflowDescription(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A workflow as data: what it says of itself without its code."""

    description: str
    """What it does, for people."""
    roles: dict[str, RoleDescription]
    """By name, in the order of the table."""
    edges: list[Edge]
    """The transitions in the order of the table, then where failures lead, and where a limit does:
    from `LIMIT`."""
    complete: str = "completed"
    """The name of the function that says how a thread ended."""
    input: JsonObject | None = None
    """JSON Schema of what a thread is begun with; `None` for text."""
    result: str | None = None
    """The role whose value is the workflow's."""
    limits: OwnLimits = NO_LIMITS
    """What a thread of it may take, beside the limits of the engine."""


def describe(definition: AnyDefinition) -> WorkflowDescription:
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
                source=source,
                target=name_of_target(transition.to),
                condition=transition.condition and transition.condition.name,
                condition_description=(transition.condition and transition.condition.description),
            )
            for source, row in definition.table.items()
            for transition in row
        ]
        + _routes(definition),
        complete=getattr(definition.complete, "__qualname__", type(definition.complete).__name__),
        input=None if definition.input is str else schema_of(definition.input).json_schema(),
        result=definition.result.name if definition.result is not None else None,
        limits=definition.limits,
    )


def _routes(definition: AnyDefinition) -> list[Edge]:
    """The ways that are no transitions of the table."""
    return [
        Edge(source=source, target=target.name, kind="failure")
        for source, target in definition.on_failure.items()
    ] + (
        []
        if definition.at_limit is None
        else [Edge(source=LIMIT, target=definition.at_limit.name, kind="limit")]
    )
