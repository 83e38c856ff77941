"""Roles: what each is told, and the type of what it must give."""

from __future__ import annotations

from typing import Generic, Self, TypeVar

import msgspec
from typing_extensions import TypeForm

from workflow_protocol._short import short

T = TypeVar("T")


class RoleDefinition(msgspec.Struct, Generic[T], frozen=True, kw_only=True, eq=False):
    """A role: what it is told and the type of what it must give. Also the handle to its steps.

    Two definitions are the same only if they are the same object.
    """

    name: str
    """Unique in the workflow."""
    description: str = ""
    """What the role does, for people."""
    system_prompt: str = ""
    """What the model is told; a role that is code has none."""
    schema: TypeForm[T]
    """Any type that pydantic or msgspec validates: a model, Struct, dataclass, `list[X]`, …"""

    def __repr__(self) -> str:
        return f"RoleDefinition({self.name!r}, schema={short(self.schema)})"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Itself: a copied workflow has the same roles, and the handles to them stay good."""
        return self
