"""Children by a registered name: they keep the bundle that the name stood for when they began."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from workflow_cas import MemoryStore, SqliteStore, open_store
from workflow_execute import (
    ChildTask,
    Engine,
    InputError,
    Workflow,
    WorkflowNotFound,
    create_workflow,
    function_adapter,
    read_thread,
    run_children,
    run_workflow,
    workflow_adapter,
    workflow_of_child,
)
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Answer,
    Effect,
    Hash,
    RoleDefinition,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
    describe,
)
from workflow_register import (
    build_bundle,
    load_workflow,
    read_stored_bundle,
    register,
    unregister,
)

ENTRY = """
from workflow_execute import create_workflow, function_adapter, workflow_adapter
from workflow_protocol import END, START, AdapterBinding, Effect, Question, RoleDefinition
from workflow_protocol import WorkflowDefinition

first = RoleDefinition(name="first", schema=str)
last = RoleDefinition(name="last", schema=str)
inner = create_workflow(
    WorkflowDefinition(table={{START: last, last: END}}),
    AdapterBinding(function_adapter(last, lambda ctx: "inner {version}")),
)

async def ask(ctx):
    answer = await ctx.journal.ask("q", Question(text="Sure?")) if {asks} else None
    return f"{version} {{ctx.start.prompt}}"

run = create_workflow(
    WorkflowDefinition(table={{START: last, last: first, first: END}}, result=first{more}),
    AdapterBinding(overrides={{
        last: workflow_adapter("inner", inner),
        first: function_adapter(first, ask, effect=Effect.READ),
    }}),
)
"""

role = RoleDefinition(name="helper", system_prompt="Help.", schema=str)
PARENT = create_workflow(
    WorkflowDefinition(table={START: role, role: END}, result=role),
    AdapterBinding(workflow_adapter("help")),
)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


async def add(
    store: Any,
    folder: Path,
    version: str,
    *,
    asks: bool = False,
    more: str = "",
    name: str = "help",
) -> None:
    entry = folder / f"help_{version}.py"
    entry.write_text(ENTRY.format(version=version, asks=asks, more=more), encoding="utf-8")
    bundle = build_bundle(entry)
    await register(store, name, bundle, describe(load_workflow(bundle).definition))


async def bundle_of(store: SqliteStore, thread_id: ThreadId) -> Hash:
    stored = await read_thread(store, thread_id)
    assert stored.start.bundle is not None
    assert stored.start.registered
    return stored.start.bundle


async def test_a_child_runs_what_is_registered_under_its_name(
    store: SqliteStore, tmp_path: Path
) -> None:
    await add(store, tmp_path, "v1")
    engine = Engine(store)

    done = await engine.start(PARENT, "the task")

    assert done.value == "v1 the task\n\nHelp."
    (child_id,) = done.steps[0].child_threads
    bundle, environment = await read_stored_bundle(store, await bundle_of(store, child_id))
    assert (bundle.manifest.entry, environment is not None) == ("help_v1.py", True)
    below = (await read_thread(store, child_id)).steps[0].record.child_threads
    inner = await read_thread(store, ThreadId(below[0]))
    assert (inner.start.bundle, inner.start.registered) == (
        await bundle_of(store, child_id),
        False,
    )
    assert (await store.verify()).ok


async def test_a_resume_takes_the_bundle_that_the_child_began_with_and_a_fresh_turn_the_new_one(
    store: SqliteStore, tmp_path: Path
) -> None:
    await add(store, tmp_path, "v1", asks=True)
    engine = Engine(store)
    waits = await engine.start(PARENT, "p")
    (child_id,) = waits.waits_for
    before = await bundle_of(store, child_id)
    await add(store, tmp_path, "v2")
    fork_id = await engine.fork(waits.thread_id)

    await engine.answer(child_id, None, Answer(approved=True))
    done = await engine.resume(PARENT, waits.thread_id)
    forked = await engine.resume(PARENT, fork_id)

    assert (done.value, forked.value) == ("v1 p\n\nHelp.", "v2 p\n\nHelp.")
    assert await bundle_of(store, child_id) == before
    assert await bundle_of(store, forked.steps[0].child_threads[0]) != before


async def test_a_turn_begun_anew_takes_what_the_name_means_now(
    store: SqliteStore, tmp_path: Path
) -> None:
    await add(store, tmp_path, "v1", asks=True)
    waits = await Engine(store).start(PARENT, "p")
    await add(store, tmp_path, "v2")

    assert (await Engine(store).resume(PARENT, waits.thread_id, fresh=True)).value.startswith("v2")


async def test_replays_resumes_and_garbage_collection_need_no_name(
    store: SqliteStore, tmp_path: Path
) -> None:
    await add(store, tmp_path, "v1")
    await add(store, tmp_path, "ask", asks=True, name="other")
    engine = Engine(store)
    done = await engine.start(PARENT, "p")
    other = create_workflow(PARENT.definition, AdapterBinding(workflow_adapter("other")))
    waits = await engine.start(other, "p")
    await engine.answer(waits.waits_for[0], None, Answer(approved=True))
    for name in ("help", "other"):
        await unregister(store, name)
    await store.collect_garbage(keep_newer_than_s=0)

    assert (await engine.replay(PARENT, done.thread_id)).steps == 1
    child = await read_thread(store, done.steps[0].child_threads[0])
    bundle, _ = await read_stored_bundle(store, await bundle_of(store, child.thread_id))
    loaded: Any = load_workflow(bundle)
    assert await workflow_of_child(store, loaded, child) is loaded
    assert (await engine.replay(loaded, child.thread_id)).steps == 2
    assert (await engine.resume(other, waits.thread_id)).value == "ask p\n\nHelp."


async def test_a_fork_of_a_child_stands_on_its_bundle(store: SqliteStore, tmp_path: Path) -> None:
    await add(store, tmp_path, "v1")
    engine = Engine(store)
    done = await engine.start(PARENT, "p")
    fork_id = await engine.fork(done.steps[0].child_threads[0], at_step=1, prompt="other")
    fork = await read_thread(store, fork_id)
    bundle, _ = await read_stored_bundle(store, await bundle_of(store, fork_id))
    loaded: Any = load_workflow(bundle)

    flow = await workflow_of_child(store, loaded, fork)

    assert (await engine.resume(flow, fork_id)).value == "v1 other"


async def test_the_unfinished_turn_of_another_parent_is_checked_without_the_child_s_bundle(
    store: SqliteStore, tmp_path: Path
) -> None:
    await add(store, tmp_path, "v1", asks=True)
    engine = Engine(store)
    waits = await engine.start(PARENT, "p")
    (child_id,) = waits.waits_for
    before = await bundle_of(store, child_id)
    await engine.answer(child_id, None, Answer(approved=True))

    done = await engine.resume(PARENT, waits.thread_id, bundle=before)

    assert done.value.startswith("v1")
    assert await bundle_of(store, child_id) == before


async def test_an_unknown_name_fails_the_turn_with_what_to_do(store: SqliteStore) -> None:
    failed = await Engine(store).start(PARENT, "p")
    in_memory = await run_workflow(PARENT, "p")

    for each in (failed, in_memory):
        assert isinstance(each.error, WorkflowNotFound)
        assert each.summary.startswith("the workflow 'help' can't be started: ")
        assert "uwf add" in each.summary


async def test_a_failed_lookup_is_made_again_by_a_resume(
    store: SqliteStore, tmp_path: Path
) -> None:
    failed = await Engine(store).start(PARENT, "p")
    await add(store, tmp_path, "v1")

    assert (await Engine(store).resume(PARENT, failed.thread_id)).value.startswith("v1")


async def test_an_input_of_another_type_is_told_before_the_child_begins(
    store: SqliteStore, tmp_path: Path
) -> None:
    await add(store, tmp_path, "v1", more=", input=list[int]")
    failed = await Engine(store).start(PARENT, "p")
    numbers = create_workflow(
        PARENT.definition,
        AdapterBinding(workflow_adapter("help", input=lambda prompt, ctx: [1, 2])),
    )
    done = await Engine(store).start(numbers, "p")

    assert isinstance(failed.error, InputError)
    assert done.value == "v1 [1,2]"


async def test_tasks_of_a_registered_workflow_run_together(tmp_path: Path) -> None:
    store = MemoryStore()
    await add(store, tmp_path, "v1")
    both = RoleDefinition(name="both", schema=list[str])

    async def run(ctx: ThreadContext) -> list[str]:
        tasks = [ChildTask(name="help", input=each, key=each) for each in ("a", "b")]
        return [str(done.value) for done in await run_children(ctx, tasks)]

    flow = create_workflow(
        WorkflowDefinition(table={START: both, both: END}, result=both),
        AdapterBinding(function_adapter(both, run, effect=Effect.READ)),
    )
    assert (await Engine(store).start(flow, "p")).value == ["v1 a", "v1 b"]


def test_the_names_that_a_workflow_needs_are_known_beforehand() -> None:
    def of(adapter: Any) -> Workflow[str, str]:
        return create_workflow(PARENT.definition, AdapterBinding(adapter))

    deep = of(workflow_adapter("middle", of(workflow_adapter("a"))))
    again: Workflow[str, str] = of(workflow_adapter("again", lambda: again))

    assert deep.registered_children == {"a": "role 'helper' → 'helper'"}
    assert again.registered_children == {}
    assert PARENT.registered_children == {"help": "role 'helper'"}
