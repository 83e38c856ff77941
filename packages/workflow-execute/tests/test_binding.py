"""What `create_workflow` is given in place of a definition, a binding and its parts."""

from typing import Any

import pytest

from workflow_execute import create_workflow
from workflow_execute.testing import adapter_of
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    DefinitionError,
    RoleDefinition,
    ThreadContext,
    WorkflowDefinition,
)

WRITER = RoleDefinition(name="writer", system_prompt="Write.", schema=str)
DEFINITION = WorkflowDefinition(table={START: WRITER, WRITER: END})


async def write(ctx: ThreadContext) -> str:
    return ctx.start.prompt


ADAPTER = adapter_of(write)


@pytest.mark.parametrize(
    ("definition", "binding", "fault"),
    [
        (None, AdapterBinding(ADAPTER), "definition: it is of type NoneType; use a Workflow"),
        ({START: WRITER}, AdapterBinding(ADAPTER), "definition: it is of type dict; use a"),
        (DEFINITION, ADAPTER, "binding: it is of type function; write AdapterBinding(adapter)"),
        (DEFINITION, None, "binding: it is of type NoneType; write AdapterBinding(adapter)"),
        (DEFINITION, {WRITER: ADAPTER}, "binding: it is of type dict; write AdapterBinding"),
        (
            DEFINITION,
            "overrides [ADAPTER]",
            "overrides: it is of type list; use a dict of adapters",
        ),
        (DEFINITION, "overrides 3", "overrides: a key is of type int; use a role or its name"),
        (DEFINITION, AdapterBinding(), "role 'writer': it has no adapter; give AdapterBinding"),
    ],
)
def test_one_mistake_is_one_fault(definition: Any, binding: Any, fault: str) -> None:
    overrides: dict[Any, Any] = {
        "overrides [ADAPTER]": [ADAPTER],
        "overrides 3": {3: ADAPTER},
    }
    if isinstance(binding, str):
        binding = AdapterBinding(ADAPTER, overrides=overrides[binding])

    with pytest.raises(DefinitionError) as caught:
        create_workflow(definition, binding)
    assert [str(each).startswith(fault) for each in caught.value.faults] == [True]
