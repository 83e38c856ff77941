"""Agents on an engine: run once, whatever happens; after an interruption a person decides."""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from workflow_agent_cli import AgentFailed, AgentInterrupted, AgentRun, create_cli_agent
from workflow_cas import open_store
from workflow_execute import Engine, Limits, Price, Workflow, create_workflow, list_threads
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    AgentFn,
    Answer,
    Hash,
    RoleDefinition,
    ThreadId,
    Usage,
    WorkflowDefinition,
)
from workflow_reactor import Secret
from workflow_reactor.testing import ScriptedLlm, call
from workflow_util_agent import agent_to_adapter

FAKE = str(Path(__file__).with_name("fake_agent.py"))
ROLE = RoleDefinition(name="maker", description="Makes.", system_prompt="Make it.", schema=str)
DEFINITION = WorkflowDefinition(
    description="Making.",
    table={START: ROLE, ROLE: END},
)


def workflow_of(agent: AgentFn) -> Workflow:
    """One role that the agent carries out, and a model that reads its words as `made`."""
    llm = ScriptedLlm([call("resolve", value="made")])
    return create_workflow(DEFINITION, AdapterBinding(agent_to_adapter(agent, llm)))


def fake_workflow(does: str) -> Workflow:
    """A workflow whose agent is the fake one."""
    more = ["--fake", does]
    return workflow_of(create_cli_agent("claude", executable=FAKE, more_arguments=more))


SESSION = "5e551017-0000-4000-8000-000000000001"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with open_store(tmp_path / "store.sqlite3") as store:
        yield Engine(store, locks=tmp_path / "locks")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


async def requests(engine: Engine, workflow: Any, thread_id: ThreadId) -> dict[str, Any]:
    """What a replay asked the agent for, by key."""
    found: dict[str, Any] = {}

    def keep(request: Any) -> None:
        if "/run/" in request.key:
            found[request.key] = msgspec.json.decode(request.data)

    await engine.replay(workflow, thread_id, on_request=keep)
    return found


async def test_a_role_changes_files_and_gives_a_typed_value(
    engine: Engine, workspace: Path
) -> None:
    workflow = fake_workflow("done")

    result = await engine.start(workflow, "Make it.", workspace=workspace)

    assert result.value == "made"
    assert (workspace / "made.txt").read_text() == "made\n"
    (step,) = result.steps
    assert step.content == "it is made"
    extract = Usage(input_tokens=10, output_tokens=5, calls=1)
    agent = Usage(input_tokens=100, cached_tokens=40, output_tokens=10, calls=1, cost_micros=12300)
    assert step.usage == agent + extract
    replay = await engine.replay(fake_workflow("done"), result.thread_id)
    assert (replay.steps, replay.requests) == (1, 2)
    asked = await requests(engine, fake_workflow("done"), result.thread_id)
    assert asked["agent/run/0"]["command"][0] == "claude"  # not where it is on this machine
    assert asked["agent/run/0"]["prompt"].startswith("Make it.\n\n## Task")


async def killed(tmp_path: Path, workspace: Path, does: str, marker: str) -> None:
    """Run a thread in another process, and kill that while the agent is at work."""
    command = [sys.executable, __file__, str(tmp_path / "store.sqlite3")]
    process = await anyio.open_process(
        [*command, str(workspace), does], env={**os.environ, "HOME": marker}
    )
    async with process:
        await at_work(workspace)
        with anyio.fail_after(20):  # it, the supervisor, the agent, what that began
            while len(await left_over(marker)) < 4:  # noqa: ASYNC110 - processes
                await anyio.sleep(0.02)
        process.kill()
        await process.wait()


async def left_over(marker: str) -> list[int]:
    """Processes that have the marker in their environment."""
    found: list[int] = []
    async for folder in anyio.Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if marker.encode() in await (folder / "environ").read_bytes():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


async def test_when_its_process_is_killed_the_agent_dies_and_a_person_lets_its_session_go_on(
    tmp_path: Path, workspace: Path
) -> None:
    marker = f"/marker/{os.getpid()}/1"
    await killed(tmp_path, workspace, "hang", marker)
    with anyio.fail_after(5):
        while await left_over(marker):  # noqa: ASYNC110 - processes
            await anyio.sleep(0.02)

    async with open_store(tmp_path / "store.sqlite3") as store:
        engine, workflow = Engine(store), fake_workflow("hang")
        (thread_id,) = await list_threads(store)
        asked = await engine.resume(workflow, thread_id)
        assert (asked.state, asked.cause) == ("suspended", "question")
        ((key, question),) = (await engine.questions(thread_id)).items()
        assert question.text == (
            "claude was at work when its process died or was stopped, so nobody knows what it did. "
            "Check what it changed in the workspace: may it go on in its session "
            f"{SESSION}?"
        )
        assert question.details.endswith(f"--fake hang --resume {SESSION}")
        assert not (workspace / "made.txt").exists()

        await engine.answer(thread_id, key, Answer(approved=True, text="The tests are missing."))
        done = await engine.resume(fake_workflow("hang"), thread_id)

        assert done.value == "made"
        assert (workspace / "made.txt").read_text() == "made\n"
        prompts = await requests(engine, fake_workflow("hang"), thread_id)
        assert "--resume" not in prompts["agent/run/0"]["command"]
        assert prompts["agent/run/1"]["command"][-2:] == ["--resume", SESSION]
        assert prompts["agent/run/1"]["prompt"].startswith(
            "Your work on the following was interrupted, and nobody knows how far it went. Check "
            "what is done already, then finish it.\n\nA person who looked says: The tests are "
            "missing.\n\nMake it.\n\n## Task"
        )


async def test_an_agent_that_was_killed_before_it_said_its_session_begins_again(
    tmp_path: Path, workspace: Path
) -> None:
    await killed(tmp_path, workspace, "hang-unsaid", f"/marker/{os.getpid()}/2")

    async with open_store(tmp_path / "store.sqlite3") as store:
        engine, workflow = Engine(store), fake_workflow("hang-unsaid")
        (thread_id,) = await list_threads(store)
        await engine.resume(workflow, thread_id)
        ((key, question),) = (await engine.questions(thread_id)).items()
        assert question.text.endswith("may it begin again, in a new session?")
        await engine.answer(thread_id, key, Answer(approved=True))

        done = await engine.resume(fake_workflow("hang-unsaid"), thread_id)

        assert done.value == "made"
        again = fake_workflow("hang-unsaid")
        assert (await engine.replay(again, thread_id)).steps == 1


async def test_pausing_kills_the_agent_and_a_person_may_decline_to_go_on(
    engine: Engine, workspace: Path
) -> None:
    thread_id = await paused(engine, workspace)
    await engine.resume(fake_workflow("hang"), thread_id)
    await engine.answer(thread_id, None, Answer(approved=False, text="it made a mess"))

    failed = await engine.resume(fake_workflow("hang"), thread_id)

    assert failed.state == "failed"
    assert isinstance(failed.error, AgentInterrupted)
    assert failed.summary == (
        "claude was interrupted, and a person decided not to go on: it made a mess; "
        "to begin the turn again, run `uwf thread resume --fresh`"
    )


async def paused(engine: Engine, workspace: Path) -> ThreadId:
    """Start a thread whose agent hangs, and pause it while that is at work."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start_in, engine, fake_workflow("hang"), workspace)
        await pause(engine, workspace)
    (thread_id,) = await list_threads(engine.store)
    return thread_id


async def start_in(engine: Engine, workflow: Workflow, workspace: Path) -> None:
    await engine.start(workflow, "Make it.", workspace=workspace)


async def pause(engine: Engine, workspace: Path) -> None:
    """Wait until the agent is at work, and pause its thread."""
    await at_work(workspace)
    (thread_id,) = await list_threads(engine.store)
    with anyio.fail_after(5):
        await engine.pause(thread_id)


async def at_work(workspace: Path) -> None:
    with anyio.fail_after(30):
        while not (workspace / "at_work").exists():  # noqa: ASYNC110 - another process makes it
            await anyio.sleep(0.02)


async def test_each_interruption_is_asked_about(engine: Engine, workspace: Path) -> None:
    def workflow() -> Any:  # an agent that can't go on in a session
        script = "touch at_work; test -e enough || sleep 1000; echo made"
        return workflow_of(create_cli_agent(command=["sh", "-c", script]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start_in, engine, workflow(), workspace)
        await pause(engine, workspace)
    (thread_id,) = await list_threads(engine.store)
    assert (await engine.resume(workflow(), thread_id)).cause == "question"
    await engine.answer(thread_id, None, Answer(approved=True))
    (workspace / "at_work").unlink()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.resume, workflow(), thread_id)
        await pause(engine, workspace)
    assert (await engine.resume(workflow(), thread_id)).cause == "question"
    await engine.answer(thread_id, None, Answer(approved=True))
    (workspace / "enough").touch()

    assert (await engine.resume(workflow(), thread_id)).value == "made"
    assert set(await requests(engine, workflow(), thread_id)) == {
        *("agent/run/0", "agent/run/1", "agent/run/2"),
    }


async def test_a_failure_is_recorded_and_not_paid_for_again(
    engine: Engine, workspace: Path
) -> None:
    script = "echo run >> runs; exit 3"
    workflow = workflow_of(create_cli_agent(command=["sh", "-c", script]))

    failed = await engine.start(workflow, "Make it.", workspace=workspace)
    again = await engine.resume(workflow, failed.thread_id)

    assert (failed.state, again.state, again.summary) == ("failed", "failed", failed.summary)
    assert isinstance(again.error, AgentFailed)
    assert isinstance(again.error.run, AgentRun)
    assert (workspace / "runs").read_text() == "run\n"
    await engine.resume(workflow, failed.thread_id, fresh=True)
    assert (workspace / "runs").read_text() == "run\nrun\n"


async def test_what_is_missing_can_be_mended_and_resumed(engine: Engine, workspace: Path) -> None:
    program = workspace / "agent"
    workflow = workflow_of(create_cli_agent(command=[str(program)]))
    failed = await engine.start(workflow, "Make it.", workspace=workspace)
    assert "is not installed" in failed.summary
    program.write_text("#!/bin/sh\necho made\n")
    program.chmod(0o755)

    assert (await engine.resume(workflow, failed.thread_id)).value == "made"


async def test_a_run_counts_against_the_limits_of_its_thread(
    engine: Engine, workspace: Path
) -> None:
    def limited(limits: Limits) -> Engine:
        return Engine(engine.store, limits=limits)

    refused = await limited(Limits(max_tokens=999_999)).start(
        fake_workflow("done"), "Make it.", workspace=workspace
    )
    assert (refused.state, refused.cause) == ("suspended", "limit")
    assert "'claude' may take 1000000" in refused.summary
    assert not (workspace / "made.txt").exists()

    priced = Limits(max_cost=30, prices={"claude": Price(input=10, output=50)})
    engine_of_priced = limited(priced)
    done = await engine_of_priced.resume(fake_workflow("done"), refused.thread_id)
    assert "'scripted' has no price" in done.summary  # the agent ran, the extracting model may not
    assert (workspace / "made.txt").read_text() == "made\n"


async def test_a_replay_needs_no_key(engine: Engine, workspace: Path) -> None:
    keys = ["sk-found"]

    def workflow() -> Workflow:
        env = {"A_KEY": Secret(lambda: keys[0])}
        return workflow_of(create_cli_agent(command=["sh", "-c", "echo $A_KEY"], env=env))

    done = await engine.start(workflow(), "Make it.", workspace=workspace)
    assert done.steps[0].content == "[key]"
    keys.clear()
    assert (await engine.replay(workflow(), done.thread_id)).steps == 1


async def test_keys_are_in_no_record(
    engine: Engine, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    for does in ("refused", "echo"):
        result = await engine.start(fake_workflow(does), "Make it.", workspace=workspace)
        assert "sk-very-secret" not in result.summary

    seen: set[Hash] = set()
    todo = list((await engine.store.refs()).values())
    while todo:
        stored = await engine.store.get(todo.pop())
        seen.add(stored.hash)
        todo += [each for each in stored.refs if each not in seen]
        assert b"sk-very-secret" not in stored.data
    assert len(seen) > 10


async def main(arguments: list[str]) -> None:
    """Run a thread in a process that is to be killed."""
    store, workspace, does = arguments
    async with open_store(Path(store)) as opened:
        await Engine(opened).start(fake_workflow(does), "Make it.", workspace=Path(workspace))


if __name__ == "__main__":
    anyio.run(main, sys.argv[1:])
