"""Code as a role: called once, in a thread if it is not async, its value checked and recorded."""

import functools
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_cas import SqliteStore, open_store
from workflow_execute import (
    ChildTask,
    Engine,
    FunctionAdapter,
    RoleValueError,
    ThreadResult,
    Workflow,
    create_workflow,
    function_adapter,
    list_threads,
    read_thread,
    run_children,
    run_workflow,
)
from workflow_execute.testing import in_turn
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Answer,
    DefinitionError,
    DirectJournal,
    Effect,
    OutcomeUnknown,
    Question,
    RoleDefinition,
    StartStep,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
    WorkflowError,
    run_once,
)


class Report(pydantic.BaseModel):
    passed: bool
    failures: list[str] = []


tests = RoleDefinition(name="tests", schema=Report)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


def one_role(adapter: FunctionAdapter[Any]) -> Workflow[str, Any]:
    role = adapter.role
    return create_workflow(
        WorkflowDefinition(table={START: role, role: END}, result=role),
        AdapterBinding(overrides={role: adapter}),
    )


def fine(ctx: ThreadContext) -> Report:
    return Report(passed=True, failures=[ctx.start.prompt, threading.current_thread().name])


async def fine_in_the_loop(ctx: ThreadContext) -> Report:
    return fine(ctx)


class Called:
    async def __call__(self, ctx: ThreadContext) -> Report:
        return fine(ctx)


LOOP = threading.main_thread().name
FUNCTIONS: list[tuple[Callable[[ThreadContext], Any], bool]] = [
    (fine, False),
    (functools.partial(fine), False),
    (fine_in_the_loop, True),
    (lambda ctx: fine_in_the_loop(ctx), True),
    (Called(), True),
]


@pytest.mark.parametrize(("fn", "in_loop"), FUNCTIONS)
async def test_plain_functions_run_in_a_thread_and_async_ones_in_the_loop(
    fn: Callable[[ThreadContext], Any], in_loop: bool
) -> None:
    result = await run_workflow(one_role(function_adapter(tests, fn)), "go")

    assert result.value.failures[0] == "go"
    assert (result.value.failures[1] == LOOP) is in_loop


@dataclass
class Work:
    """A function that counts its calls and is cut off, or raises, in the first of them."""

    hangs: int = 0
    raises: int = 0
    begun: anyio.Event = field(default_factory=anyio.Event)
    calls: int = 0

    async def __call__(self, ctx: ThreadContext) -> Report:
        self.calls += 1
        self.begun.set()
        if self.calls <= self.hangs:
            await anyio.sleep_forever()
        if self.calls <= self.raises:
            raise ValueError(f"call {self.calls}")
        return Report(passed=True, failures=[str(self.calls)])


async def cut_off(engine: Engine, work: Work, workflow: Workflow[str, Any]) -> ThreadId:
    """Stop the thread while it is at work; to the journal that is as if the process had died."""
    stopped: list[ThreadResult[Any]] = []

    async def stop() -> None:
        await work.begun.wait()
        (thread_id,) = await list_threads(engine.store)
        await engine.cancel(thread_id)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            stopped.append(await engine.start(workflow, "go"))
    assert stopped[0].state == "cancelled"
    return stopped[0].thread_id


async def test_one_that_was_cut_off_is_called_again_only_if_a_person_says_so(
    store: SqliteStore,
) -> None:
    engine, work = Engine(store), Work(hangs=1)
    workflow = one_role(function_adapter(tests, work))
    thread_id = await cut_off(engine, work, workflow)

    waits = await engine.resume(workflow, thread_id)
    assert (waits.state, waits.cause, work.calls) == ("suspended", "question", 1)
    assert "Work of the role 'tests' was cut off" in waits.summary
    await engine.answer(thread_id, None, Answer(approved=True))
    done = await engine.resume(workflow, thread_id)

    assert done.value == Report(passed=True, failures=["2"])
    assert (await engine.replay(workflow, thread_id)).steps == 1
    assert work.calls == 2


async def test_a_person_s_no_fails_the_turn_for_good(store: SqliteStore) -> None:
    engine, work = Engine(store), Work(hangs=1)
    workflow = one_role(function_adapter(tests, work))
    thread_id = await cut_off(engine, work, workflow)
    await engine.resume(workflow, thread_id)
    await engine.answer(thread_id, None, Answer(approved=False, text="it was sent"))

    for _ in range(2):
        failed = await engine.resume(workflow, thread_id)
        assert isinstance(failed.error, OutcomeUnknown)
        assert "not run again: it was sent" in failed.summary
    assert work.calls == 1
    assert (await engine.resume(workflow, thread_id, fresh=True)).state == "completed"


@pytest.mark.parametrize("effect", [Effect.READ, Effect.REPEATABLE])
async def test_one_that_may_be_called_twice_simply_is(store: SqliteStore, effect: Effect) -> None:
    engine, work = Engine(store), Work(hangs=1)
    workflow = one_role(function_adapter(tests, work, effect=effect))
    thread_id = await cut_off(engine, work, workflow)

    assert (await engine.resume(workflow, thread_id)).value.failures == ["2"]


@pytest.mark.parametrize("effect", list(Effect))
async def test_what_it_raises_fails_the_turn_at_its_line_and_a_resume_calls_it_again(
    store: SqliteStore, effect: Effect
) -> None:
    engine, work = Engine(store), Work(raises=2)
    workflow = one_role(function_adapter(tests, work, effect=effect))

    failed = await engine.start(workflow, "go")
    assert (failed.state, failed.summary) == ("failed", "call 1")
    assert isinstance(failed.error, ValueError)
    assert "test_function.py" in failed.origin
    assert failed.origin.endswith("in __call__")
    again = await engine.resume(workflow, failed.thread_id)
    assert again.summary == "call 2"
    done = await engine.resume(workflow, failed.thread_id)

    assert done.value.failures == ["3"]
    replay = await engine.replay(workflow, failed.thread_id)
    assert (replay.steps, work.calls) == (1, 3)


async def test_a_value_of_another_type_fails_the_turn() -> None:
    def wrong(ctx: ThreadContext) -> Any:
        return {"passed": 1}

    result = await run_workflow(one_role(function_adapter(tests, wrong)), "go")

    assert isinstance(result.error, RoleValueError)
    assert "wrong of the role 'tests' returned a value of type dict" in result.summary


async def test_sys_exit_fails_the_turn() -> None:
    def leave(ctx: ThreadContext) -> Report:
        raise SystemExit(3)

    for effect in Effect:
        failed = await run_workflow(one_role(function_adapter(tests, leave, effect=effect)), "go")
        assert isinstance(failed.error, RoleValueError)
        assert "sys.exit(3)" in failed.summary


@pytest.mark.parametrize("effect", list(Effect))
async def test_a_value_that_is_recorded_is_not_made_again(
    store: SqliteStore, effect: Effect
) -> None:
    engine, work = Engine(store), Work()
    adapter = function_adapter(tests, work, effect=effect)

    def failing(prompt: str, schema: Any) -> Any:
        turn: Any = adapter(prompt, schema)

        async def role(ctx: ThreadContext) -> Any:
            await turn(ctx)
            raise ValueError("between the record and the step")

        return role

    definition = WorkflowDefinition(table={START: tests, tests: END})
    first = create_workflow(definition, AdapterBinding(failing))
    failed = await engine.start(first, "go")
    done = await engine.resume(
        create_workflow(definition, AdapterBinding(adapter)), failed.thread_id
    )

    assert (failed.state, done.state, work.calls) == ("failed", "completed", 1)


async def test_a_cancelled_thread_waits_for_a_function_that_changes_something_and_keeps_its_value(
    store: SqliteStore,
) -> None:
    engine, go, begun, calls = Engine(store), threading.Event(), threading.Event(), list[int]()

    def slow(ctx: ThreadContext) -> Report:
        calls.append(1)
        begun.set()
        assert go.wait(10)
        return Report(passed=True)

    workflow = one_role(function_adapter(tests, slow))
    results: list[ThreadResult[Any]] = []
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:

            async def run() -> None:
                results.append(await engine.start(workflow, "go"))

            tasks.start_soon(run)
            await anyio.to_thread.run_sync(begun.wait)
            (thread_id,) = await list_threads(store)
            tasks.start_soon(engine.cancel, thread_id)
            await anyio.wait_all_tasks_blocked()
            go.set()

    assert results[0].state == "cancelled"
    done = await engine.resume(workflow, results[0].thread_id)
    assert (done.state, len(calls)) == ("completed", 1)


def child_of(calls: list[str]) -> Workflow[Any, Any]:
    async def look(ctx: ThreadContext) -> int:
        calls.append(ctx.start.prompt)
        if ctx.start.prompt == "ask":
            return int((await ctx.journal.ask("q", Question(text="Sure?"))).approved)
        return 1

    return in_turn(look)


async def test_a_function_made_of_children_goes_on_with_those_that_it_has(
    store: SqliteStore,
) -> None:
    role = RoleDefinition(name="sum", schema=int)
    calls: list[str] = []
    child = child_of(calls)

    async def add(ctx: ThreadContext) -> int:
        async def three() -> int:
            calls.append("three")
            return 3

        own = await ctx.journal.run("three", three, type=int, effect=Effect.UNSAFE)
        tasks = [
            ChildTask(workflow=child, input=each, name=each, key=each) for each in ("a", "ask")
        ]
        return own + sum(done.read(int) for done in await run_children(ctx, tasks))

    workflow = one_role(function_adapter(role, add, effect=Effect.READ))
    engine = Engine(store)
    waits = await engine.start(workflow, "go")
    assert (waits.state, waits.cause) == ("suspended", "question")
    await engine.answer(waits.waits_for[0], None, Answer(approved=True))
    done = await engine.resume(workflow, waits.thread_id)

    assert (done.state, done.value) == ("completed", 5)
    assert sorted(calls) == ["a", "ask", "ask", "three"]
    assert len((await read_thread(store, done.thread_id)).steps[0].record.child_threads) == 2
    assert (await engine.replay(workflow, done.thread_id)).steps == 1


@pytest.mark.parametrize("way", ["run", "ask"])
async def test_a_function_that_must_not_be_called_twice_may_have_no_parts(way: str) -> None:
    role = RoleDefinition(name="sum", schema=int)

    async def add(ctx: ThreadContext) -> int:
        if way == "ask":
            await ctx.journal.ask("q", Question(text="Sure?"))

        async def one() -> int:
            return 1

        return await ctx.journal.run("one", one, type=int)

    result = await run_workflow(one_role(function_adapter(role, add)), "go")

    assert isinstance(result.error, WorkflowError)
    assert "say function_adapter(…, effect=Effect.READ)" in result.summary


def test_an_adapter_of_another_role_is_refused_when_the_workflow_is_built() -> None:
    other = RoleDefinition(name="other", schema=Report)
    definition = WorkflowDefinition(table={START: tests, tests: other, other: END})

    with pytest.raises(DefinitionError) as caught:
        create_workflow(definition, AdapterBinding(function_adapter(tests, fine)))

    (fault,) = caught.value.faults
    assert fault.place == "role 'other'"
    assert "calls fine, which is for the role 'tests'" in fault.message


schemas = st.sampled_from([int, str, bool, list[int], dict[str, str], Report, int | None])


@given(data=st.data(), schema=schemas, effect=st.sampled_from(Effect))
async def test_whatever_it_gives_is_what_the_thread_has(
    data: st.DataObject, schema: Any, effect: Effect
) -> None:
    value = data.draw(st.from_type(schema))
    role = RoleDefinition[Any](name="any", schema=schema)
    adapter = function_adapter(role, lambda ctx: value, effect=effect)
    ctx = ThreadContext(
        thread_id=ThreadId("t"),
        start=StartStep(prompt="go", workspace=Path.cwd(), timestamp_ms=0),
    )

    turn: Any = adapter("", schema)
    assert await turn(ctx) == value


async def test_an_effect_of_code_may_be_performed_without_an_engine() -> None:
    async def perform() -> bytes:
        return b"7"

    for effect in Effect:
        assert await run_once(DirectJournal(), "k", perform, effect=effect, what="it") == b"7"
