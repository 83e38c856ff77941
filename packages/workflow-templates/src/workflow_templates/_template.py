"""What a template gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple

from typing_extensions import TypeVar

from workflow_protocol import AdapterBinding, AdapterFn, RoleDefinition, WorkflowDefinition

In = TypeVar("In", contravariant=True, default=str)
Out = TypeVar("Out", covariant=True, default=object)

Overrides = Mapping[RoleDefinition[Any] | str, AdapterFn]


class Template(NamedTuple, Generic[In, Out]):
    """A definition and what its roles are bound to.

    `definition, binding = develop()`, then `run = create_workflow(definition, binding)`.
    """

    definition: WorkflowDefinition[In, Out]
    """The table of roles."""
    binding: AdapterBinding
    """Their adapters."""


def bind(
    adapter: AdapterFn | None, ours: Mapping[str, AdapterFn], theirs: Overrides | None
) -> AdapterBinding:
    """The adapters of a template, with those of its user before them."""
    named = {
        key if isinstance(key, str) else key.name: value for key, value in (theirs or {}).items()
    }
    return AdapterBinding(adapter, overrides={**ours, **named})
