"""A resume on other files than the thread left: told, and put back where that is wanted."""

from collections.abc import Callable
from pathlib import Path

import pytest

from workflow_cas import MemoryStore, Store
from workflow_execute import (
    Engine,
    ThreadNotFound,
    Workflow,
    files_of_step,
    read_attempts,
    read_thread,
)
from workflow_execute.testing import in_turn
from workflow_protocol import Effect, Event, Hash, ThreadContext, ThreadId, WorkspaceDiffers
from workflow_workspace import NotVersioned, Versioned, compare, read_content, read_files

Act = Callable[[Path], None]


async def act(ctx: ThreadContext, key: str, what: Act) -> int:
    async def perform() -> int:
        what(ctx.start.workspace)
        return 1

    return await ctx.journal.run(key, perform, type=int, effect=Effect.UNSAFE)


def write(name: str, text: str) -> Act:
    def what(folder: Path) -> None:
        (folder / name).write_text(text, encoding="utf-8")

    return what


async def texts(store: Store, version: Hash | None) -> dict[str, str]:
    assert version is not None
    entries = await read_files(store, version)
    return {
        path: (await read_content(store, entry)).decode()
        for path, entry in entries.items()
        if entry.kind == "file"
    }


class Stopped:
    """A thread that has failed in its second step, and whose folder others have changed since."""

    def __init__(self, work: Path, *, in_turn_too: bool = False) -> None:
        self.work = work
        self.events: list[Event] = []
        self.store = MemoryStore()
        self.engine = Engine(self.store, observer=self.events.append)
        self.works = False
        self._in_turn_too = in_turn_too
        self.thread_id = ThreadId("")

    @property
    def flow(self) -> Workflow:
        async def first(ctx: ThreadContext) -> int:
            return await act(ctx, "act", write("a.txt", "left"))

        async def second(ctx: ThreadContext) -> int:
            if self._in_turn_too:
                await act(ctx, "begin", write("b.txt", "left in the turn"))
            if not self.works:
                raise ValueError("not yet")
            return await act(ctx, "act", write("c.txt", "done"))

        return in_turn(first, second)

    async def run(self) -> None:
        done = await self.engine.start(self.flow, "p", workspace=self.work)
        assert done.state == "failed"
        self.thread_id, self.works = done.thread_id, True

    def files(self) -> dict[str, str]:
        return {each.name: each.read_text() for each in self.work.iterdir()}

    def told(self) -> list[WorkspaceDiffers]:
        return [each for each in self.events if isinstance(each, WorkspaceDiffers)]


@pytest.fixture
async def stopped(tmp_path: Path) -> Stopped:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "b.txt").write_text("begun", encoding="utf-8")
    thread = Stopped(tmp_path / "work")
    await thread.run()
    write("a.txt", "somebody else's")(thread.work)
    write("new.txt", "new")(thread.work)
    (thread.work / "b.txt").unlink()
    return thread


async def test_what_differs_is_named_and_nothing_is_changed(stopped: Stopped) -> None:
    turn = (await read_thread(stopped.store, stopped.thread_id)).turn
    found = await stopped.engine.changed_files(stopped.thread_id)

    assert [(each.kind, each.path) for each in found] == [
        ("changed", "a.txt"), ("deleted", "b.txt"), ("added", "new.txt"),
    ]  # fmt: skip
    after = found[0].after
    assert after is not None
    assert await read_content(stopped.store, after) == b"somebody else's"
    assert (await read_thread(stopped.store, stopped.thread_id)).turn == turn
    assert stopped.files() == {"a.txt": "somebody else's", "new.txt": "new"}


async def test_a_plain_resume_tells_it_and_leaves_the_files(stopped: Stopped) -> None:
    done = await stopped.engine.resume(stopped.flow, stopped.thread_id)

    (told,) = stopped.told()
    assert (told.count, told.paths, told.put_back) == (3, ("a.txt", "b.txt", "new.txt"), False)
    assert (told.thread, told.workspace) == (stopped.thread_id, str(stopped.work))
    assert done.state == "completed"
    assert stopped.files() == {"a.txt": "somebody else's", "c.txt": "done", "new.txt": "new"}


async def test_files_are_put_back_and_how_they_were_is_kept(stopped: Stopped) -> None:
    done = await stopped.engine.resume(stopped.flow, stopped.thread_id, restore_files=True)

    (told,) = stopped.told()
    assert (told.count, told.put_back, told.stay) == (3, True, ())
    assert done.state == "completed"
    assert stopped.files() == {"a.txt": "left", "b.txt": "begun", "c.txt": "done"}
    store = stopped.store
    assert await texts(store, Hash(told.version)) == {"a.txt": "somebody else's", "new.txt": "new"}
    thread = await read_thread(store, stopped.thread_id)
    (records,) = await read_attempts(store, thread.steps[1].turn)
    assert told.version in [each.files for each in records], "no collection takes it"
    step = await files_of_step(store, thread, 1)
    assert step.after is not None
    assert [each.path for each in await compare(store, step.before, step.after)] == ["c.txt"]
    assert (await stopped.engine.replay(stopped.flow, stopped.thread_id)).steps == 2
    assert await stopped.engine.changed_files(stopped.thread_id) == []


async def test_what_a_turn_has_left_is_put_back_too(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    thread = Stopped(tmp_path / "work", in_turn_too=True)
    await thread.run()
    write("b.txt", "somebody else's")(thread.work)

    await thread.engine.resume(thread.flow, thread.thread_id, restore_files=True)

    assert thread.files() == {"a.txt": "left", "b.txt": "left in the turn", "c.txt": "done"}


async def test_the_same_files_are_not_worth_a_word(stopped: Stopped) -> None:
    for name, text in (("a.txt", "left"), ("b.txt", "begun")):
        write(name, text)(stopped.work)
    (stopped.work / "new.txt").unlink()

    assert await stopped.engine.changed_files(stopped.thread_id) == []
    turn = (await read_thread(stopped.store, stopped.thread_id)).turn
    stopped.works = False
    await stopped.engine.resume(stopped.flow, stopped.thread_id, restore_files=True)
    assert stopped.told() == []
    assert (await read_thread(stopped.store, stopped.thread_id)).turn == turn


async def test_another_folder_can_get_the_files(stopped: Stopped, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    found = await stopped.engine.changed_files(stopped.thread_id, workspace=tmp_path / "other")
    assert [(each.kind, each.path) for each in found] == [
        ("deleted", "a.txt"),
        ("deleted", "b.txt"),
    ]

    await stopped.engine.resume(
        stopped.flow, stopped.thread_id, workspace=tmp_path / "other", restore_files=True
    )
    found = sorted(each.name for each in (tmp_path / "other").iterdir())
    assert found == ["a.txt", "b.txt", "c.txt"]
    assert stopped.files() == {"a.txt": "somebody else's", "new.txt": "new"}


async def test_what_can_not_be_kept_before_is_not_touched(stopped: Stopped) -> None:
    engine = Engine(stopped.store, versions=Versioned(max_files=1))

    with pytest.raises(NotVersioned, match="more than 1 files"):
        await engine.resume(stopped.flow, stopped.thread_id, restore_files=True)
    assert stopped.files() == {"a.txt": "somebody else's", "new.txt": "new"}
    with pytest.raises(NotVersioned):
        await engine.changed_files(stopped.thread_id)
    assert (await engine.resume(stopped.flow, stopped.thread_id)).state == "completed"


async def test_a_thread_without_versions_has_nothing_to_tell(stopped: Stopped) -> None:
    engine = Engine(stopped.store, versions=None)
    assert await engine.changed_files(stopped.thread_id) == []
    with pytest.raises(ThreadNotFound):
        await engine.changed_files(ThreadId("nobody"))
    stopped.work.rename(stopped.work.with_name("moved"))
    with pytest.raises(NotADirectoryError):
        await stopped.engine.changed_files(stopped.thread_id)


async def test_what_others_changed_is_not_what_the_thread_left(tmp_path: Path) -> None:
    """A run on changed files records them before its first effect, and dies in it."""
    (tmp_path / "work").mkdir()
    thread = Stopped(tmp_path / "work")
    await thread.run()
    write("a.txt", "somebody else's")(thread.work)

    def fail(folder: Path) -> None:
        raise OSError("no")

    async def first(ctx: ThreadContext) -> int:
        return await act(ctx, "act", write("a.txt", "left"))

    async def failing(ctx: ThreadContext) -> int:
        return await act(ctx, "act", fail)

    failed = await thread.engine.resume(in_turn(first, failing), thread.thread_id)
    assert failed.state == "failed"
    found = await thread.engine.changed_files(thread.thread_id)
    assert [each.path for each in found] == ["a.txt"]
