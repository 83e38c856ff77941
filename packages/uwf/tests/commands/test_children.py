"""Child workflows by a registered name, as `bundle`, `add` and `run` look for them."""

import json

from ..cli import Cli

LEAF = """
from uwf import END, START, AdapterBinding, RoleDefinition, WorkflowDefinition
from uwf import create_workflow, function_adapter, workflow_adapter
role = RoleDefinition(name="leaf", schema=str)
run = create_workflow(WorkflowDefinition(table={START: role, role: END}, result=role),
    AdapterBinding(function_adapter(role, lambda ctx: "from the leaf")))
"""
CALLER = """
from uwf import END, START, AdapterBinding, RoleDefinition, WorkflowDefinition
from uwf import create_workflow, function_adapter, workflow_adapter
lead = RoleDefinition(name="lead", schema=str)
below = create_workflow(WorkflowDefinition(table={START: lead, lead: END}, result=lead),
    AdapterBinding(workflow_adapter("NAME")))
run = create_workflow(WorkflowDefinition(table={START: lead, lead: END}, result=lead),
    AdapterBinding(CHILD))
"""
DIRECT = CALLER.replace("CHILD", 'workflow_adapter("NAME")')


def write(uwf: Cli, file: str, child: str, text: str = DIRECT) -> str:
    uwf.write(file, text.replace("NAME", child))
    return file


async def test_a_child_that_is_not_registered_yet_is_told_at_bundle_and_add_and_refused_at_run(
    uwf: Cli,
) -> None:
    entry = write(uwf, "caller.py", "help")

    bundled = await uwf("bundle", entry)
    as_json = await uwf("--json", "bundle", entry)
    added = await uwf("add", "begin-work", entry)
    by_path = await uwf("run", entry, "x")
    by_name = await uwf("run", "begin-work", "x")

    assert (bundled.code, added.code) == (0, 0)
    assert bundled.err.endswith("; runs by name: help\n")
    assert json.loads(as_json.out)["children"] == ["help"]
    wanted = "role 'lead' runs the workflow 'help'"
    reason = "no workflow is registered as 'help'; register one with `uwf add help ENTRY.py`"
    assert f"uwf: warning: {wanted}, and {reason}\n" in added.err
    for refused in (by_path, by_name):
        assert (refused.code, refused.out) == (2, "")
        assert refused.err == f"uwf: {wanted}: {reason}\n"
    assert (await uwf("thread", "list")).out == ""

    uwf.write("leaf.py", LEAF)
    await uwf("add", "help", "leaf.py")
    assert "warning" not in (await uwf("add", "call-again", entry)).err
    done = await uwf("run", "begin-work", "x")
    assert (done.code, done.out) == (0, '"from the leaf"\n'), done.err


async def test_a_name_that_no_workflow_can_have_is_refused_by_each_command(uwf: Cli) -> None:
    entry = write(uwf, "caller.py", "Not A Name")

    for words in (["bundle", entry], ["add", "begin-work", entry], ["run", entry, "x"]):
        done = await uwf(*words)
        assert done.code in {1, 2}
        assert done.out == ""
        assert len(done.err.splitlines()) == 1
        assert "role 'lead' runs" in done.err
        assert "'Not A Name' can't name a workflow: use lower-case words joined by '-'" in done.err
    assert (await uwf("workflow", "list")).out == ""


async def test_the_children_of_children_are_looked_up_too_before_a_thread_begins(uwf: Cli) -> None:
    middle = CALLER.replace("CHILD", 'workflow_adapter("in-between", below)')
    await uwf("add", "middle", write(uwf, "middle.py", "deep", middle))

    missing = await uwf("run", write(uwf, "caller.py", "middle"), "x")
    await uwf("add", "deep", write(uwf, "deep.py", "middle"))  # a circle, which is allowed
    circle = await uwf("run", "caller.py", "x", "--limit", "max_depth=3")

    assert missing.code == 2
    assert missing.err.startswith(
        "uwf: role 'lead' → 'lead' of the workflow 'middle' runs the workflow 'deep': no workflow"
    )
    assert (circle.code, "levels of child threads" in circle.err) == (3, True), circle.err


async def test_a_function_that_gives_no_child_is_told_with_its_reason(uwf: Cli) -> None:
    entry = write(
        uwf, "caller.py", "x", CALLER.replace("CHILD", 'workflow_adapter("a", lambda: b)')
    )

    done = await uwf("bundle", entry)

    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "a function that gives a child's workflow raised NameError: name 'b'" in done.err


async def test_a_child_whose_bundle_cannot_be_used_is_told_with_the_role(uwf: Cli) -> None:
    uwf.write("leaf.py", LEAF + "\nimport os\nif os.environ.get('BROKEN'): raise OSError('no')\n")
    await uwf("add", "help", "leaf.py")

    done = await uwf("run", write(uwf, "caller.py", "help"), "x", BROKEN="1")

    assert done.code == 2
    assert done.err.startswith("uwf: role 'lead' runs the workflow 'help': ")
    assert "OSError: no" in done.err
