"""Inputs and results with a type, through an engine."""

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from workflow_cas import MemoryStore
from workflow_execute import (
    ChildTask,
    Decision,
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
    DefinitionError,
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


@dataclass
class Other:
    name: str


def of_other() -> Workflow[Other, object]:
    table = {START: READER, READER: END}
    return create_workflow(
        WorkflowDefinition(table=table, input=Other), AdapterBinding(adapter_of(copy))
    )


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


async def test_a_fork_is_not_made_with_what_its_workflow_does_not_take() -> None:
    store = MemoryStore()
    done = await Engine(store).start(workflow(), Ticket(7))
    engine = Engine(store)

    with pytest.raises(InputError, match=r"the input does not fit Ticket: \$\.id: "):
        await engine.fork(done.thread_id, prompt='{"id": "x"}', workflow=workflow())
    with pytest.raises(InputError, match="its input does not fit Other: "):
        await engine.fork(done.thread_id, workflow=of_other())
    with pytest.raises(InputError, match="the input is not valid UTF-8: at character 4"):
        await engine.fork(done.thread_id, prompt="bad \udcff")
    assert await list_threads(store) == [done.thread_id]


async def test_a_default_of_the_new_input_of_a_fork_is_made_once() -> None:
    engine = Engine(MemoryStore())
    made = list[UUID]()

    async def turn(ctx: ThreadContext) -> Note:
        made.append(ctx.input(Ticket).made)
        return Note(ctx.start.prompt)

    done = await engine.start(workflow(turn), Ticket(7))
    fork = await engine.fork(done.thread_id, at_step=0, prompt='{"id": 8}', workflow=workflow())
    await engine.resume(workflow(turn), fork)

    assert len(made) == 4
    assert len(set(made[2:])) == 1


async def test_text_that_is_not_utf_8_is_refused_before_anything_begins() -> None:
    store = MemoryStore()
    table = {START: READER, READER: END}
    plain = create_workflow(WorkflowDefinition(table=table), AdapterBinding(adapter_of(copy)))

    with pytest.raises(InputError, match="the input is not valid UTF-8: at character 3"):
        await Engine(store).start(plain, "abc\ud800")
    with pytest.raises(InputError, match="the input is not valid UTF-8"):
        read_input(plain, "abc\ud800")
    assert await list_threads(store) == []


async def test_a_thread_that_was_ended_before_its_result_names_the_role_that_gives_it() -> None:
    async def stop(ctx: ThreadContext) -> Decision:
        return Decision(decision="stop", reason="it goes in circles")

    engine = Engine(MemoryStore(), supervisor=stop, supervise_every=1)
    done = await engine.start(workflow(), Ticket(7))

    assert done.state == "completed"
    assert done.of(READER) == Note('7: {"id":7,"')
    words = "it was ended before the role 'writer' gave the result: .*it goes in circles"
    with pytest.raises(ThreadNotCompleted, match=words):
        _ = done.value


SETS = """
import sys, anyio, msgspec
from pathlib import Path
from workflow_cas import open_store
from workflow_execute import ChildTask, Engine, create_workflow, run_child
from workflow_execute.testing import adapter_of
from workflow_protocol import *

class Tags(msgspec.Struct):
    names: set[str]

def one(name, turn, type):
    role = RoleDefinition(name=name, system_prompt="", schema=str)
    definition = WorkflowDefinition(table={START: role, role: END}, input=type)
    return create_workflow(definition, AdapterBinding(adapter_of(turn)))

async def ask(ctx):
    return (await ctx.journal.ask("q", Question(text="May I?"))).text

async def start_child(ctx):
    tags = Tags(set("abcdefghijklmnop"))
    task = ChildTask(workflow=one("below", ask, Tags), input=tags, name="below")
    return (await run_child(ctx, task)).read(str)

async def main():
    async with open_store(Path(sys.argv[1])) as store:
        engine, run = Engine(store), one("above", start_child, str)
        if Path(sys.argv[2]).exists():
            done = await engine.resume(run, ThreadId(Path(sys.argv[2]).read_text()))
        else:
            done = await engine.start(run, "x")
            Path(sys.argv[2]).write_text(done.thread_id)
            await engine.answer(done.waits_for[0], None, Answer(approved=True, text="yes"))
        print(done.state, done.summary)

anyio.run(main)
"""


def test_a_child_whose_input_has_a_set_is_taken_up_by_another_process(tmp_path: Path) -> None:
    said = list[str]()
    for seed in ("1", "2"):  # of hashes, which the order of a set depends on
        command = [sys.executable, "-c", SETS, str(tmp_path / "store"), str(tmp_path / "id")]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        said.append(done.stdout)

    assert said[0].startswith("suspended ")
    assert said[1] == 'completed above: "yes"\n'


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
        AdapterBinding(workflow_adapter("below", lambda: workflow())),
    )
    with pytest.raises(DefinitionError, match="'below' takes an input of type Ticket; give"):
        create_workflow(
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
