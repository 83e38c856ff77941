"""Versions of a workspace's files: with each effect that may change some, and what they are for."""

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import pytest

from workflow_cas import MemoryStore, Store, open_store
from workflow_execute import (
    ChildTask,
    Engine,
    StoredThread,
    export_thread,
    files_of_step,
    import_thread,
    read_attempts,
    read_thread,
    run_child,
)
from workflow_execute.testing import in_turn
from workflow_protocol import (
    Effect,
    Event,
    Hash,
    OutcomeUnknown,
    ThreadContext,
    ThreadId,
    WorkspaceVersioned,
    current_work,
)
from workflow_workspace import Versioned, compare, read_content, read_files

Act = Callable[[Path], None]


async def effect(ctx: ThreadContext, key: str, act: Act, effect: Effect = Effect.UNSAFE) -> int:
    async def perform() -> int:
        act(ctx.start.workspace)
        return 1

    return await ctx.journal.run(key, perform, type=int, effect=effect)


def role(*acts: Act, effect_: Effect = Effect.UNSAFE) -> Callable[[ThreadContext], Awaitable[int]]:
    async def turn(ctx: ThreadContext) -> int:
        for number, act in enumerate(acts):
            await effect(ctx, f"act/{number}", act, effect_)
        return len(ctx.steps)

    return turn


def write(name: str, text: str, *, says: bool = False) -> Act:
    def act(folder: Path) -> None:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if says:
            current_work().touched(name)

    return act


def look(folder: Path) -> None:
    assert folder.is_dir()


async def texts(store: Store, version: Hash | None) -> dict[str, str]:
    """The files of a version."""
    assert version is not None
    entries = await read_files(store, version)
    return {
        path: (await read_content(store, entry)).decode()
        for path, entry in entries.items()
        if entry.kind == "file"
    }


async def after_each(store: Store, thread_id: ThreadId) -> list[dict[str, str]]:
    """The files after each step."""
    thread = await read_thread(store, thread_id)
    return [await texts(store, step.files) for step in thread.steps]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("begun", encoding="utf-8")
    return folder


THREE = in_turn(
    role(write("a.txt", "one")),
    role(write("b/c.txt", "two"), write("b/c.txt", "three")),
    role(lambda folder: os.unlink(folder / "a.txt")),
)


async def test_each_step_has_the_files_that_it_left(work: Path) -> None:
    store = MemoryStore()
    done = await Engine(store).start(THREE, "p", workspace=work)

    assert done.state == "completed"
    assert await after_each(store, done.thread_id) == [
        {"a.txt": "one"},
        {"a.txt": "one", "b/c.txt": "three"},
        {"b/c.txt": "three"},
    ]
    thread = await read_thread(store, done.thread_id)
    first = await files_of_step(store, thread, 0)
    assert await texts(store, first.before) == {"a.txt": "begun"}
    second = await files_of_step(store, thread, 1)
    assert second.after is not None
    changes = await compare(store, second.before, second.after)
    assert [(each.kind, each.path) for each in changes] == [("added", "b"), ("added", "b/c.txt")]


async def test_each_effect_has_the_files_that_it_left(work: Path) -> None:
    store = MemoryStore()
    done = await Engine(store).start(THREE, "p", workspace=work)

    (_, step, _) = (await read_thread(store, done.thread_id)).steps
    (records,) = await read_attempts(store, step.turn)
    found = [await texts(store, each.files) for each in records if each.files]
    assert [each["b/c.txt"] for each in found] == ["two", "three"]


async def test_what_only_reads_costs_nothing(work: Path) -> None:
    store = MemoryStore()
    flow = in_turn(role(look, effect_=Effect.READ), role(write("a.txt", "x")))
    done = await Engine(store).start(flow, "p", workspace=work)

    reading, writing = (await read_thread(store, done.thread_id)).steps
    assert (reading.files, writing.files is not None) == (None, True)


async def test_only_the_paths_that_an_effect_names_are_looked_at(work: Path) -> None:
    def both(folder: Path) -> None:
        write("a.txt", "named", says=True)(folder)
        write("b.txt", "not named")(folder)

    store = MemoryStore()
    done = await Engine(store).start(in_turn(role(both, look)), "p", workspace=work)

    (step,) = (await read_thread(store, done.thread_id)).steps
    (records,) = await read_attempts(store, step.turn)
    named, looked = [await texts(store, each.files) for each in records if each.files][-2:]
    assert named == {"a.txt": "named"}
    assert looked == {"a.txt": "named", "b.txt": "not named"}


async def test_a_folder_that_was_not_given_is_not_versioned(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    store = MemoryStore()
    done = await Engine(store).start(THREE, "p")
    off = await Engine(store, versions=None).start(THREE, "p", workspace=_anew(work))

    for each in (done, off):
        assert [step.files for step in (await read_thread(store, each.thread_id)).steps] == [
            None, None, None
        ]  # fmt: skip


def _anew(work: Path) -> Path:
    (work / "a.txt").write_text("begun", encoding="utf-8")
    return work


async def test_a_folder_that_is_too_large_is_told_once_and_the_thread_goes_on(work: Path) -> None:
    events: list[Event] = []
    store = MemoryStore()
    engine = Engine(store, versions=Versioned(max_files=1), observer=events.append)
    done = await engine.start(THREE, "p", workspace=work)

    assert done.state == "completed"
    told = [each for each in events if isinstance(each, WorkspaceVersioned)]
    assert [each.first for each in told] == [True, False]
    assert "more than 1 files" in told[1].reason
    steps = (await read_thread(store, done.thread_id)).steps
    assert [step.files is not None for step in steps] == [True, False, False]


async def test_a_fork_has_the_files_of_its_step_in_a_folder_of_its_own(
    work: Path, tmp_path: Path
) -> None:
    store = MemoryStore()
    engine = Engine(store, workspaces=tmp_path / "forks")
    done = await engine.start(THREE, "p", workspace=work)

    for kept, files in enumerate([{"a.txt": "begun"}, {"a.txt": "one"}]):
        fork = await engine.fork(done.thread_id, at_step=kept)
        folder = (await read_thread(store, fork)).workspace
        assert folder.parent == tmp_path / "forks"
        assert {each.name: each.read_text() for each in folder.iterdir()} == files
        again = await engine.resume(THREE, fork)
        assert again.state == "completed"
        assert await after_each(store, fork) == await after_each(store, done.thread_id)
    assert sorted(os.listdir(work)) == ["b"]


async def test_a_fork_fills_an_empty_folder_and_leaves_another_alone(
    work: Path, tmp_path: Path
) -> None:
    store = MemoryStore()
    engine = Engine(store)
    done = await engine.start(THREE, "p", workspace=work)
    empty, full = tmp_path / "empty", tmp_path / "full"
    for folder in (empty, full):
        folder.mkdir()
    (full / "mine").write_text("mine", encoding="utf-8")

    await engine.fork(done.thread_id, at_step=1, workspace=empty)
    await engine.fork(done.thread_id, at_step=1, workspace=full)

    assert [each.name for each in empty.iterdir()] == ["a.txt"]
    assert [each.name for each in full.iterdir()] == ["mine"]


async def test_what_others_change_between_two_runs_is_not_a_steps_doing(work: Path) -> None:
    async def stop(ctx: ThreadContext) -> int:
        if (work / "stop").exists():
            raise ValueError("not yet")
        return await effect(ctx, "act", write("c.txt", "mine"))

    store = MemoryStore()
    engine = Engine(store)
    flow = in_turn(role(write("a.txt", "one"), write("stop", "")), stop)
    done = await engine.start(flow, "p", workspace=work)
    assert done.state == "failed"
    (work / "stop").unlink()
    (work / "a.txt").write_text("somebody else's", encoding="utf-8")
    await engine.resume(flow, done.thread_id)

    thread = await read_thread(store, done.thread_id)
    found = await files_of_step(store, thread, 1)
    assert found.after is not None
    assert [each.path for each in await compare(store, found.before, found.after)] == ["c.txt"]


async def test_a_child_in_the_same_folder_changes_the_files_of_its_step(work: Path) -> None:
    child = in_turn(role(write("a.txt", "child")))

    async def start(ctx: ThreadContext) -> int:
        return (await run_child(ctx, ChildTask(workflow=child, input="c", name="c"))).read(int)

    store = MemoryStore()
    done = await Engine(store).start(in_turn(start), "p", workspace=work)

    thread = await read_thread(store, done.thread_id)
    found = await files_of_step(store, thread, 0)
    assert await texts(store, found.before) == {"a.txt": "begun"}
    assert await texts(store, found.after) == {"a.txt": "child"}


async def test_effects_at_the_same_time_leave_the_last_record_right(work: Path) -> None:
    async def many(ctx: ThreadContext) -> int:
        async with anyio.create_task_group() as group:
            for number in range(8):
                act = write(f"{number}.txt", "x", says=True)
                group.start_soon(effect, ctx, f"act/{number}", act, Effect.REPEATABLE)
        return 8

    store = MemoryStore()
    done = await Engine(store).start(in_turn(many), "p", workspace=work)

    (step,) = (await read_thread(store, done.thread_id)).steps
    (records,) = await read_attempts(store, step.turn)
    counts = [len(await texts(store, each.files)) for each in records if each.files]
    assert counts == list(range(1, 10))


async def test_replay_export_and_collection_know_of_versions(work: Path, tmp_path: Path) -> None:
    async with open_store(tmp_path / "store") as store:
        engine = Engine(store)
        done = await engine.start(THREE, "p", workspace=work)
        assert (await engine.replay(THREE, done.thread_id)).steps == 3
        await store.collect_garbage(keep_newer_than_s=0)
        assert (await store.verify()).problems == ()
        before = await after_each(store, done.thread_id)
        await export_thread(store, done.thread_id, tmp_path / "t.uwf")
    async with open_store(tmp_path / "other") as other:
        await import_thread(other, tmp_path / "t.uwf")
        assert await after_each(other, done.thread_id) == before


async def test_no_file_that_holds_a_key_is_kept(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-in-the-environment")
    store = MemoryStore()
    engine = Engine(store, secrets={"other": "sk-that-is-given"})
    flow = in_turn(
        role(
            write("a.txt", "x sk-in-the-environment y"),
            write("b.txt", "sk-that-is-given"),
            write(".env", "anything"),
        )
    )
    done = await engine.start(flow, "p", workspace=work)

    assert await after_each(store, done.thread_id) == [{}]
    entries = await read_files(store, _files_of(await read_thread(store, done.thread_id)))
    assert {path: entry.reason for path, entry in entries.items()} == {
        "a.txt": "configured key", "b.txt": "configured key", ".env": "secret name",
    }  # fmt: skip


def _files_of(thread: StoredThread) -> Hash:
    files = thread.steps[-1].files
    assert files is not None
    return files


async def test_what_an_effect_without_an_outcome_has_left_is_in_the_version_of_its_step(
    work: Path,
) -> None:
    def write_and_fail(folder: Path) -> None:
        (folder / "a.txt").write_text("half", encoding="utf-8")
        raise OSError("the disk is full")

    async def turn(ctx: ThreadContext) -> int:
        with suppress(OutcomeUnknown):
            await effect(ctx, "act", write_and_fail)
        return 1

    store = MemoryStore()
    engine = Engine(store)
    failed = await engine.start(in_turn(turn), "p", workspace=work)
    assert failed.state == "failed"
    done = await engine.resume(in_turn(turn), failed.thread_id)

    assert done.state == "completed"
    assert await after_each(store, done.thread_id) == [{"a.txt": "half"}]


async def test_the_engines_own_files_in_a_workspace_are_left_alone(work: Path) -> None:
    home = work / "[my] home#"
    home.mkdir()
    async with open_store(home / "store") as store:
        (work / "code").mkdir()
        (work / "code" / "mine").write_text("mine", encoding="utf-8")
        engine = Engine(
            store,
            locks=work / "code" / "locks",
            workspaces=work / "code" / "workspaces",
            own_files=[home],
        )
        done = await engine.start(THREE, "p", workspace=work)
        assert await after_each(store, done.thread_id) == [
            {"a.txt": "one", "code/mine": "mine"},
            {"a.txt": "one", "b/c.txt": "three", "code/mine": "mine"},
            {"b/c.txt": "three", "code/mine": "mine"},
        ]
    async with open_store(work / "beside.sqlite3") as store:
        done = await Engine(store).start(THREE, "p", workspace=work)
        entries = await read_files(store, _files_of(await read_thread(store, done.thread_id)))
        assert "[my] home#/store" in entries
        assert not [path for path in entries if path.startswith("beside")]


async def test_effects_at_the_same_time_go_on_where_a_folder_becomes_too_large(work: Path) -> None:
    async def many(ctx: ThreadContext) -> int:
        async with anyio.create_task_group() as group:
            for number in range(8):
                act = write(f"{number}.txt", "x")
                group.start_soon(effect, ctx, f"act/{number}", act, Effect.REPEATABLE)
        return 8

    store = MemoryStore()
    engine = Engine(store, versions=Versioned(max_files=3))
    done = await engine.start(in_turn(many), "p", workspace=work)

    assert (done.state, done.summary) == ("completed", "role-0: 8")
    (step,) = (await read_thread(store, done.thread_id)).steps
    assert step.files is None
