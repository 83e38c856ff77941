"""Fan-out: a child thread for each file, several at once, and what they found by file.

uwf run overview.py "*.py" --workspace path/to/a/project
"""

from uwf import (END, START, AdapterBinding, Effect, ReactAdapterConfig, RoleDefinition,
                 ThreadContext, WorkflowDefinition, create_react_adapter, create_workflow,
                 function_adapter, run_children, workspace_tools)

reader = RoleDefinition(name="reader", system_prompt="Say what the file is for.", schema=str)
react = create_react_adapter(ReactAdapterConfig(
    llm="default", toolset=workspace_tools(shell=False, write=False)))
look = create_workflow(
    WorkflowDefinition(table={START: reader, reader: END}, result=reader), AdapterBinding(react))
files = RoleDefinition(name="files", schema=list[str])
overview = RoleDefinition(name="overview", schema=dict[str, str])


def find(ctx: ThreadContext) -> list[str]:
    """Which files the prompt's pattern finds: a role of its own, so that a resume has the same."""
    return sorted(path.name for path in ctx.start.workspace.glob(ctx.start.prompt))


async def look_at_each(ctx: ThreadContext) -> dict[str, str]:
    """What each of them is for."""
    names = ctx.meta(files) or []
    found = await run_children(ctx, [look.task(f"Read {name}.", key=name) for name in names])
    return {name: each.value for name, each in zip(names, found, strict=True)}


run = create_workflow(
    WorkflowDefinition(table={START: files, files: overview, overview: END}, result=overview),
    AdapterBinding(overrides={files: function_adapter(files, find, effect=Effect.READ),
        overview: function_adapter(overview, look_at_each, effect=Effect.READ)}))
