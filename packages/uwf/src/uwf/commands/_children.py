"""Child workflows that go by a registered name: looked up before a thread needs them."""

from __future__ import annotations

from typing import cast

from uwf._errors import UsageError
from workflow_cas import Store
from workflow_execute import AnyWorkflow, Workflow
from workflow_register import (
    HasDefinition,
    RegisterError,
    check_name,
    load_registered,
)


def as_workflow(found: HasDefinition) -> AnyWorkflow:
    """Give what an entry exports as what an engine runs.

    Raises:
        UsageError: it is one of something else.
    """
    if not isinstance(found, Workflow):
        raise UsageError("the entry's `run` was not made by workflow_execute.create_workflow")
    return cast("AnyWorkflow", found)


async def check_children(store: Store, workflow: AnyWorkflow) -> None:
    """Import what the children of a workflow run, and theirs, so that a missing one shows now.

    Raises:
        UsageError: nothing is registered under a name, or it can't be used; which role runs it.
    """
    checked: set[str] = set()
    ahead = list(workflow.registered_children.items())
    while ahead:
        name, role = ahead.pop(0)
        if name in checked:
            continue
        checked.add(name)
        try:
            below = as_workflow(await load_registered(store, check_name(name)))
        except (RegisterError, UsageError) as error:
            raise UsageError(f"{role} runs the workflow {name!r}: {error}") from error
        found = below.registered_children.items()
        ahead += [(each, f"{place} of the workflow {name!r}") for each, place in found]
