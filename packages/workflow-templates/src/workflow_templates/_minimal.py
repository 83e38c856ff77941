"""The smallest template: one role that reads the workspace and answers."""

from __future__ import annotations

from workflow_agent_react import ReactAdapterConfig, create_react_adapter, workspace_tools
from workflow_protocol import END, START, AdapterBinding, RoleDefinition, WorkflowDefinition
from workflow_reactor import LlmFn, LlmSource
from workflow_templates._template import Template

worker = RoleDefinition(
    name="worker",
    description="Reads the workspace and answers",
    system_prompt=(
        "You answer a question about the files in the workspace. Read what you need, then resolve "
        "with the answer in a few sentences."
    ),
    schema=str,
)


def minimal(*, llm: str | LlmFn | LlmSource = "default") -> Template[str, str]:
    """Give a workflow of one role that reads the workspace and answers in text.

    Args:
        llm: a scene of `workflow.yaml`, `"provider/model"`, or the model itself.
    """
    react = create_react_adapter(
        ReactAdapterConfig(llm=llm, toolset=workspace_tools(shell=False, write=False))
    )
    definition = WorkflowDefinition(
        description="Answer a question about the workspace",
        table={START: worker, worker: END},
        result=worker,
    )
    return Template(definition, AdapterBinding(react))
