"""Files are replayed, recorded and refused; a test may be plain or async."""

import os
import signal
from pathlib import Path

import anyio
import pytest

from pytest_uwf import (
    RecordingFailed,
    ReplayDiffers,
    ScriptedLlm,
    ScriptedPerson,
    UwfReplay,
    replay_file,
    say,
)
from workflow_agent_llm import create_llm_adapter
from workflow_cas import MemoryStore
from workflow_execute import (
    Engine,
    SecretInThread,
    ThreadFileError,
    Workflow,
    create_workflow,
    export_thread,
    open_thread_file,
    read_thread,
    workflow_adapter,
)
from workflow_execute.testing import in_turn
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Question,
    RoleDefinition,
    ThreadContext,
    WorkflowDefinition,
)


def counting(prompt: str = "Count.") -> Workflow:
    role = RoleDefinition(name="counter", system_prompt=prompt, schema=int)
    return create_workflow(
        WorkflowDefinition(table={START: role, role: END}),
        AdapterBinding(create_llm_adapter(ScriptedLlm([say("7")]))),
    )


def above(child: Workflow) -> Workflow:
    role = RoleDefinition(name="above", system_prompt="", schema=int)
    return create_workflow(
        WorkflowDefinition(table={START: role, role: END}),
        AdapterBinding(overrides={role: workflow_adapter("below", child)}),
    )


@pytest.fixture
def recorder(tmp_path: Path) -> UwfReplay:
    """The fixture as it is with `--uwf-record`."""
    return UwfReplay(folder=tmp_path, record=True, home=tmp_path / "home")


@pytest.fixture
def replayer(tmp_path: Path) -> UwfReplay:
    """The fixture as it is without."""
    return UwfReplay(folder=tmp_path, record=False, home=tmp_path / "home")


def test_what_was_recorded_is_replayed_in_a_plain_test(
    recorder: UwfReplay, replayer: UwfReplay, tmp_path: Path
) -> None:
    assert recorder("a/b/x.uwf", counting(), input="p").requests == 1
    before = (tmp_path / "a/b/x.uwf").read_bytes()
    assert (replayer("a/b/x.uwf", counting()).steps, before[:4]) == (1, b"\x89UWF")


async def test_an_async_test_and_its_models_in_place_will_do_too(
    recorder: UwfReplay, replayer: UwfReplay
) -> None:
    run = counting()
    with run.using(ScriptedLlm([say("8")])):
        assert recorder("x.uwf", run, input="p").completion is not None
        assert replayer("x.uwf", run).requests == 1


def test_a_file_is_recorded_anew_from_what_its_thread_began_with(
    recorder: UwfReplay, tmp_path: Path
) -> None:
    recorder("x.uwf", counting(), input="How many?")
    with pytest.raises(pytest.fail.Exception, match="role 'counter', llm/0"):
        UwfReplay(folder=tmp_path, record=False, home=None)("x.uwf", counting("Count well."))
    assert recorder("x.uwf", counting("Count well.")).requests == 1
    with pytest.raises(RecordingFailed, match="give uwf_replay an `input`"):
        recorder("new.uwf", counting())


async def test_another_value_another_role_and_another_child_are_told(tmp_path: Path) -> None:
    store, path = MemoryStore(), tmp_path / "x.uwf"

    async def one(ctx: ThreadContext) -> int:
        return 1

    async def two(ctx: ThreadContext) -> int:
        return 2

    async def recorded(run: Workflow) -> None:
        done = await Engine(store).start(run, "p")
        await export_thread(store, done.thread_id, path)

    await recorded(in_turn(one, one))
    with pytest.raises(ReplayDiffers) as differs:
        await replay_file(path, in_turn(one, two))
    assert "step 1, value" in str(differs.value)
    assert "recorded: 1\nnow: 2\n" in str(differs.value)
    with pytest.raises(ReplayDiffers, match="has no role 'role-1'"):
        await replay_file(path, in_turn(one))

    await recorded(above(counting()))
    assert (await replay_file(path, above(counting()))).steps == 1
    with pytest.raises(ReplayDiffers, match="role 'counter', llm/0"):
        await replay_file(path, above(counting("Count otherwise.")))


def test_a_run_that_fails_is_not_recorded(recorder: UwfReplay, tmp_path: Path) -> None:
    async def fail(ctx: ThreadContext) -> int:
        raise ValueError("no table")

    (tmp_path / "x.uwf").write_bytes(b"earlier")
    with pytest.raises(RecordingFailed, match="the run is failed: no table"):
        recorder("x.uwf", in_turn(fail), input="p")
    assert (tmp_path / "x.uwf").read_bytes() == b"earlier"


def test_ctrl_c_cancels_what_is_being_recorded(recorder: UwfReplay, tmp_path: Path) -> None:
    ended: list[str] = []

    async def wait(ctx: ThreadContext) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")
        return 1

    with pytest.raises(KeyboardInterrupt):
        recorder("x.uwf", in_turn(wait), input="p")
    assert ended == ["cancelled"]
    assert not (tmp_path / "x.uwf").exists()


def test_a_key_is_not_recorded(
    recorder: UwfReplay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "planted-0123456789")
    with pytest.raises(SecretInThread, match="SOME_API_KEY"):
        recorder("x.uwf", counting(), input="the key is planted-0123456789")
    assert not (tmp_path / "x.uwf").exists()


def test_a_scripted_person_answers_while_it_is_recorded(
    recorder: UwfReplay, replayer: UwfReplay
) -> None:
    async def ask(ctx: ThreadContext) -> int:
        return int((await ctx.journal.ask("go", Question(text="Go?"))).approved)

    person = ScriptedPerson([True])
    assert recorder("x.uwf", in_turn(ask), input="p", asker=person).completion is not None
    assert [asking.question.text for asking in person.asked] == ["Go?"]
    assert replayer("x.uwf", in_turn(ask)).steps == 1


async def test_a_recording_has_the_name_of_the_file_and_works_where_it_is_told(
    recorder: UwfReplay, tmp_path: Path
) -> None:
    recorder("count.uwf", counting(), input="p", workspace=tmp_path)
    async with open_thread_file(tmp_path / "count.uwf") as file:
        thread = await read_thread(file, file.thread_id)
    assert (thread.start.workflow, thread.workspace) == ("count", tmp_path)


def test_a_file_that_is_not_there_is_told_with_the_way_to_make_it(replayer: UwfReplay) -> None:
    with pytest.raises(pytest.fail.Exception, match="make it with pytest --uwf-record"):
        replayer("x.uwf", counting())


def test_what_is_no_thread_file_is_told(replayer: UwfReplay, tmp_path: Path) -> None:
    (tmp_path / "x.uwf").write_bytes(b"hello")
    with pytest.raises(ThreadFileError, match="not a thread file"):
        replayer("x.uwf", counting())
