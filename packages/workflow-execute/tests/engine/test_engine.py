"""Threads on a real store: what is committed when, and in which state each run ends."""

import itertools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
from typing_extensions import TypeForm

from workflow_cas import SqliteStore, open_store
from workflow_execute import (
    ChildFailed,
    ChildTask,
    Engine,
    JournalMismatch,
    Limits,
    RoleValueError,
    ThreadBusy,
    ThreadNotCompleted,
    ThreadNotFound,
    ThreadNotResumable,
    Workflow,
    create_workflow,
    find_thread,
    list_threads,
    read_thread,
    read_turn,
    run_children,
    run_workflow,
)
from workflow_execute.testing import in_turn
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    AdapterFn,
    Completion,
    Condition,
    DefinitionError,
    Effect,
    Event,
    ModelReplied,
    OutcomeUnknown,
    Question,
    Replied,
    RoleDefinition,
    RoleFinished,
    RoleFn,
    RoleStarted,
    StartStep,
    ThreadContext,
    ThreadEnded,
    ThreadId,
    ThreadStarted,
    Usage,
    WorkflowDefinition,
    when,
)


@dataclass
class Count:
    n: int


COUNTER = RoleDefinition(name="counter", system_prompt="Count.", schema=Count)
CHECKER = RoleDefinition(name="checker", system_prompt="Check.", schema=bool)
DONE = Condition(
    name="done", description="the checker says so", check=lambda ctx: ctx.meta(CHECKER) is True
)


def definition(**changes: Any) -> WorkflowDefinition:
    """Counter and checker take turns until the checker is content."""
    return WorkflowDefinition(
        description="count until it is enough",
        table={
            START: COUNTER,
            COUNTER: CHECKER,
            CHECKER: [when(DONE, END), COUNTER],
        },
        **changes,
    )


Turn = Callable[[ThreadContext], Any]


def workflow(counter: Turn, checker: Turn | None = None, **changes: Any) -> Workflow:
    """Roles that do what these functions, plain or async, say."""

    def bind(turn: Turn) -> Any:
        def adapter(prompt: str, schema: TypeForm[Any]) -> RoleFn[Any]:
            async def role(ctx: ThreadContext) -> Any:
                value = turn(ctx)
                return await cast("Awaitable[Any]", value) if hasattr(value, "send") else value

            return role

        return adapter

    overrides = {"checker": bind(checker or count_is(2))}
    return create_workflow(
        definition(**changes), AdapterBinding(bind(counter), overrides=overrides)
    )


def counting() -> Turn:
    numbers = itertools.count(1)
    return lambda ctx: Count(next(numbers))


def count_is(target: int) -> Turn:
    return lambda ctx: ctx.meta(COUNTER) == Count(target)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


async def test_a_thread_runs_to_its_end_and_is_all_in_the_store(
    store: SqliteStore, tmp_path: Path
) -> None:
    result = await Engine(store).start(
        workflow(counting()), "Count to two.", workspace=tmp_path, name="count"
    )

    assert (result.state, result.return_code) == ("completed", 0)
    assert result.value is True
    assert [(s.role, s.meta) for s in result.steps] == [
        ("counter", Count(1)), ("checker", False), ("counter", Count(2)), ("checker", True),
    ]  # fmt: skip
    thread = await read_thread(store, result.thread_id)
    assert [step.value for step in thread.steps] == [b'{"n":1}', b"false", b'{"n":2}', b"true"]
    assert thread.prompt == "Count to two."
    assert (thread.start.workflow, thread.workspace) == ("count", tmp_path)
    assert (thread.status.state, thread.status.summary) == ("completed", "checker: true")
    assert thread.turn is None
    assert (await store.verify()).ok


async def test_each_step_is_on_disk_before_the_next_role_starts(
    store: SqliteStore, tmp_path: Path
) -> None:
    seen: list[int] = []

    async def counter(ctx: ThreadContext) -> Count:
        async with open_store(tmp_path / "store.sqlite3", read_only=True) as other:
            seen.append(len((await read_thread(other, ctx.thread_id)).steps))
        return Count(len(ctx.steps))

    await Engine(store).start(workflow(counter), "p")

    assert seen == [0, 2]


async def test_observers_hear_what_happens_and_their_faults_stop_nothing(
    store: SqliteStore,
) -> None:
    heard: list[Event] = []

    def observer(event: Event) -> None:
        heard.append(event)
        raise RuntimeError("bad observer")

    result = await Engine(store, observer=observer).start(workflow(counting(), count_is(1)), "p")

    assert [type(event) for event in heard] == [
        ThreadStarted, RoleStarted, RoleFinished, RoleStarted, RoleFinished, ThreadEnded,
    ]  # fmt: skip
    assert isinstance(heard[-1], ThreadEnded)
    assert (heard[-1].thread, heard[-1].state) == (result.thread_id, "completed")


async def test_usage_and_the_agents_own_words_become_part_of_the_step(store: SqliteStore) -> None:
    async def counter(ctx: ThreadContext) -> Count:
        usage = Usage(input_tokens=3, calls=1)
        await ctx.journal.note(ModelReplied(round=0, usage=usage))
        await ctx.journal.note(ModelReplied(round=1, usage=usage))
        await ctx.journal.note(Replied(content="I counted to one."))
        return Count(1)

    result = await Engine(store).start(workflow(counter, count_is(1)), "p")

    first = result.steps[0]
    assert first.usage == Usage(input_tokens=6, calls=2)
    assert first.content == "I counted to one."
    stored = (await read_thread(store, result.thread_id)).steps[0]
    assert (stored.content, stored.record.usage) == (first.content, first.usage)
    assert first.content_hash == stored.content_hash


async def test_a_roles_exception_leaves_the_thread_failed_with_type_and_message(
    store: SqliteStore,
) -> None:
    def fail(ctx: ThreadContext) -> Count:
        raise RuntimeError("role exploded")

    result = await Engine(store).start(workflow(fail), "p")

    assert (result.state, result.return_code) == ("failed", 1)
    assert isinstance(result.error, RuntimeError)
    status = (await read_thread(store, result.thread_id)).status
    assert (status.state, status.error, status.summary) == (
        "failed", "RuntimeError", "role exploded",
    )  # fmt: skip
    with pytest.raises(ThreadNotCompleted, match="role exploded") as error:
        _ = result.value
    assert error.value.__cause__ is result.error


async def test_a_role_that_wants_to_end_the_process_has_failed(store: SqliteStore) -> None:
    async def leave(ctx: ThreadContext) -> int:
        sys.exit(0)

    async def both(ctx: ThreadContext) -> int:
        tasks = [ChildTask(workflow=in_turn(leave), input="p", name=name) for name in "ab"]
        return len(await run_children(ctx, tasks))

    for role, error in ((leave, RoleValueError), (both, ChildFailed)):
        result = await Engine(store).start(in_turn(role), "p")
        assert (result.state, type(result.error)) == ("failed", error)
        assert "role 'role-0' called sys.exit(0)" in result.summary


async def test_a_value_of_the_wrong_type_is_the_adapters_fault(store: SqliteStore) -> None:
    for wrong in ("many", None, Count("x"), {1, 2}):  # type: ignore[arg-type]
        result = await Engine(store).start(workflow(lambda ctx, value=wrong: value), "p")
        assert result.state == "failed"
        assert isinstance(result.error, RoleValueError)


async def test_a_workflow_may_end_with_a_code_of_its_own(store: SqliteStore) -> None:
    ended = Completion(return_code=7, summary="nothing to count")

    def complete(ctx: ThreadContext) -> Completion:
        return ended

    result = await Engine(store).start(workflow(counting(), count_is(1), complete=complete), "p")

    assert (result.state, result.return_code, result.summary) == (
        "completed", 7, "nothing to count",
    )  # fmt: skip


async def test_a_question_and_a_limit_suspend_the_thread(store: SqliteStore) -> None:
    async def ask(ctx: ThreadContext) -> Count:
        await ctx.journal.ask("ask/0", Question(text="May I count?"))
        return Count(1)

    asked = await Engine(store).start(workflow(ask), "p")
    assert (asked.state, asked.summary) == ("suspended", "May I count?")

    endless = workflow(counting(), count_is(-1))
    limited = await Engine(store, limits=Limits(max_steps=3)).start(endless, "p")
    assert (limited.state, limited.summary) == ("suspended", "the limit of 3 steps is reached")
    assert len(limited.steps) == 3

    raised = await Engine(store, limits=Limits(max_steps=5)).resume(endless, limited.thread_id)
    assert len(raised.steps) == 5


async def test_cancelling_is_recorded_and_raised_on(store: SqliteStore) -> None:
    started = anyio.Event()

    async def counter(ctx: ThreadContext) -> Count:
        started.set()
        await anyio.sleep_forever()
        return Count(0)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Engine(store).start, workflow(counter), "p")
            await started.wait()
            tasks.cancel_scope.cancel()

    (thread_id,) = await list_threads(store)
    status = (await read_thread(store, thread_id)).status
    assert (status.state, status.return_code) == ("cancelled", 130)


async def test_it_is_cancelled_between_roles_that_never_wait(store: SqliteStore) -> None:
    async def first(ctx: ThreadContext) -> int:
        scope.cancel()
        return 1

    async def second(ctx: ThreadContext) -> int:
        return 2

    with anyio.CancelScope() as scope:
        await Engine(store).start(in_turn(first, second), "p")

    (thread_id,) = await list_threads(store)
    stored = await read_thread(store, thread_id)
    assert (stored.status.state, len(stored.steps)) == ("cancelled", 1)


async def effect(
    ctx: ThreadContext, key: str, ran: list[str], *, kind: Effect = Effect.READ
) -> int:
    async def perform() -> int:
        ran.append(key)
        return len(ran)

    return await ctx.journal.run(key, perform, type=int, effect=kind)


async def test_a_failed_turn_goes_on_where_its_journal_ends(store: SqliteStore) -> None:
    ran: list[str] = []

    async def counter(ctx: ThreadContext) -> Count:
        await effect(ctx, "llm/0", ran)
        await effect(ctx, "tool/0/0", ran, kind=Effect.UNSAFE)
        if ran.count("boom") == 0:
            ran.append("boom")
            raise RuntimeError("boom")
        return Count(await effect(ctx, "llm/1", ran))

    made = workflow(counter, count_is(4))
    first = await Engine(store).start(made, "p")
    assert first.state == "failed"
    second = await Engine(store).resume(made, first.thread_id)

    assert ran == ["llm/0", "tool/0/0", "boom", "llm/1"]
    assert (second.state, second.steps[0].meta) == ("completed", Count(4))
    step = (await read_thread(store, first.thread_id)).steps[0]
    assert [entry.record.key for entry in await read_turn(store, step.turn)] == [
        "llm/0", "tool/0/0", "llm/1",
    ]  # fmt: skip


async def test_effects_without_a_recorded_result_are_repeated_only_if_that_is_safe(
    store: SqliteStore,
) -> None:
    ran: list[str] = []
    told: list[str] = []

    async def counter(ctx: ThreadContext) -> Count:
        for kind in Effect:

            async def die(kind: Effect = kind) -> int:
                ran.append(kind)
                if ran.count(kind) == 1:
                    raise RuntimeError("died in the middle")
                return 1

            try:
                await ctx.journal.run(kind, die, type=int, effect=kind)
            except OutcomeUnknown as error:
                told.append(error.key)
        return Count(1)

    made = workflow(counter, count_is(1))
    result = await Engine(store).start(made, "p")
    for _ in range(5):
        if result.state == "completed":
            break
        result = await Engine(store).resume(made, result.thread_id)

    assert result.state == "completed"
    assert (ran.count("read"), ran.count("repeatable"), ran.count("unsafe")) == (2, 2, 1)
    assert told == ["unsafe"]


async def test_bytes_are_recorded_as_they_are_and_structures_by_their_type(
    store: SqliteStore,
) -> None:
    got: list[object] = []
    fail = [True]

    async def counter(ctx: ThreadContext) -> Count:
        async def raw() -> bytes:
            return b"\x00\xff"

        async def pair() -> tuple[int, str]:
            return (1, "a")

        got.append(await ctx.journal.run("raw", raw, type=bytes))
        got.append(await ctx.journal.run("pair", pair, type=tuple[int, str]))
        if fail.pop():
            raise RuntimeError
        return Count(1)

    made = workflow(counter, count_is(1))
    fail.insert(0, False)
    result = await Engine(store).start(made, "p")
    await Engine(store).resume(made, result.thread_id)

    assert got == [b"\x00\xff", (1, "a")] * 2


async def test_a_replay_with_another_input_is_noticed(store: SqliteStore) -> None:
    digests = iter(["one", "two"])

    async def counter(ctx: ThreadContext) -> Count:
        async def perform() -> int:
            return 1

        await ctx.journal.run("llm/0", perform, type=int, digest=next(digests))
        raise RuntimeError

    first = await Engine(store).start(workflow(counter), "p")
    before = await read_thread(store, first.thread_id)

    with pytest.raises(JournalMismatch) as raised:
        await Engine(store).resume(workflow(counter), first.thread_id)

    assert raised.value.key == "llm/0"
    assert await read_thread(store, first.thread_id) == before


async def test_what_can_not_be_resumed_says_why(store: SqliteStore) -> None:
    done = await Engine(store).start(workflow(counting(), count_is(1)), "p")
    with pytest.raises(ThreadNotResumable, match="is completed"):
        await Engine(store).resume(workflow(counting()), done.thread_id)
    with pytest.raises(ThreadNotFound, match="there is no thread 'X'"):
        await Engine(store).resume(workflow(counting()), ThreadId("X"))

    stopped = await Engine(store, limits=Limits(max_steps=1)).start(workflow(counting()), "p")
    other = RoleDefinition(name="other", system_prompt="", schema=int)
    elsewhere = create_workflow(
        WorkflowDefinition(
            table={START: other, other: END},
        ),
        AdapterBinding(workflow(counting()).adapters["counter"]),
    )
    with pytest.raises(ThreadNotResumable, match="does not fit this workflow"):
        await Engine(store).resume(elsewhere, stopped.thread_id)


async def test_a_thread_goes_on_in_another_folder_when_its_own_is_gone(
    store: SqliteStore, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    folders: list[Path] = []

    def counter(ctx: ThreadContext) -> Count:
        folders.append(ctx.start.workspace)
        return Count(len(folders))

    limited = Engine(store, limits=Limits(max_steps=2))
    stopped = await limited.start(workflow(counter), "p", workspace=first)
    first.rmdir()
    for workspace in (None, second):
        with pytest.raises(NotADirectoryError, match="is not a folder; create it"):
            await Engine(store).resume(workflow(counter), stopped.thread_id, workspace=workspace)
    second.mkdir()
    done = await Engine(store).resume(workflow(counter), stopped.thread_id, workspace=second)

    assert (done.state, folders) == ("completed", [first, second])
    assert (await read_thread(store, done.thread_id)).workspace == second
    assert (await Engine(store).replay(workflow(lambda ctx: Count(2)), done.thread_id)).steps == 2


async def test_one_thread_has_one_owner(store: SqliteStore, tmp_path: Path) -> None:
    engine = Engine(store, locks=tmp_path / "locks")
    started, go_on = anyio.Event(), anyio.Event()

    async def counter(ctx: ThreadContext) -> Count:
        started.set()
        await go_on.wait()
        return Count(1)

    made = workflow(counter, count_is(1))
    thread_id = ThreadId("")
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.start, made, "p")
            await started.wait()
            (thread_id,) = await list_threads(store)
            assert await engine.is_running(thread_id)
            with pytest.raises(ThreadBusy, match=thread_id):
                await Engine(store, locks=tmp_path / "locks").resume(made, thread_id)
            go_on.set()

    assert not await engine.is_running(thread_id)
    assert not await Engine(store).is_running(thread_id)


async def test_to_look_whether_a_thread_runs_writes_nothing(
    store: SqliteStore, tmp_path: Path
) -> None:
    """It may lie on a read-only medium, as a thread that was interrupted."""
    locks = tmp_path / "locks"
    assert not await Engine(store, locks=locks).is_running(ThreadId("01NONE"))
    assert not locks.exists()


async def test_many_threads_at_once_lose_nothing(store: SqliteStore) -> None:
    results: list[object] = []

    async def one(number: int) -> None:
        made = workflow(lambda ctx: Count(number), count_is(number))
        results.append((await Engine(store).start(made, str(number))).steps[0].meta)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(one, number)

    assert sorted(count.n for count in cast("list[Count]", results)) == list(range(50))
    assert len(await list_threads(store)) == 50
    assert (await store.verify()).ok


async def test_threads_are_found_by_the_beginning_of_their_id(store: SqliteStore) -> None:
    with pytest.raises(ThreadNotFound):
        await find_thread(store, "latest")
    first, second = [
        (await Engine(store).start(workflow(counting(), count_is(1)), "p")).thread_id
        for _ in range(2)
    ]
    differ = next(i for i in range(26) if first[i] != second[i]) + 1

    assert await find_thread(store, "latest") == max(first, second)
    assert await find_thread(store, first) == first
    assert await find_thread(store, second[:differ].lower()) == second
    with pytest.raises(ThreadNotFound, match="one of"):
        await find_thread(store, first[:5])
    with pytest.raises(ThreadNotFound, match=f"did you mean {first}"):
        await find_thread(store, f"{first[:-2]}~~")


async def test_run_workflow_needs_no_store() -> None:
    result = await run_workflow(workflow(counting(), count_is(1)), "p")

    assert result.value is True


async def test_the_workspace_must_be_a_folder(store: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="is not a folder"):
        await Engine(store).start(workflow(counting()), "p", workspace=tmp_path / "none")
    assert await list_threads(store) == []


async def test_one_step_can_be_taken_without_an_engine() -> None:
    start = StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=0)
    step = await workflow(counting()).advance(ThreadContext(thread_id=ThreadId("T"), start=start))

    assert not isinstance(step, Completion)
    assert (step.role, step.meta, step.content) == ("counter", Count(1), '{"n":1}')


def test_all_faults_of_a_binding_are_told_at_once() -> None:
    adapter = workflow(counting()).adapters["counter"]
    twin = RoleDefinition(name="checker", system_prompt="", schema=bool)
    overrides: dict[RoleDefinition[Any] | str, AdapterFn] = {
        "cuonter": adapter,
        twin: adapter,
        "checker": adapter,
    }

    with pytest.raises(DefinitionError) as error:
        create_workflow(definition(), AdapterBinding(None, overrides))

    assert [str(fault) for fault in error.value.faults] == [
        "overrides['cuonter']: no role has this name; the roles are counter, checker",
        "overrides['checker']: the workflow has another role of this name; use that definition",
        "overrides['checker']: this role has two adapters here; leave one",
        "role 'counter': it has no adapter; give AdapterBinding one for all roles, or override "
        "this one",
    ]


def test_overrides_are_by_role_or_by_name_and_may_be_all_there_is() -> None:
    adapter = workflow(counting()).adapters["counter"]

    made = create_workflow(
        definition(), AdapterBinding(overrides={COUNTER: adapter, "checker": adapter})
    )

    assert made.adapters == {"counter": adapter, "checker": adapter}
