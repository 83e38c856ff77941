"""Workflows made of plain functions: to test tables, conditions and the engine without a model."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from workflow_execute._workflow import Workflow, create_workflow
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    AdapterFn,
    RoleDefinition,
    RoleFn,
    ThreadContext,
    WorkflowDefinition,
)

Turn = Callable[[ThreadContext], Awaitable[Any]]
"""What a role does: an async function from the thread to the role's value."""


def adapter_of(turn: Turn) -> AdapterFn:
    """Make an adapter of a function. What it returns must be of the role's schema."""

    def adapter(prompt: str, schema: Any) -> RoleFn[Any]:
        async def role(ctx: ThreadContext) -> Any:
            return await turn(ctx)

        return role

    return adapter


def in_turn(*turns: Turn, schema: Any = int) -> Workflow:
    """Make a workflow of roles `role-0`, `role-1` … that speak once each, in this order."""
    roles: list[RoleDefinition[Any]] = [
        RoleDefinition(name=f"role-{i}", system_prompt="", schema=schema) for i in range(len(turns))
    ]
    path = [START, *roles, END]
    return create_workflow(
        WorkflowDefinition(table=dict(itertools.pairwise(path))),
        AdapterBinding(
            overrides={role: adapter_of(turn) for role, turn in zip(roles, turns, strict=True)}
        ),
    )
