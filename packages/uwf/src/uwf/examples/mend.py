"""One role that mends what a project's tests find, and can't say so before they pass.

uwf run mend.py "The tests fail. Find the cause and mend it." --workspace path/to/a/project
"""

import sys
from pathlib import Path

from uwf import (END, START, AdapterBinding, Allow, Decision, Deny, Effect, ProposedCall,
                 ReactAdapterConfig, RoleDefinition, ThreadContext, WorkflowDefinition,
                 command_tool, create_react_adapter, create_workflow, workspace_tools)

run_tests = command_tool(
    "run_tests",
    [sys.executable, "-B", "-m", "unittest"],
    description="Run the project's tests. It fails while one of them does.",
    readable=[Path(sys.prefix), Path(sys.base_prefix)],
    effect=Effect.REPEATABLE,
)

mender = RoleDefinition(
    name="mender",
    description="Mends a fault that the tests show",
    system_prompt=(
        "You mend a fault in the project. Run the tests, read the file that has the fault, and "
        "change as little of it as you can with patch_file. Leave the tests as they are. When the "
        "tests pass, resolve with one sentence about the fault."
    ),
    schema=str,
)


def tests_pass(call: ProposedCall, ctx: ThreadContext) -> Decision:
    """A guard: the work is done when the tests pass on the files as they are now."""
    if call.name == "patch_file" and "test" in str(call.arguments["path"]):
        return Deny("the tests stay as they are; mend what they test")
    if call.name != "resolve":
        return Allow()
    last = [past for past in call.history.calls if past.name in ("patch_file", "run_tests")][-1:]
    if last and last[0].name == "run_tests" and last[0].ok:
        return Allow()
    return Deny("call run_tests first; resolve when it passes after your last change")


run = create_workflow(
    WorkflowDefinition(table={START: mender, mender: END}, result=mender),
    AdapterBinding(
        create_react_adapter(
            ReactAdapterConfig(
                llm="default",
                toolset=[workspace_tools(shell=False).only("read_file", "patch_file"), run_tests],
                guards=[tests_pass],
                max_rounds=16,
            )
        )
    ),
)
