"""Workflows by name: what a name stands for is looked up by an installed package."""

from __future__ import annotations

import functools
from typing import Protocol, cast

from workflow_cas import Store
from workflow_execute._errors import WorkflowNotFound
from workflow_execute._workflow import AnyWorkflow, Workflow
from workflow_protocol import Hash, WorkflowError

REGISTRY_GROUP = "workflow_execute.workflow_names"
"""The entry point group of whoever knows workflows by name; workflow-register does."""


class WorkflowRegistry(Protocol):
    """What is registered in the group. What it raises of its own is a `WorkflowError`."""

    async def find(self, store: Store, name: str, /) -> Hash:
        """Give the stored bundle that a name stands for now."""
        ...

    async def load(self, store: Store, bundle: Hash, /) -> object:
        """Import the workflow of a stored bundle."""
        ...


async def find_bundle(store: Store, name: str) -> Hash:
    """Give the stored bundle of the workflow that is registered under a name now.

    Raises:
        WorkflowNotFound: none is, or no installed package knows workflows by name.
    """
    try:
        return await _registry(name).find(store, name)
    except WorkflowError as error:
        raise _not_found(name, error) from error


async def load_bundle(store: Store, name: str, bundle: Hash) -> AnyWorkflow:
    """Import the workflow of a stored bundle, which `name` stood for.

    Raises:
        WorkflowNotFound: the bundle is gone or damaged, can't be imported here, or holds something
            else.
    """
    try:
        found = await _registry(name).load(store, bundle)
    except WorkflowError as error:
        raise _not_found(name, error) from error
    if not isinstance(found, Workflow):
        raise WorkflowNotFound(name, "its entry's `run` was not made by create_workflow")
    return cast("AnyWorkflow", found)


def _not_found(name: str, error: WorkflowError) -> WorkflowError:
    return error if isinstance(error, WorkflowNotFound) else WorkflowNotFound(name, str(error))


def _registry(name: str) -> WorkflowRegistry:
    found = _installed_registry()
    if isinstance(found, str):
        raise WorkflowNotFound(name, found)
    return found


@functools.lru_cache(maxsize=1)
def _installed_registry() -> WorkflowRegistry | str:
    """Whoever knows workflows by name, or why there is nobody."""
    from importlib.metadata import entry_points  # 10 ms that only some runs need

    for entry in entry_points(group=REGISTRY_GROUP):
        try:
            return cast("WorkflowRegistry", entry.load())
        except (ImportError, AttributeError) as error:
            return f"{entry.value!r}, which knows workflows by name, can't be imported: {error}"
    return (
        "no installed package knows workflows by name; install workflow-register, or give the "
        "workflow itself"
    )
