"""Child threads: one child whatever happens, links, states above, forks and replays."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from workflow_cas import RefMove, SqliteStore, content, open_store
from workflow_execute import (
    Asking,
    ChildFailed,
    ChildResult,
    ChildTask,
    Engine,
    JournalMismatch,
    Limits,
    RoleValueError,
    ThreadNotResumable,
    Workflow,
    child_prompt,
    create_workflow,
    find_thread,
    list_threads,
    read_thread,
    read_tree,
    run_child,
    run_children,
    run_workflow,
    workflow_adapter,
    workflow_of_child,
)
from workflow_execute.testing import adapter_of, in_turn
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    AdapterFn,
    Answer,
    Completion,
    Condition,
    Event,
    Question,
    RoleDefinition,
    StartStep,
    ThreadContext,
    ThreadEnded,
    ThreadId,
    ThreadStarted,
    WorkflowDefinition,
    WorkflowError,
    when,
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


@dataclass
class Report:
    words: str
    count: int


def usual_end(ctx: ThreadContext) -> Completion:
    return Completion(return_code=0, summary=f"{len(ctx.steps)} steps")


def chain(
    *adapters: AdapterFn,
    schema: Any = int,
    complete: Callable[[ThreadContext], Completion] = usual_end,
) -> Workflow:
    """Roles `a`, `b` … that speak once each, by these adapters."""
    roles: list[RoleDefinition[Any]] = [
        RoleDefinition(name=name, system_prompt=f"You are {name}.", schema=schema)
        for name in "abcdef"[: len(adapters)]
    ]
    after: list[RoleDefinition[Any] | str] = [*roles[1:], END]
    definition = WorkflowDefinition(
        table={
            START: roles[0],
            **dict(zip(roles, after, strict=True)),
        },
        complete=complete,
    )
    overrides = {role.name: adapter for role, adapter in zip(roles, adapters, strict=True)}
    return create_workflow(definition, AdapterBinding(adapters[0], overrides=overrides))


def says(value: object, done: list[str] | None = None) -> AdapterFn:
    """A role that gives a value after one recorded effect."""

    async def turn(ctx: ThreadContext) -> object:
        async def perform() -> int:
            if done is not None:
                done.append(ctx.thread_id)
            return 1

        await ctx.journal.run("llm/0", perform, type=int, request=lambda: b"ask")
        return value

    return adapter_of(turn)


async def children_of(store: SqliteStore, thread_id: ThreadId) -> list[ThreadId]:
    return [each.thread.thread_id for each in (await read_tree(store, thread_id)).children]


async def test_a_role_takes_the_last_value_of_its_child_and_both_point_at_each_other(
    store: SqliteStore, tmp_path: Path
) -> None:
    child = chain(says(Report("draft", 1)), says(Report("done", 2)), schema=Report)
    parent = chain(says(Report("p", 0)), workflow_adapter("write", child), schema=Report)

    done = await Engine(store).start(parent, "Write.", workspace=tmp_path)

    assert (done.state, done.value) == ("completed", Report("done", 2))
    child_id = done.steps[1].child_thread
    assert child_id is not None
    assert await list_threads(store) == [done.thread_id, child_id]
    assert await find_thread(store, "latest") == done.thread_id
    below, above = await read_thread(store, child_id), await read_thread(store, done.thread_id)
    assert (below.status.state, below.workspace) == ("completed", tmp_path)
    assert (below.start.workflow, below.start.depth) == ("write", 1)
    assert below.start.parent_state == above.steps[0].hash
    assert below.parent == done.thread_id
    assert above.steps[1].record.child_threads == (child_id,)
    assert below.head in (await store.get(above.steps[1].hash)).refs
    assert below.prompt == (
        'Write.\n\nYou are b.\n\nThe latest step, by a:\n\n{"words":"p","count":0}'
    )
    assert (await store.verify()).ok


async def test_garbage_collection_keeps_a_child_as_long_as_the_thread_above(
    store: SqliteStore,
) -> None:
    parent = chain(workflow_adapter("child", chain(says(7))))
    done = await Engine(store).start(parent, "p")
    child_id = done.steps[0].child_thread
    head = await store.ref(f"thread/{child_id}/head")
    assert head is not None
    refs = await store.refs(f"thread/{child_id}/")
    await store.commit([], [RefMove(name, hash, None) for name, hash in refs.items()])

    await store.collect_garbage(keep_newer_than_s=0)

    assert (await store.get(head)).kind == "node"
    assert (await store.verify()).ok


async def test_a_value_that_does_not_fit_is_an_error_until_a_function_converts_it(
    store: SqliteStore,
) -> None:
    done: list[str] = []
    child = chain(says(Report("three", 3), done), schema=Report)
    wrong = await Engine(store).start(chain(workflow_adapter("count", child)), "p")

    assert isinstance(wrong.error, RoleValueError)
    assert "(count) gave a value that does not fit the schema int" in str(wrong.error)

    def count(result: ChildResult) -> object:
        assert isinstance(result.value, Report)
        return result.value.count

    right = chain(workflow_adapter("count", child, convert=count))
    again = await Engine(store).resume(right, wrong.thread_id)
    assert (again.state, again.value, len(done)) == ("completed", 3, 1)


async def test_a_return_code_of_a_child_is_an_error_unless_it_is_read(store: SqliteStore) -> None:
    def complete(ctx: ThreadContext) -> Completion:
        return Completion(return_code=7, summary="nothing found")

    child = chain(says(1), complete=complete)
    failed = await Engine(store).start(chain(workflow_adapter("find", child)), "p")

    assert failed.state == "failed"
    assert isinstance(failed.error, ChildFailed)
    assert failed.error.return_code == 7
    assert "(find) ended with return code 7: nothing found" in failed.summary
    again = await Engine(store).resume(chain(workflow_adapter("find", child)), failed.thread_id)
    assert again.summary == failed.summary

    def code(result: ChildResult) -> object:
        return result.return_code

    reading = chain(workflow_adapter("find", child, convert=code))
    assert (await Engine(store).resume(reading, failed.thread_id)).value == 7
    assert len(await list_threads(store)) == 2


async def test_a_child_without_steps_has_no_value(store: SqliteStore) -> None:
    def nothing(result: ChildResult) -> object:
        return -1 if result.value is None else 1

    role = RoleDefinition(name="a", system_prompt="", schema=int)
    always = Condition(name="always", description="", check=lambda ctx: True)
    definition = WorkflowDefinition(
        table={START: [when(always, END), role], role: END},
    )
    child = create_workflow(definition, AdapterBinding(says(1)))
    done = await Engine(store).start(chain(workflow_adapter("c", child, convert=nothing)), "p")
    assert (done.state, done.value) == ("completed", -1)

    alone = await Engine(store).start(child, "p")
    assert (alone.state, alone.value, alone.summary) == (
        "completed",
        None,
        "there was nothing to do",
    )


async def test_a_child_that_failed_is_taken_up_in_the_middle_of_its_turn(
    store: SqliteStore,
) -> None:
    done: list[str] = []
    broken = [True]

    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> int:
            done.append(ctx.thread_id)
            return 5

        value = await ctx.journal.run("llm/0", perform, type=int)
        if broken:
            raise RuntimeError("the disk is on fire")
        return value

    parent = chain(workflow_adapter("child", in_turn(turn)), says(2))
    failed = await Engine(store).start(parent, "p")

    assert (failed.state, failed.return_code) == ("failed", 1)
    assert isinstance(failed.error, ChildFailed)
    (child_id,) = await children_of(store, failed.thread_id)
    assert failed.summary == (
        f"child thread {child_id} (child) failed: RuntimeError: the disk is on fire"
    )
    broken.clear()
    again = await Engine(store).resume(parent, failed.thread_id)
    assert (again.state, [step.meta for step in again.steps]) == ("completed", [5, 2])
    assert done == [child_id]
    assert await list_threads(store) == [failed.thread_id, child_id]


async def test_a_question_at_the_bottom_suspends_all_above_and_its_answer_goes_on(
    store: SqliteStore, tmp_path: Path
) -> None:
    async def ask(ctx: ThreadContext) -> int:
        answer = await ctx.journal.ask("go", Question(text="May I?"))
        return 10 if answer.approved else 0

    bottom = in_turn(ask)
    middle = chain(workflow_adapter("bottom", bottom))
    top = chain(says(1), workflow_adapter("middle", middle))
    engine = Engine(store, locks=tmp_path / "locks")
    waiting = await engine.start(top, "p")

    bottom_id = (await list_threads(store))[-1]
    assert (waiting.state, waiting.cause) == ("suspended", "question")
    assert waiting.summary == f"child thread {bottom_id} (bottom) waits: May I?"
    assert waiting.waits_for == (bottom_id,)
    tree = await read_tree(store, waiting.thread_id)
    assert [each.thread.status.state for each in tree.walk()] == ["suspended"] * 3
    assert [each.thread.status.waits_for for each in tree.walk()] == [
        (bottom_id,), (bottom_id,), (),
    ]  # fmt: skip
    same = await engine.resume(top, waiting.thread_id)
    assert (same.summary, len(await list_threads(store))) == (waiting.summary, 3)

    assert await engine.answer(bottom_id, None, Answer(approved=True)) == 0
    done = await engine.resume(top, waiting.thread_id)
    assert (done.state, done.value) == ("completed", 10)


async def test_a_person_at_hand_is_asked_by_one_child_at_a_time(store: SqliteStore) -> None:
    at_once = 0

    async def asker(asking: Asking) -> Answer:
        nonlocal at_once
        at_once += 1
        assert at_once == 1
        await anyio.lowlevel.checkpoint()
        at_once -= 1
        return Answer(approved=True)

    async def ask(ctx: ThreadContext) -> int:
        return int((await ctx.journal.ask("go", Question(text="May I?"))).approved)

    async def turn(ctx: ThreadContext) -> int:
        task = ChildTask(workflow=in_turn(ask), input="p", name="c")
        return len(await run_children(ctx, [task] * 3))

    done = await Engine(store, asker=asker).start(in_turn(turn), "p")
    assert (done.state, done.value) == ("completed", 3)


async def test_a_child_can_be_finished_alone_and_the_thread_above_takes_its_value(
    store: SqliteStore,
) -> None:
    calls: list[str] = []

    async def turn(ctx: ThreadContext) -> int:
        calls.append(ctx.thread_id)
        if len(calls) == 1:
            raise RuntimeError
        return 3

    child = in_turn(turn)
    parent = chain(workflow_adapter("child", child))
    failed = await Engine(store).start(parent, "p")
    (child_id,) = await children_of(store, failed.thread_id)
    stored = await read_thread(store, child_id)
    found = await workflow_of_child(store, parent, stored)
    assert found is child
    assert (
        await workflow_of_child(store, parent, await read_thread(store, failed.thread_id)) is parent
    )
    with pytest.raises(ThreadNotResumable, match=r"runs 'child'.*no workflow_adapter"):
        await workflow_of_child(store, chain(workflow_adapter("other", child)), stored)

    assert (await Engine(store).resume(found, child_id)).value == 3
    done = await Engine(store).resume(parent, failed.thread_id)
    assert (done.state, done.value, calls) == ("completed", 3, [child_id] * 2)
    assert done.steps[0].child_threads == (child_id,)


async def test_replays_need_neither_the_child_nor_a_model(store: SqliteStore) -> None:
    done: list[str] = []
    child = chain(says(1, done), says(4, done))
    parent = chain(says(0, done), workflow_adapter("child", child), says(9, done))
    engine = Engine(store)
    result = await engine.start(parent, "p")
    child_id = result.steps[1].child_thread
    assert child_id is not None
    before = [len(done), len(await list_threads(store)), await store.refs()]

    replay = await engine.replay(parent, result.thread_id)
    assert (replay.steps, replay.requests) == (3, 2)
    replay = await engine.replay(child, child_id)
    assert (replay.steps, replay.requests) == (2, 2)
    assert [len(done), len(await list_threads(store)), await store.refs()] == before


async def test_a_replay_stops_where_an_unfinished_child_stands(store: SqliteStore) -> None:
    async def fail(ctx: ThreadContext) -> int:
        raise RuntimeError

    parent = chain(says(1), workflow_adapter("child", in_turn(fail)))
    failed = await Engine(store).start(parent, "p")
    replay = await Engine(store).replay(parent, failed.thread_id)
    assert (replay.steps, replay.completion) == (1, None)


async def test_a_fork_after_a_child_shares_it_and_one_before_starts_its_own(
    store: SqliteStore,
) -> None:
    done: list[str] = []
    parent = chain(says(0), workflow_adapter("child", chain(says(4, done))), says(9))
    engine = Engine(store)
    first = await engine.start(parent, "p")
    child_id = first.steps[1].child_thread

    after = await engine.resume(parent, await engine.fork(first.thread_id, at_step=2))
    assert (after.state, after.steps[1].child_thread, len(done)) == ("completed", child_id, 1)
    before = await engine.resume(parent, await engine.fork(first.thread_id, at_step=1))
    other = before.steps[1].child_thread
    assert before.state == "completed"
    assert done == [child_id, other]
    assert child_id != other


async def test_the_fork_of_a_child_stands_for_itself(store: SqliteStore) -> None:
    child = chain(says(1), says(4))
    parent = chain(workflow_adapter("child", child))
    engine = Engine(store)
    done = await engine.start(parent, "p")
    child_id = done.steps[0].child_thread
    assert child_id is not None

    fork_id = await engine.fork(child_id, at_step=1)
    fork = await read_thread(store, fork_id)
    assert (fork.parent, fork.origin) == (None, child_id)
    assert await workflow_of_child(store, parent, fork) is child
    assert (await engine.resume(child, fork_id)).value == 4
    assert await children_of(store, done.thread_id) == [child_id]


async def test_a_turn_that_is_begun_anew_gets_a_new_child_and_the_old_one_is_cancelled(
    store: SqliteStore,
) -> None:
    async def ask(ctx: ThreadContext) -> int:
        answer = await ctx.journal.ask("go", Question(text="May I?"))
        return int(answer.approved)

    child = in_turn(ask)
    parent = chain(workflow_adapter("child", child))
    engine = Engine(store)
    waiting = await engine.start(parent, "p")
    (old,) = waiting.waits_for
    anew = await engine.resume(parent, waiting.thread_id, fresh=True)
    (new,) = anew.waits_for
    assert old != new
    assert (await read_thread(store, old)).status.state == "cancelled"

    await engine.answer(new, None, Answer(approved=True))
    done = await engine.resume(parent, waiting.thread_id)
    assert done.value == 1
    assert (done.steps[0].child_threads, done.steps[0].child_thread) == ((old, new), new)


async def test_a_child_goes_on_with_the_bundle_that_the_thread_above_goes_on_with(
    store: SqliteStore,
) -> None:
    async def fail(ctx: ThreadContext) -> int:
        raise RuntimeError

    old, new = content(b"old"), content(b"new")
    await store.commit([old, new])
    engine = Engine(store)
    child = chain(says(1), adapter_of(fail))
    failed = await engine.start(chain(workflow_adapter("c", child)), "p", bundle=old.hash)
    (child_id,) = await children_of(store, failed.thread_id)
    assert (await read_thread(store, child_id)).start.bundle == old.hash

    mended = chain(workflow_adapter("c", chain(says(1), says(6))))
    done = await engine.resume(mended, failed.thread_id, bundle=new.hash)
    assert (done.value, await children_of(store, failed.thread_id)) == (6, [child_id])
    stored = await read_thread(store, child_id)
    assert (stored.start.bundle, stored.own_from, len(stored.steps)) == (new.hash, 1, 2)
    assert stored.parent == failed.thread_id


async def test_a_child_goes_on_in_the_folder_that_the_thread_above_goes_on_in(
    store: SqliteStore, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    folders: list[Path] = []

    async def turn(ctx: ThreadContext) -> int:
        folders.append(ctx.start.workspace)
        if len(folders) == 1:
            raise RuntimeError
        return 1

    parent = chain(workflow_adapter("c", in_turn(turn)))
    failed = await Engine(store).start(parent, "p", workspace=first)
    done = await Engine(store).resume(parent, failed.thread_id, workspace=second)
    assert (done.state, folders) == ("completed", [first, second])
    (child_id,) = await children_of(store, failed.thread_id)
    assert (await read_thread(store, child_id)).workspace == second


async def test_another_prompt_for_the_same_child_is_noticed(store: SqliteStore) -> None:
    prompts = iter(["one", "two"])

    async def fail(ctx: ThreadContext) -> int:
        raise RuntimeError

    parent = chain(workflow_adapter("c", in_turn(fail), input=lambda role, ctx: next(prompts)))
    failed = await Engine(store).start(parent, "p")
    with pytest.raises(JournalMismatch, match="fresh"):
        await Engine(store).resume(parent, failed.thread_id)
    assert (await read_thread(store, failed.thread_id)).status.error == "ChildFailed"


async def test_a_workflow_that_calls_itself_ends_at_the_limit_of_depth(store: SqliteStore) -> None:
    def itself() -> Workflow:
        return endless

    endless = chain(workflow_adapter("again", itself))
    stopped = await Engine(store, limits=Limits(max_depth=3)).start(endless, "p", name="first")

    assert (stopped.state, stopped.cause) == ("suspended", "limit")
    assert stopped.summary.endswith(
        "the limit of 3 levels of child threads is reached: first → again → again → again → again"
    )
    assert len(await list_threads(store)) == 4
    more = await Engine(store, limits=Limits(max_depth=5)).resume(endless, stopped.thread_id)
    assert (more.state, len(await list_threads(store))) == ("suspended", 6)


async def test_the_default_limit_of_depth_is_eight(store: SqliteStore) -> None:
    async def down(ctx: ThreadContext) -> int:
        if ctx.depth == 8:
            return 8
        task = ChildTask(workflow=in_turn(down), input="p", name="down")
        return (await run_child(ctx, task)).read(int)

    assert (await Engine(store).start(in_turn(down), "p")).value == 8
    assert Limits().max_depth == 8


async def test_children_of_one_turn_all_go_as_far_as_they_can(store: SqliteStore) -> None:
    done: list[str] = []
    broken = [True]

    async def work(ctx: ThreadContext) -> int:
        if ctx.start.prompt == "fail" and broken:
            raise RuntimeError("no")
        if ctx.start.prompt == "ask":
            await ctx.journal.ask("go", Question(text="May I?"))

        async def perform() -> int:
            done.append(ctx.start.prompt)
            return len(ctx.start.prompt)

        return await ctx.journal.run("llm/0", perform, type=int)

    async def turn(ctx: ThreadContext) -> int:
        tasks = [
            ChildTask(workflow=in_turn(work), input=prompt, name=prompt)
            for prompt in ("fail", "ask", "one", "two", "ask")
        ]
        return sum(result.read(int) for result in await run_children(ctx, tasks, at_once=2))

    parent, engine = in_turn(turn), Engine(store)
    failed = await engine.start(parent, "p")
    assert (failed.state, sorted(done)) == ("failed", ["one", "two"])
    assert isinstance(failed.error, ChildFailed)
    assert len([note for note in failed.error.__notes__ if "waits: May I?" in note]) == 2

    broken.clear()
    waiting = await engine.resume(parent, failed.thread_id)
    assert (waiting.state, waiting.cause, sorted(done)) == (
        "suspended", "question", ["fail", "one", "two"],
    )  # fmt: skip
    assert len(waiting.waits_for) == 2
    for thread_id in waiting.waits_for:
        assert thread_id in waiting.summary
        await engine.answer(thread_id, None, Answer(approved=True))
    finished = await engine.resume(parent, failed.thread_id)
    assert (finished.value, sorted(done)) == (16, ["ask", "ask", "fail", "one", "two"])
    assert len(finished.steps[0].child_threads) == 5
    assert len(await list_threads(store)) == 6


async def test_so_many_children_run_at_once_and_no_more(store: SqliteStore) -> None:
    running = most = 0

    async def work(ctx: ThreadContext) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await anyio.sleep(0.05)
        running -= 1
        return 1

    async def turn(ctx: ThreadContext) -> int:
        task = ChildTask(workflow=in_turn(work), input="p", name="c")
        return len(await run_children(ctx, [task] * 7, at_once=3))

    assert (await Engine(store).start(in_turn(turn), "p")).value == 7
    assert most == 3


async def test_two_children_of_one_key_are_refused(store: SqliteStore) -> None:
    async def turn(ctx: ThreadContext) -> int:
        task = ChildTask(workflow=in_turn(turn), input="p", name="c", key="k")
        return len(await run_children(ctx, [task, task]))

    failed = await Engine(store).start(in_turn(turn), "p")
    assert "two children have the same key; give each its own: ['k', 'k']" in failed.summary


async def test_a_role_may_go_on_without_a_child_that_failed(store: SqliteStore) -> None:
    async def fail(ctx: ThreadContext) -> int:
        raise RuntimeError("no")

    async def turn(ctx: ThreadContext) -> int:
        try:
            return (
                await run_child(ctx, ChildTask(workflow=in_turn(fail), input="p", name="c"))
            ).read(int)
        except ChildFailed:
            return -1

    done = await Engine(store).start(in_turn(turn), "p")
    assert (done.state, done.value) == ("completed", -1)
    assert done.steps[0].child_thread is not None


async def test_without_an_engine_it_says_what_is_missing() -> None:
    ctx = ThreadContext(
        thread_id=ThreadId("T"), start=StartStep(prompt="p", workspace=Path(), timestamp_ms=0)
    )
    with pytest.raises(WorkflowError, match="'c' needs an engine"):
        await run_child(ctx, ChildTask(workflow=chain(says(1)), input="p", name="c"))
    parent = chain(workflow_adapter("c", chain(says(1))))
    assert (await run_workflow(parent, "p")).value == 1
    assert child_prompt("", ctx) == "p"


async def test_observers_tell_a_child_by_its_depth(store: SqliteStore) -> None:
    heard: list[Event] = []
    parent = chain(workflow_adapter("child", chain(says(1))))
    await Engine(store, observer=heard.append).start(parent, "p")

    assert [
        (type(event), len(event.parents))
        for event in heard
        if isinstance(event, ThreadStarted | ThreadEnded)
    ] == [(ThreadStarted, 0), (ThreadStarted, 1), (ThreadEnded, 1), (ThreadEnded, 0)]
