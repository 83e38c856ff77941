"""Inputs and results with a type, through an engine."""

from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from workflow_cas import MemoryStore
from workflow_execute import (
    ChildTask,
    Engine,
    InputError,
    Limits,
    ThreadNotCompleted,
    ThreadNotResumable,
    Workflow,
    create_workflow,
    list_threads,
    read_input,
    run_child,
    run_workflow,
    workflow_adapter,
)
from workflow_execute.testing import adapter_of
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    RoleDefinition,
    SchemaMismatch,
    ThreadContext,
    WorkflowDefinition,
)


@dataclass
class Ticket:
    id: int
    words: str = ""
    made: UUID = field(default_factory=uuid4)


@dataclass
class Note:
    text: str


READER = RoleDefinition(name="reader", system_prompt="Read.", schema=Note)
WRITER = RoleDefinition(name="writer", system_prompt="Write.", schema=Note)


async def copy(ctx: ThreadContext) -> Note:
    return Note(f"{ctx.input(Ticket).id}: {ctx.start.prompt[:9]}")


def workflow(turn: Any = copy) -> Workflow[Ticket, Note]:
    table = {START: READER, READER: WRITER, WRITER: END}
    definition = WorkflowDefinition(table=table, input=Ticket, result=WRITER)
    return create_workflow(definition, AdapterBinding(adapter_of(turn)))


async def test_roles_get_the_input_as_a_value_and_read_it_as_json() -> None:
    ticket = Ticket(7, "Fix it.")
    got = list[Ticket]()

    async def turn(ctx: ThreadContext) -> Note:
        got.append(ctx.input(Ticket))
        return Note(ctx.start.prompt)

    done = await run_workflow(workflow(turn), ticket)

    assert got == [ticket, ticket]
    assert done.value == Note(f'{{"id":7,"words":"Fix it.","made":"{ticket.made}"}}')
    assert (done.of(READER), done.of(WRITER)) == (done.value, done.value)


async def test_resume_fork_and_replay_get_the_same_input() -> None:
    store = MemoryStore()
    stopped = await Engine(store, limits=Limits(max_steps=1)).start(workflow(), Ticket(7))
    engine = Engine(store)

    done = await engine.resume(workflow(), stopped.thread_id)
    forked = await engine.fork(done.thread_id, at_step=1, prompt='{"id": 8}')

    assert done.value == Note('7: {"id":7,"')
    assert (await engine.replay(workflow(), done.thread_id)).steps == 2
    assert (await engine.resume(workflow(), forked)).value == Note('8: {"id": 8}')


async def test_nothing_begins_with_an_input_of_another_type() -> None:
    store = MemoryStore()
    plain = create_workflow(
        WorkflowDefinition(table={START: READER, READER: END}), AdapterBinding(adapter_of(copy))
    )

    with pytest.raises(InputError, match="the input is of type str, which does not fit Ticket"):
        await Engine(store).start(workflow(), cast("Any", "words"))
    with pytest.raises(InputError, match=r"of type Ticket, which does not fit Ticket: \$\.id: "):
        await Engine(store).start(workflow(), Ticket(cast("Any", "seven")))
    with pytest.raises(InputError, match="the input is of type Ticket; the workflow takes text"):
        await Engine(store).start(plain, cast("Any", Ticket(1)))
    assert await list_threads(store) == []


async def test_a_thread_does_not_go_on_with_an_input_that_no_longer_fits() -> None:
    engine = Engine(MemoryStore(), limits=Limits(max_steps=1))
    stopped = await engine.start(workflow(), Ticket(7))
    forked = await engine.fork(stopped.thread_id, prompt="Do it.")

    with pytest.raises(ThreadNotResumable, match="its input does not fit Ticket: "):
        await engine.resume(workflow(), forked)


async def test_what_a_person_wrote_is_read_as_json_and_faults_name_the_field() -> None:
    assert read_input(workflow(), '{"id": 7, "words": "x"}').words == "x"
    with pytest.raises(InputError, match=r"the input does not fit Ticket: \$\.id: "):
        read_input(workflow(), '{"id": "seven"}')
    with pytest.raises(InputError, match="the input does not fit Ticket: "):
        read_input(workflow(), "Fix it.")


async def test_another_type_than_that_of_the_input_is_a_mismatch() -> None:
    async def turn(ctx: ThreadContext) -> Note:
        return ctx.input(Note)

    done = await run_workflow(workflow(turn), Ticket(7))

    assert done.state == "failed"
    assert isinstance(done.error, SchemaMismatch)


async def test_a_child_takes_a_typed_input_too() -> None:
    def ticket(prompt: str, ctx: ThreadContext) -> Ticket:
        return Ticket(ctx.input(int))

    async def turn(ctx: ThreadContext) -> Note:
        task = ChildTask(workflow=workflow(), input=Ticket(3), name="own", key="own")
        return (await run_child(ctx, task)).read(Note)

    table = {START: READER, READER: WRITER, WRITER: END}
    parent = create_workflow(
        WorkflowDefinition(table=table, input=int, result=WRITER),
        AdapterBinding(
            adapter_of(turn),
            overrides={READER: workflow_adapter("below", workflow(), input=ticket)},
        ),
    )
    untold = create_workflow(
        WorkflowDefinition(table={START: READER, READER: END}),
        AdapterBinding(workflow_adapter("below", workflow())),
    )

    done = await run_workflow(parent, 5)
    failed = await run_workflow(untold, "p")

    assert done.of(READER) == Note('5: {"id":5,"')
    assert done.value == Note('3: {"id":3,"')
    assert "the input is of type str, which does not fit Ticket" in failed.summary


async def test_a_thread_that_ends_before_its_result_has_no_value() -> None:
    done = await Engine(MemoryStore(), limits=Limits(max_steps=1)).start(workflow(), Ticket(7))

    with pytest.raises(ThreadNotCompleted, match="has no value: it is suspended: the limit of 1"):
        _ = done.value
    assert done.of(READER) == Note('7: {"id":7,"')
    assert done.of(WRITER) is None


async def test_the_repr_of_results_and_threads_fits_a_screen() -> None:
    seen = list[str]()

    async def turn(ctx: ThreadContext) -> Note:
        seen.extend([repr(ctx), repr(ctx.start), *map(repr, ctx.steps)])
        return Note("long words " * 10_000)

    done = await run_workflow(workflow(turn), Ticket(7, "many " * 10_000))

    assert max(map(len, [*seen, repr(done), repr(workflow()), repr(workflow().definition)])) < 500
    assert repr(done).startswith(f"ThreadResult({done.thread_id}, completed (0), 2 steps: 'writer:")
    assert repr(workflow()) == "Workflow(reader → writer)"
