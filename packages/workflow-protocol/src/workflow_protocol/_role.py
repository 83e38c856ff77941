"""Roles: what each is told, and the type of what it must give."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec
from typing_extensions import TypeForm

T = TypeVar("T")


class RoleDefinition(msgspec.Struct, Generic[T], frozen=True, kw_only=True, eq=False):
    """A role: what it is told and the type of what it must give. Also the handle to its steps.

    Two definitions are the same only if they are the same object.
    """

    name: str
    description: str = ""
    """What the role does, for people."""
    system_prompt: str = ""
    """What the model is told; a role that is code has none."""
    schema: TypeForm[T]
    """Any type that pydantic or msgspec validates: a model, Struct, dataclass, `list[X]`, …"""
