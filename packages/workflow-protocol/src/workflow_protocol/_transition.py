"""What stands in a table: roles, `END`, and `when` with a condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import msgspec

from workflow_protocol._functions import call_with, first_line_of, name_of
from workflow_protocol._given import escaped_text
from workflow_protocol._items import Items
from workflow_protocol._role import RoleDefinition
from workflow_protocol._short import short
from workflow_protocol._thread import ThreadContext

START = "__start__"
"""The key of the table that says which role begins."""
END = "__end__"
"""The target that ends the thread."""

Role: TypeAlias = RoleDefinition[Any]
Tell: TypeAlias = str | Callable[[ThreadContext], str]


class Condition(msgspec.Struct, frozen=True, kw_only=True):
    """A named question about the thread. `check` is pure and synchronous: replay asks it again."""

    name: str
    """Short, for errors and pictures."""
    description: str = ""
    """What it means, for people."""
    check: Callable[[ThreadContext], bool]
    """Says whether the transition is taken: pure and synchronous."""

    def __repr__(self) -> str:
        return f"Condition({self.name!r})"

    def holds(self, ctx: ThreadContext) -> bool:
        """Ask it.

        Raises:
            TypeError: `check` gave something else than True or False.
        """
        answer = cast("object", call_with(self.check, ctx, f"condition {self.name!r}"))
        if not isinstance(answer, bool):
            words = f"condition {self.name!r} returned {short(answer)}; return True or False"
            raise TypeError(words)
        return answer


class Transition(msgspec.Struct, frozen=True):
    """Go `to` a role or `END`, where the condition holds. `when` and `otherwise` make it."""

    to: Role | str
    """The next role, or `END`."""
    condition: Condition | None = None
    """`None` for a transition that is taken always."""
    tell: Tell = ""
    """What the role that it leads to is told, beside the thread."""

    def __repr__(self) -> str:
        condition = "" if self.condition is None else f" when {self.condition.name}"
        return f"Transition(→ {name_of_target(self.to)}{condition})"

    def told(self, ctx: ThreadContext) -> str:
        """What the next role is told.

        Raises:
            TypeError: the function that `tell` is gave something else than text.
        """
        if isinstance(self.tell, str):
            return self.tell
        what = f"`tell` ({name_of(self.tell) or 'a function'})"
        words = cast("object", call_with(self.tell, ctx, what))
        if not isinstance(words, str):
            raise TypeError(f"{what} returned {short(words)}; return a string")
        return escaped_text(words)


Target: TypeAlias = Role | str
"""A role, the name of one that the table has elsewhere, or `END`."""
Row: TypeAlias = Target | Transition | Sequence[Target | Transition]
"""Where a role leads: one target, or several of which the first whose condition holds is taken."""
Table: TypeAlias = Items[Target, Row]
"""Rows by role; `START` is a key too."""


def when(
    check: Callable[[ThreadContext], bool] | Condition,
    to: Target,
    *,
    tell: Tell = "",
    name: str = "",
) -> Transition:
    """Go to a role or `END` if a condition holds.

    Args:
        check: a plain function of the thread, whose name and docstring are shown where the
            workflow is; or a `Condition`. It must be pure: a resume and a replay ask it again.
        to: the next role, or `END`.
        tell: a word for the next role, shown in its input; or a pure function of the thread.
        name: of the condition, where the function has none, as a lambda.
    """
    if not isinstance(check, Condition):
        check = Condition(name=name_of(check), description=first_line_of(check), check=check)
    if name:
        check = msgspec.structs.replace(check, name=name)
    return Transition(to, check, tell)


def otherwise(to: Target, *, tell: Tell) -> Transition:
    """Go to a role in any case, and tell it something. Without a word a bare role is enough."""
    return Transition(to, None, tell)


def name_of_target(target: Target) -> str:
    """The name of a role, or of `START` or `END`."""
    return target if isinstance(target, str) else target.name


def target_fault(value: object) -> str:
    """What keeps a value from naming a role, `START` or `END`; empty if nothing."""
    if not isinstance(value, str | RoleDefinition):
        return f"is of type {type(value).__name__}"
    name = cast("object", name_of_target(cast("Target", value)))
    return "" if isinstance(name, str) else f"is a role whose name is of type {type(name).__name__}"
