"""The functions that carry roles out, and which of them carries out which role."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar, runtime_checkable

import msgspec
from typing_extensions import TypeForm

from workflow_protocol._items import Items
from workflow_protocol._role import RoleDefinition
from workflow_protocol._thread import ThreadContext

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class RoleFn(Protocol[T_co]):
    """One role's turn: from the thread so far to the role's value."""

    async def __call__(self, ctx: ThreadContext) -> T_co:
        """Carry out the turn. Whatever costs or changes anything goes through `ctx.journal`."""
        ...


class AdapterFn(Protocol):
    """Turns a role's prompt and schema into the function that carries the role out."""

    def __call__(self, prompt: str, schema: TypeForm[T]) -> RoleFn[T]:
        """Give the role's function. It is called at each turn and must have no side effects."""
        ...


@runtime_checkable
class CheckedAdapter(Protocol):
    """An adapter that can't carry out every role. `create_workflow` asks it about its own."""

    def fault_of(self, role: RoleDefinition[Any]) -> str:
        """Say why it can't carry out a role, and what to do about it; empty where it can."""
        ...


class AgentFn(Protocol):
    """An agent that answers in words. `agent_to_adapter` makes an `AdapterFn` of it."""

    async def __call__(self, ctx: ThreadContext, prompt: str) -> str:
        """Do what the role's `prompt` says, given the thread, and return the final text."""
        ...


class AdapterBinding(msgspec.Struct, frozen=True):
    """Which adapter carries out which role."""

    adapter: AdapterFn | None = None
    """For each role that `overrides` does not have; `None` where it has them all."""
    overrides: Items[RoleDefinition[Any] | str, AdapterFn] | None = None
    """By role, or by its name."""
