"""A role that fails leads on to another: what is committed, and that everything reads it alike."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from workflow_cas import MemoryStore, open_store
from workflow_execute import (
    ChildFailed,
    ChildGaveUp,
    ChildTask,
    Engine,
    JournalMismatch,
    LimitReached,
    Limits,
    Workflow,
    check_summaries,
    create_workflow,
    list_threads,
    read_summaries,
    read_thread,
    read_tree,
    run_child,
    run_children,
    workflow_adapter,
)
from workflow_execute.testing import adapter_of, in_turn
from workflow_execute.transcript import build_transcript, read_records
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Event,
    Failure,
    Metered,
    ModelReplied,
    OutcomeUnknown,
    Question,
    RoleDefinition,
    RoleFailed,
    RoleFinished,
    RoleStarted,
    RoleStopped,
    RoutingError,
    Suspended,
    ThreadContext,
    Usage,
    WorkflowDefinition,
)

WRITER = RoleDefinition(name="writer", system_prompt="Write.", schema=str)
HELPER = RoleDefinition(name="helper", system_prompt="Help.", schema=str)
CRITIC = RoleDefinition(name="critic", system_prompt="Judge.", schema=str)
METERED = Metered[str](
    model="m",
    at_most=lambda: Usage(output_tokens=50),
    used=lambda _: Usage(input_tokens=6, output_tokens=4, calls=1),
)


async def ask(ctx: ThreadContext, key: str, value: str = "ok") -> str:
    async def perform() -> str:
        return value

    words = f"{key} of {len(ctx.steps)}".encode()
    said = await ctx.journal.run(key, perform, type=str, request=lambda: words, metered=METERED)
    await ctx.journal.note(ModelReplied(key=key, round=0, usage=METERED.used(said)))
    return said


async def fail(ctx: ThreadContext) -> str:
    """Two model calls, and it can't go on."""
    await ask(ctx, "llm/0")
    await ask(ctx, "llm/1")
    raise RoleFailed("no draft")


async def speak(ctx: ThreadContext) -> str:
    failure = ctx.failure(WRITER)
    return await ask(ctx, "llm/0", "fine" if failure is None else f"after {failure.type}")


def workflow(writer: Any = fail, *, route: bool = True) -> Workflow[str, object]:
    definition = WorkflowDefinition(
        table={START: WRITER, WRITER: CRITIC, HELPER: CRITIC, CRITIC: END},
        on_failure={WRITER if route else CRITIC: HELPER},
    )
    return create_workflow(
        definition, AdapterBinding(adapter_of(speak), overrides={WRITER: adapter_of(writer)})
    )


async def test_a_failed_turn_is_a_step_without_a_value_and_the_thread_goes_on() -> None:
    store = MemoryStore()
    events: list[Event] = []
    done = await Engine(store, observer=events.append).start(workflow(), "p")

    failed, helped, _ = done.steps
    assert (done.state, done.value) == ("completed", "after RoleFailed")
    assert [step.role for step in done.steps] == ["writer", "helper", "critic"]
    assert failed.failure == Failure(type="RoleFailed", message="no draft")
    assert (failed.meta, failed.json) == (None, b"")
    assert failed.content == '{"failed":"RoleFailed","message":"no draft"}'
    assert (failed.usage.calls, helped.failure) == (2, None)
    assert done.of(WRITER) is None
    ends = [each for each in events if isinstance(each, RoleStarted | RoleStopped | RoleFinished)]
    assert [(type(each).__name__, each.role, each.step) for each in ends] == [
        ("RoleStarted", "writer", 0),
        ("RoleStopped", "writer", 0),
        ("RoleStarted", "helper", 1),
        ("RoleFinished", "helper", 1),
        ("RoleStarted", "critic", 2),
        ("RoleFinished", "critic", 2),
    ]
    stopped = ends[1]
    assert isinstance(stopped, RoleStopped)
    assert (stopped.error, stopped.message, stopped.leads_to) == (
        "RoleFailed",
        "no draft",
        "helper",
    )


async def test_what_is_stored_of_a_failure_is_what_was_seen(tmp_path: Path) -> None:
    async with open_store(tmp_path / "store.sqlite3") as store:
        done = await Engine(store, limits=Limits(max_tokens=10_000)).start(workflow(), "p")
        stored = await read_thread(store, done.thread_id)
        transcript = build_transcript(stored, await read_records(store, stored))
        tree = await read_tree(store, done.thread_id)
        summary = (await read_summaries(store))[0]

        assert await check_summaries(store) == []
        assert (await store.verify()).problems == ()
    assert [step.failure for step in stored.steps] == [done.steps[0].failure, None, None]
    turn = transcript.turns[0]
    assert (turn.state, turn.failure, turn.content) == ("failed", done.steps[0].failure, "")
    assert len(turn.attempts[0].parts) == 2
    assert summary.tokens == tree.spent.tokens == 40
    assert (summary.steps, summary.usage.calls) == (3, 4)


async def test_a_resume_a_fork_and_a_replay_take_the_same_way() -> None:
    store = MemoryStore()
    stopped = await Engine(store, limits=Limits(max_steps=1)).start(workflow(), "p")
    engine = Engine(store)
    done = await engine.resume(workflow(), stopped.thread_id)
    # Now the writer would succeed: the record says where the thread went.
    after = await engine.fork(done.thread_id, at_step=1)
    forked = await engine.resume(workflow(speak), after)
    anew = await engine.resume(workflow(speak), await engine.fork(done.thread_id, at_step=0))
    replay = await engine.replay(workflow(), done.thread_id)

    assert [step.role for step in done.steps] == ["writer", "helper", "critic"]
    assert [step.role for step in forked.steps] == ["writer", "helper", "critic"]
    assert forked.steps[0].failure == done.steps[0].failure
    assert [step.role for step in anew.steps] == ["writer", "critic"]
    assert (replay.steps, replay.effects, replay.requests) == (3, 4, 4)


async def test_a_thread_whose_workflow_has_lost_the_way_says_so() -> None:
    store = MemoryStore()
    stopped = await Engine(store, limits=Limits(max_steps=1)).start(workflow(), "p")

    lost = await Engine(store).resume(workflow(route=False), stopped.thread_id)

    assert isinstance(lost.error, RoutingError)
    assert "the workflow has no entry for 'writer' in on_failure; add it" in lost.summary


async def unrecorded(ctx: ThreadContext) -> str:
    """As a provider that is not there: the call that fails is not recorded."""

    async def perform() -> str:
        raise RoleFailed("503")

    await ask(ctx, "llm/0")
    return await ctx.journal.run("llm/1", perform, type=str, request=lambda: b"q")


async def test_a_replay_of_a_failed_call_ends_where_its_records_do() -> None:
    store = MemoryStore()
    engine = Engine(store)
    done = await engine.start(workflow(unrecorded), "p")

    replay = await engine.replay(workflow(unrecorded), done.thread_id)

    assert (replay.steps, replay.requests) == (3, 3)


@pytest.mark.parametrize(
    ("recorded", "now", "words"),
    [
        (fail, speak, "were not used|failed with RoleFailed before, and now it gave a value"),
        (speak, fail, "nothing is recorded under this key|gave a value before"),
    ],
)
async def test_a_replay_notices_that_a_turn_fails_otherwise(
    recorded: Any, now: Any, words: str
) -> None:
    store = MemoryStore()
    done = await Engine(store).start(workflow(recorded), "p")

    with pytest.raises(JournalMismatch, match=words):
        await Engine(store).replay(workflow(now), done.thread_id)


class Missing(RoleFailed):
    """A failure of the user's own."""


async def test_a_failure_of_ones_own_is_one() -> None:
    async def writer(ctx: ThreadContext) -> str:
        raise Missing("no such ticket")

    done = await Engine(MemoryStore()).start(workflow(writer), "p")

    assert done.steps[0].failure == Failure(type="Missing", message="no such ticket")


def raising(error: BaseException) -> Callable[[ThreadContext], Any]:
    async def writer(ctx: ThreadContext) -> str:
        raise error

    return writer


@pytest.mark.parametrize(
    "error",
    [
        ValueError("a bug"),
        OutcomeUnknown("k"),
        RoutingError("writer"),
        JournalMismatch("k", "another request"),
        ExceptionGroup("both", [RoleFailed("one"), ValueError("a bug")]),
    ],
)
async def test_what_is_no_failure_of_a_role_fails_the_thread(error: Exception) -> None:
    done = await Engine(MemoryStore()).start(workflow(raising(error)), "p")

    assert (done.state, done.error, done.steps) == ("failed", error, ())


@pytest.mark.parametrize(
    ("error", "cause"), [(LimitReached("max_depth", "r"), "limit"), (Suspended("r"), "question")]
)
async def test_what_waits_is_no_failure(error: Suspended, cause: str) -> None:
    done = await Engine(MemoryStore()).start(workflow(raising(error)), "p")

    assert (done.state, done.cause, done.steps) == ("suspended", cause, ())


async def test_a_failure_without_a_way_on_fails_the_thread_and_a_resume_goes_on() -> None:
    store = MemoryStore()
    failed = await Engine(store).start(workflow(route=False), "p")

    done = await Engine(store).resume(workflow(), failed.thread_id)

    assert (failed.state, failed.steps) == ("failed", ())
    assert [step.role for step in done.steps] == ["writer", "helper", "critic"]


async def test_a_secret_and_a_long_message_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "s3cr3t-of-mine")
    error = RoleFailed("the key s3cr3t-of-mine is refused " + "x" * 10_000)

    done = await Engine(MemoryStore()).start(workflow(raising(error)), "p")

    assert done.steps[0].failure is not None
    message = done.steps[0].failure.message
    assert message.startswith("the key ${SOME_API_KEY} is refused x")
    assert len(message) == 4_000


async def test_a_failure_may_lead_on_to_a_role_that_fails_too() -> None:
    definition = WorkflowDefinition(
        table={START: WRITER, WRITER: CRITIC, HELPER: CRITIC, CRITIC: END},
        on_failure={WRITER: HELPER, HELPER: CRITIC},
    )
    run = create_workflow(
        definition, AdapterBinding(adapter_of(fail), overrides={CRITIC: adapter_of(speak)})
    )

    done = await Engine(MemoryStore()).start(run, "p")

    assert [(step.role, step.failure is None) for step in done.steps] == [
        ("writer", False),
        ("helper", False),
        ("critic", True),
    ]


async def test_a_child_that_gave_up_is_a_failure_and_stays_as_it_is() -> None:
    child = in_turn(fail, schema=str)
    store = MemoryStore()
    definition = workflow().definition
    run = create_workflow(
        definition,
        AdapterBinding(adapter_of(speak), overrides={WRITER: workflow_adapter("draft", child)}),
    )

    done = await Engine(store).start(run, "p")
    replay = await Engine(store).replay(run, done.thread_id)

    failed = done.steps[0]
    assert failed.failure is not None
    assert failed.failure.type == "ChildGaveUp"
    assert "failed: RoleFailed: no draft" in failed.failure.message
    assert failed.child_thread is not None
    assert (await read_thread(store, failed.child_thread)).status.state == "failed"
    assert replay.steps == 3
    assert await Engine(store).delete(done.thread_id) == [done.thread_id, failed.child_thread]
    assert await list_threads(store) == []


async def test_a_bug_in_a_child_is_no_failure_of_the_role_even_beside_one() -> None:
    async def broken(ctx: ThreadContext) -> str:
        raise ValueError("a bug")

    async def both(ctx: ThreadContext) -> str:
        tasks = [
            ChildTask(workflow=in_turn(turn, schema=str), input="p", name="c", key=str(at))
            for at, turn in enumerate((fail, broken))
        ]
        await run_children(ctx, tasks)
        return ""

    done = await Engine(MemoryStore()).start(workflow(both), "p")

    assert done.state == "failed"
    assert isinstance(done.error, ChildFailed)
    assert not isinstance(done.error, ChildGaveUp)


async def test_a_child_that_still_waits_is_cancelled_with_the_turn_that_failed() -> None:
    async def wait(ctx: ThreadContext) -> str:
        return (await ctx.journal.ask("go", Question(text="May I?"))).text

    async def impatient(ctx: ThreadContext) -> str:
        try:
            task = ChildTask(workflow=in_turn(wait, schema=str), input="p", name="c")
            await run_child(ctx, task)
        except Suspended:
            raise RoleFailed("nobody answers") from None
        return ""

    store = MemoryStore()
    done = await Engine(store).start(workflow(impatient), "p")

    child = done.steps[0].child_thread
    assert done.state == "completed"
    assert child is not None
    assert (await read_thread(store, child)).status.state == "cancelled"
    assert await check_summaries(store) == []
