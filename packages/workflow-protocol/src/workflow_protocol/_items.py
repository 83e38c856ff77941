"""A mapping as its pairs, so that a literal and a variable both fit."""

from __future__ import annotations

from collections.abc import ItemsView
from typing import Protocol, TypeVar

K_co = TypeVar("K_co", covariant=True)
V_co = TypeVar("V_co", covariant=True)


class Items(Protocol[K_co, V_co]):
    """A mapping of which only the pairs are read.

    `Mapping` is invariant in its keys: a `dict[RoleDefinition[Draft], …]` would not do where
    `RoleDefinition[Any] | str` are the keys.
    """

    def items(self) -> ItemsView[K_co, V_co]:
        """The pairs, in their order."""
        ...
