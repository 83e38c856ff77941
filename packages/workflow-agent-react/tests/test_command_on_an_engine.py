"""A command as a role: a gate whose result the table decides on, run once and gone afterwards."""

import os
import re
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_agent_react import CommandNotRun, CommandResult, command_adapter
from workflow_agent_react._command import shown
from workflow_agent_react.shell._sandbox import SandboxMode, sandbox_fault
from workflow_cas import SqliteStore, open_store
from workflow_execute import (
    Engine,
    JournalMismatch,
    ThreadResult,
    Workflow,
    create_workflow,
    function_adapter,
    list_threads,
    run_workflow,
)
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    AdapterFn,
    Answer,
    DefinitionError,
    Effect,
    RoleDefinition,
    ThreadContext,
    WorkflowDefinition,
    when,
)

needs_sandbox = pytest.mark.skipif(bool(sandbox_fault()), reason=sandbox_fault())
MODES = pytest.mark.parametrize("sandbox", ["off", pytest.param("require", marks=needs_sandbox)])
WORDS = {"off": "no sandbox", "require": "sandbox"}

tests = RoleDefinition(name="tests", schema=CommandResult)
coder = RoleDefinition(name="coder", schema=str)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


def gate(adapter: AdapterFn) -> Workflow[str, CommandResult]:
    return create_workflow(
        WorkflowDefinition(table={START: tests, tests: END}, result=tests),
        AdapterBinding(overrides={tests: adapter}),
    )


def sh(script: str, **options: Any) -> AdapterFn:
    return command_adapter(["sh", "-c", script], **options)


def untimed(result: CommandResult) -> CommandResult:
    output = re.sub(r"(?<=, )(under )?\d+ s(?=, )", "in time", result.output)
    return CommandResult(exit_code=result.exit_code, passed=result.passed, output=output)


@MODES
@pytest.mark.parametrize("code", [0, 1, 77])
async def test_the_exit_code_says_whether_it_passed(
    folder: Path, sandbox: SandboxMode, code: int
) -> None:
    run = gate(sh(f"echo out; echo err >&2; exit {code}", sandbox=sandbox))

    result = await run_workflow(run, "go", workspace=folder)

    output = f"out\nerr\n[exit code {code}, in time, {WORDS[sandbox]}]"
    assert untimed(result.value) == CommandResult(exit_code=code, passed=not code, output=output)


@MODES
async def test_it_works_in_the_workspace_and_its_words_are_no_shell_s(
    folder: Path, sandbox: SandboxMode
) -> None:
    run = gate(command_adapter(["touch", "a b; $(touch c)", "*"], sandbox=sandbox))

    result = await run_workflow(run, "go", workspace=folder)

    assert result.value.passed
    assert sorted(os.listdir(folder)) == ["*", "a b; $(touch c)"]


@MODES
async def test_out_of_time_it_is_killed_and_has_not_passed(
    folder: Path, sandbox: SandboxMode
) -> None:
    marker = f"1000.{os.getpid()}11"
    adapter = sh(f"echo part; setsid sleep {marker} & sleep {marker}", sandbox=sandbox, timeout_s=1)

    result = await run_workflow(gate(adapter), "go", workspace=folder)

    words = f"part\n[stopped: it took longer than 1 s; {WORDS[sandbox]}]"
    assert result.value == CommandResult(exit_code=None, passed=False, output=words)
    assert not is_running(marker)


async def test_much_output_is_kept_at_both_ends(folder: Path) -> None:
    adapter = sh("seq 100000", sandbox="off", max_output_bytes=2000)

    output = (await run_workflow(gate(adapter), "go", workspace=folder)).value.output

    assert output.startswith("1\n2\n")
    assert "bytes left out here" in output
    assert "\n100000\n[" in output
    assert len(output) < 2400


async def test_what_is_no_program_has_not_passed(folder: Path) -> None:
    run = gate(command_adapter(["no-such-program"], sandbox="off"))

    result = (await run_workflow(run, "go", workspace=folder)).value

    assert (result.exit_code, result.passed) == (127, False)
    assert "no-such-program" in result.output


async def test_a_gate_sends_the_coder_back_until_it_passes(folder: Path) -> None:
    def passed(ctx: ThreadContext) -> bool:
        result = ctx.meta(tests)
        return result is not None and result.passed

    def complaint(ctx: ThreadContext) -> str:
        result = ctx.meta(tests)
        assert result is not None
        return result.output

    def code(ctx: ThreadContext) -> str:
        (ctx.start.workspace / f"part{ctx.visits(coder)}").touch()
        return ctx.told

    def all_parts(ctx: ThreadContext) -> Sequence[str]:
        return ["ls", *(f"part{number}" for number in range(2))]

    run = create_workflow(
        WorkflowDefinition(
            table={
                START: coder,
                coder: tests,
                tests: [
                    when(passed, END),
                    when(lambda ctx: True, coder, tell=complaint, name="no"),
                    END,
                ],
            },
        ),
        AdapterBinding(
            overrides={
                coder: function_adapter(coder, code),
                tests: command_adapter(all_parts, sandbox="off"),
            }
        ),
    )

    result = await run_workflow(run, "go", workspace=folder)

    assert [step.role for step in result.steps] == ["coder", "tests", "coder", "tests"]
    assert "part1" in str(result.steps[2].meta)


async def test_a_workspace_that_is_gone_fails_the_turn(folder: Path, store: SqliteStore) -> None:
    engine = Engine(store)

    def remove(ctx: ThreadContext) -> str:
        folder.rmdir()
        return ""

    run = create_workflow(
        WorkflowDefinition(table={START: coder, coder: tests, tests: END}),
        AdapterBinding(
            overrides={coder: function_adapter(coder, remove), tests: command_adapter(["ls"])}
        ),
    )

    failed = await engine.start(run, "go", workspace=folder)
    assert isinstance(failed.error, CommandNotRun)
    assert failed.summary == "ls: the workspace folder doesn't exist"
    await anyio.Path(folder).mkdir()
    assert (await engine.resume(run, failed.thread_id)).state == "completed"


async def begin(
    engine: Engine, run: Workflow[str, CommandResult], folder: Path
) -> ThreadResult[CommandResult]:
    """Stop the thread when the command has made the file `ready`."""
    results: list[ThreadResult[CommandResult]] = []

    async def stop() -> None:
        while not (folder / "ready").exists():  # noqa: ASYNC110 - another process makes it
            await anyio.sleep(0.01)
        (thread_id,) = await list_threads(engine.store)
        await engine.cancel(thread_id)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stop)
            results.append(await engine.start(run, "go", workspace=folder))
    return results[0]


HANGS_ONCE = "[ -e ready ] && exit 0; touch ready; setsid sleep {0} & sleep {0}"


@MODES
async def test_a_stop_kills_all_of_it_and_a_person_says_whether_it_runs_again(
    folder: Path, store: SqliteStore, sandbox: SandboxMode
) -> None:
    marker = f"1000.{os.getpid()}12"
    engine, run = Engine(store), gate(sh(HANGS_ONCE.format(marker), sandbox=sandbox))

    stopped = await begin(engine, run, folder)
    assert stopped.state == "cancelled"
    assert not is_running(marker)
    waits = await engine.resume(run, stopped.thread_id)
    (question,) = (await engine.questions(stopped.thread_id)).values()
    assert (waits.state, waits.cause) == ("suspended", "question")
    assert question.details.startswith("sh -c '[ -e ready ]")
    await engine.answer(stopped.thread_id, None, Answer(approved=True))
    done = await engine.resume(run, stopped.thread_id)

    assert done.value.passed
    assert (await engine.replay(run, stopped.thread_id)).steps == 1


async def test_one_that_may_run_twice_simply_does(folder: Path, store: SqliteStore) -> None:
    marker = f"1000.{os.getpid()}13"
    engine = Engine(store)
    run = gate(sh(HANGS_ONCE.format(marker), sandbox="off", effect=Effect.REPEATABLE))

    stopped = await begin(engine, run, folder)

    assert (await engine.resume(run, stopped.thread_id)).value.passed


async def test_another_command_does_not_get_the_old_result(
    folder: Path, store: SqliteStore
) -> None:
    engine = Engine(store)
    run = gate(command_adapter(["touch", "made"], sandbox="off"))
    done = await engine.start(run, "go", workspace=folder)

    with pytest.raises(JournalMismatch):
        await engine.replay(gate(command_adapter(["touch", "other"])), done.thread_id)
    (folder / "made").unlink()
    assert (await engine.replay(run, done.thread_id)).steps == 1
    assert os.listdir(folder) == []


@pytest.mark.slow
@MODES
def test_a_killed_process_takes_the_command_with_it(tmp_path: Path, sandbox: SandboxMode) -> None:
    marker = f"1000.{os.getpid()}14"
    engine = f"""
import anyio
from pathlib import Path
from workflow_agent_react import CommandResult, command_adapter
from workflow_cas import open_store
from workflow_execute import Engine, create_workflow, list_threads
from workflow_protocol import (
    END, START, AdapterBinding, Answer, RoleDefinition, WorkflowDefinition
)
folder = Path({str(tmp_path)!r})
role = RoleDefinition(name="tests", schema=CommandResult)
script = {HANGS_ONCE.format(marker)!r}
run = create_workflow(
    WorkflowDefinition(table={{START: role, role: END}}, result=role),
    AdapterBinding(command_adapter(["sh", "-c", script], sandbox={sandbox!r})),
)
async def main():
    async with open_store(folder / "store.sqlite3") as store:
        engine = Engine(store, locks=folder / "locks")
        for thread_id in await list_threads(store):
            waits = await engine.resume(run, thread_id)
            assert waits.cause == "question", waits
            await engine.answer(thread_id, None, Answer(approved=True))
            assert (await engine.resume(run, thread_id)).value.passed
            return
        await engine.start(run, "go", workspace=folder)
anyio.run(main)
"""
    with subprocess.Popen([sys.executable, "-c", engine]) as process:
        wait_until((tmp_path / "ready").exists)
        assert is_running(marker)
        process.kill()
    wait_until(lambda: not is_running(marker))

    subprocess.run([sys.executable, "-c", engine], check=True, timeout=30)


def test_a_role_with_another_schema_is_refused_when_the_workflow_is_built() -> None:
    role = RoleDefinition(name="tests", schema=bool)

    with pytest.raises(DefinitionError) as caught:
        create_workflow(
            WorkflowDefinition(table={START: role, role: END}),
            AdapterBinding(command_adapter(["true"])),
        )

    (fault,) = caught.value.faults
    assert fault == (
        "role 'tests'",
        "its adapter runs a command; give the role schema=CommandResult",
    )


BAD: list[tuple[Any, str]] = [
    ("pytest -q", "give a list with a string for each argument"),
    ([], "the command is empty"),
    (["ls", 3], "has 3 in it"),
    (["ls", "a\0b"], "null character"),
    (7, "of type int; give a list of strings"),
]


@pytest.mark.parametrize(("command", "words"), BAD)
async def test_what_is_no_command_is_told_at_once(folder: Path, command: Any, words: str) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        command_adapter(command)

    def give(ctx: ThreadContext) -> Any:
        return command

    failed = await run_workflow(gate(command_adapter(give)), "go", workspace=folder)
    assert words in failed.summary
    assert isinstance(failed.error, TypeError | ValueError)


@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
def test_a_command_is_shown_so_that_a_shell_would_read_the_same(words: list[str]) -> None:
    import shlex

    assert shlex.split(shown(words)) == words


def is_running(marker: str) -> bool:
    found = subprocess.run(["ps", "-A", "-o", "stat=,args="], capture_output=True, text=True)
    return any(
        marker in line and not line.startswith("Z") and "sleep" in line
        for line in found.stdout.splitlines()
    )


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
