"""Children by their tasks: typed inputs and values, and what a child is told."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workflow_cas import MemoryStore
from workflow_execute import (
    ChildFailed,
    ChildTask,
    Engine,
    InputError,
    Workflow,
    child_prompt,
    create_workflow,
    function_adapter,
    list_threads,
    read_thread,
    run_child,
    run_children,
    run_workflow,
    workflow_adapter,
)
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Completion,
    Effect,
    RoleDefinition,
    StartStep,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
    otherwise,
)


@dataclass
class Ticket:
    id: int


@dataclass
class Note:
    words: str


noting = RoleDefinition(name="noting", schema=Note)
total = RoleDefinition(name="total", schema=list[str])


def note(ctx: ThreadContext) -> Note:
    return Note(words=f"ticket {ctx.input(Ticket).id}")


def notes(code: int = 0) -> Workflow[Ticket, Note]:
    def complete(ctx: ThreadContext) -> Completion:
        return Completion(return_code=code, summary="looked")

    return create_workflow(
        WorkflowDefinition(
            table={START: noting, noting: END}, input=Ticket, result=noting, complete=complete
        ),
        AdapterBinding(function_adapter(noting, note)),
    )


def parent_of(
    tasks: Sequence[ChildTask[Note]], *, reads_failed: bool = False
) -> Workflow[str, list[str]]:
    async def gather(ctx: ThreadContext) -> list[str]:
        done = await run_children(ctx, tasks)
        if reads_failed:
            return [f"{each.return_code} {each.last_value}" for each in done]
        return [each.value.words for each in done]

    return create_workflow(
        WorkflowDefinition(table={START: total, total: END}, result=total),
        AdapterBinding(function_adapter(total, gather, effect=Effect.READ)),
    )


async def test_tasks_have_typed_inputs_and_results_typed_values_in_their_order() -> None:
    flow, store = notes(), MemoryStore()
    tasks = [flow.task(Ticket(number), key=f"ticket/{number}") for number in range(5)]

    done = await Engine(store).start(parent_of(tasks), "p")

    assert done.value == [f"ticket {number}" for number in range(5)]
    below = [await read_thread(store, each) for each in done.steps[0].child_threads]
    assert {each.start.workflow for each in below} == {"noting"}
    assert sorted(each.prompt for each in below) == [f'{{"id":{number}}}' for number in range(5)]


async def test_an_input_of_another_type_fails_before_a_child_begins() -> None:
    wrong: Any = "seven"
    engine = Engine(MemoryStore())

    failed = await engine.start(parent_of([notes().task(wrong)]), "p")

    assert isinstance(failed.error, InputError)
    assert len(await list_threads(engine.store)) == 1


async def test_the_value_of_a_child_that_says_it_failed_is_an_error_unless_it_is_asked_for() -> (
    None
):
    tasks = [notes(code=3).task(Ticket(1), name="look")]

    failed = await run_workflow(parent_of(tasks), "p")
    read = await run_workflow(parent_of(tasks, reads_failed=True), "p")

    assert isinstance(failed.error, ChildFailed)
    assert "(look) ended with return code 3: looked" in failed.summary
    assert read.value == ["3 Note(words='ticket 1')"]


words = st.text("abcdefgh ", min_size=1).map(lambda text: f"<{text}>")


@given(data=st.data())
async def test_at_each_level_a_child_gets_the_task_and_what_it_is_told_once(
    data: st.DataObject,
) -> None:
    """Each level has a prompt, and tells the next something, or hands on its latest step."""
    depth = data.draw(st.integers(1, 4))
    task = "<the task>"
    prompts = [f"<prompt {level}>" for level in range(depth)]
    told = [data.draw(st.sampled_from(["", f"<told {level}>"])) for level in range(depth)]
    seen: list[str] = []

    leaf = RoleDefinition(name="leaf", schema=str)

    def look(ctx: ThreadContext) -> str:
        seen.append(ctx.start.prompt)
        return ""

    flow: Workflow[str, Any] = create_workflow(
        WorkflowDefinition(table={START: leaf, leaf: END}),
        AdapterBinding(function_adapter(leaf, look)),
    )
    for level in reversed(range(depth)):
        first = RoleDefinition(name="first", schema=str)
        below = RoleDefinition(name="below", system_prompt=prompts[level], schema=str)
        flow = create_workflow(
            WorkflowDefinition(
                table={START: first, first: otherwise(below, tell=told[level]), below: END}
            ),
            AdapterBinding(
                overrides={
                    first: function_adapter(first, lambda ctx, level=level: f"<step {level}>"),
                    below: workflow_adapter("below", flow),
                }
            ),
        )

    done = await run_workflow(flow, task)

    assert done.state == "completed"
    (text,) = seen
    parts = [task]
    for level in range(depth):
        parts += [prompts[level], told[level] or f"<step {level}>"]
        assert (f"<step {level}>" in text) is not bool(told[level])
    assert all(text.count(part) == 1 for part in parts)
    assert all(text.index(a) < text.index(b) for a, b in itertools.pairwise(parts))


@given(prompt=words, told=words, task=words)
def test_a_child_is_told_no_empty_parts(prompt: str, told: str, task: str) -> None:

    ctx = ThreadContext(
        thread_id=ThreadId("t"),
        start=StartStep(prompt=task, workspace=Path(), timestamp_ms=0),
        told=told,
    )
    assert child_prompt(prompt, ctx) == f"{task}\n\n{prompt}\n\n{told}"
    assert child_prompt("", ctx) == f"{task}\n\n{told}"


async def test_a_task_alone_runs_too() -> None:
    role = RoleDefinition(name="one", schema=str)

    async def one(ctx: ThreadContext) -> str:
        return (await run_child(ctx, notes().task(Ticket(4)))).value.words

    flow = create_workflow(
        WorkflowDefinition(table={START: role, role: END}, result=role),
        AdapterBinding(function_adapter(role, one, effect=Effect.READ)),
    )
    assert (await run_workflow(flow, "p")).value == "ticket 4"
