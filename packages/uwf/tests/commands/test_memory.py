"""`uwf memory`: what threads remembered, seen and changed by a person."""

from ..cli import Cli

FLOW = """
from uwf import (END, START, AdapterBinding, Memory, RoleDefinition, ThreadContext,
                 WorkflowDefinition, create_workflow, function_adapter)

role = RoleDefinition(name="r", schema=str)
memory = Memory("customers/42")

async def turn(ctx: ThreadContext) -> str:
    before = await memory.recall(ctx, "language")
    await memory.remember(ctx, "language", ctx.start.prompt)
    return before.value if before else "nothing"

run = create_workflow(WorkflowDefinition(table={START: role, role: END}),
                      AdapterBinding(overrides={role: function_adapter(role, turn)}))
"""


async def test_a_person_sees_sets_and_forgets_what_threads_remember(uwf: Cli) -> None:
    flow = uwf.write("flow.py", FLOW)
    assert (await uwf("run", flow, "French")).out == '"nothing"\n'
    (listed,) = (await uwf("memory", "list", "--json")).lines
    thread = (await uwf("thread", "list", "--json")).lines[0]["thread"]
    assert (listed["namespace"], listed["key"], listed["value"]) == (
        "customers/42", "language", "French"
    )  # fmt: skip
    assert (listed["thread"], listed["step"]) == (thread, 0)

    assert (await uwf("memory", "set", "customers/42", "language", "Dutch")).code == 0
    assert (await uwf("memory", "show", "customers/42", "language")).out == "Dutch\n"
    assert (await uwf("run", flow, "Greek")).out == '"Dutch"\n'

    gone = await uwf("memory", "forget", "customers/42")
    assert (gone.code, gone.out) == (0, "1 fact of customers/42 forgotten\n")
    assert (await uwf("memory", "list")).out == ""
    assert (await uwf("cas", "verify")).code == 0


async def test_what_is_not_there_or_can_not_be_is_a_clear_error(uwf: Cli) -> None:
    for words in (("show", "n", "k"), ("forget", "n"), ("forget", "n", "k")):
        done = await uwf("memory", *words)
        assert (done.code, "nothing is remembered" in done.err) == (1, True)
    done = await uwf("memory", "set", "n", "k" * 201, "v")
    assert done.code == 1
    assert "use 1 to 200 characters" in done.err
    assert (await uwf("memory", "list")).code == 0
