"""A workflow in a script and in a notebook."""

import ast
import inspect
from typing import Any

import pytest

from workflow_execute import run_sync, run_workflow
from workflow_execute.testing import in_turn
from workflow_protocol import ThreadContext


async def one(ctx: ThreadContext) -> int:
    return 1


def test_a_script_runs_a_workflow_by_a_plain_call() -> None:
    done = run_sync(in_turn(one), "task")

    assert (done.state, done.value) == ("completed", 1)


async def test_inside_of_an_event_loop_it_says_what_to_write_instead() -> None:
    with pytest.raises(RuntimeError) as caught:
        run_sync(in_turn(one), "task")

    assert str(caught.value) == (
        "`run_sync` can't be called where an event loop runs, as in an async function or a "
        "notebook; write `await run_workflow(...)` there"
    )


async def test_a_cell_of_a_notebook_awaits_at_its_top() -> None:
    cell = compile(  # as IPython does
        "done = await run_workflow(workflow, 'task')",
        "<cell>",
        "exec",
        flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
    )
    names: dict[str, Any] = {"run_workflow": run_workflow, "workflow": in_turn(one)}
    running = eval(cell, names)
    assert inspect.iscoroutine(running)
    await running

    assert names["done"].value == 1
