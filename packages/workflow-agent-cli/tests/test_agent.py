"""Agents as processes: a fake one that speaks like claude, and plain commands."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from workflow_agent_cli import (
    AgentFailed,
    AgentNotInstalled,
    AgentOutputTooLarge,
    AgentProfile,
    AgentRun,
    AgentSetupError,
    AgentTimedOut,
    CliAgentError,
    create_cli_agent,
)
from workflow_protocol import (
    AgentFn,
    DirectJournal,
    Event,
    ModelReplied,
    RoundStarted,
    StartStep,
    ThreadContext,
    ThreadId,
    ToolFinished,
    ToolStarted,
    Usage,
)
from workflow_reactor import Secret

FAKE = str(Path(__file__).with_name("fake_agent.py"))
SESSION = "5e551017-0000-4000-8000-000000000001"
NEXT = "to begin the turn again, run `uwf thread resume --fresh`"


@dataclass
class Notes(DirectJournal):
    events: list[Event] = field(default_factory=list[Event])

    async def note(self, event: Event) -> None:
        self.events.append(event)


def context(workspace: Path, prompt: str = "Make it.") -> ThreadContext:
    start = StartStep(prompt=prompt, workspace=workspace, timestamp_ms=0)
    return ThreadContext(thread_id=ThreadId("T"), start=start, journal=Notes())


def fake(does: str, **settings: Any) -> AgentFn:
    more = ["--fake", does]
    return create_cli_agent("claude", executable=FAKE, more_arguments=more, **settings)


async def failure(agent: AgentFn, workspace: Path) -> CliAgentError:
    with anyio.fail_after(30), pytest.raises(CliAgentError) as caught:
        await agent(context(workspace), "You make things.")
    return caught.value


async def test_it_works_in_the_workspace_and_says_what_it_does(tmp_path: Path) -> None:
    ctx = context(tmp_path)

    assert await fake("done")(ctx, "You make things.") == "it is made"
    assert (tmp_path / "made.txt").read_text() == "made\n"
    assert isinstance(ctx.journal, Notes)
    began, called, ended, replied = ctx.journal.events
    key, arguments = "run/0/tool/0", '{"command": "make it"}'
    assert began == RoundStarted(
        key="run/0", round=0, max_rounds=1, model="claude", provider="claude"
    )
    assert called == ToolStarted(key=key, name="Bash", arguments=arguments, call_id="t1")
    assert isinstance(ended, ToolFinished)
    assert (ended.key, ended.name, ended.ok, ended.summary) == (key, "Bash", True, '"ok"')
    usage = Usage(input_tokens=100, cached_tokens=40, output_tokens=10, calls=1, cost_micros=12300)
    assert isinstance(replied, ModelReplied)
    assert (replied.usage, replied.text) == (usage, "it is made")


async def test_it_gets_the_roles_prompt_and_the_thread_and_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-foreign")
    monkeypatch.setenv("MINE", "mine")
    agent = fake("echo", model="some-model", env={"GIVEN": Secret("given")}, inherit=["MINE"])

    said = json.loads(await agent(context(tmp_path), "You make things."))

    assert said["prompt"].startswith("You make things.\n\n## Task\n\nMake it.\n\n## Workspace")
    assert said["arguments"][-4:] == ["--model", "some-model", "--fake", "echo"]
    assert said["env"]["MINE"] == "mine"
    assert said["env"]["GIVEN"] == "[key]"  # it was said, but is not kept
    assert "sk-foreign" not in said["env"].values()


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["sh", "-c", "cat"], "You make things."),
        (["sh", "-c", 'printf "%s" "$1"; cat', "sh", "{prompt}"], "You make things."),
        (["sh", "-c", "printf 'caf\\351 \\n\\n'"], "caf\ufffd"),
    ],
)
async def test_any_command_that_prints_its_final_text_is_an_agent(
    tmp_path: Path, command: Sequence[str], said: str
) -> None:
    text = await create_cli_agent(command=command)(context(tmp_path), "You make things.")

    assert text.partition("\n")[0] == said


async def test_what_a_plain_command_took_is_not_known(tmp_path: Path) -> None:
    ctx = context(tmp_path)
    await create_cli_agent(command=["echo", "done"])(ctx, "")

    assert isinstance(ctx.journal, Notes)
    replied = ctx.journal.events[-1]
    assert isinstance(replied, ModelReplied)
    assert replied.usage == Usage(calls=1, unknown_calls=1)


async def test_a_prompt_of_any_length_goes_over_standard_input(tmp_path: Path) -> None:
    task = "lone \ud800 and much " + "x" * 300_000
    agent = create_cli_agent(command=["sh", "-c", "wc -c"])

    assert int(await agent(context(tmp_path, task), "")) > 300_000


async def test_odd_lines_and_bytes_are_read_over(tmp_path: Path) -> None:
    assert await fake("odd")(context(tmp_path), "") == "half ?"


async def test_a_long_line_that_is_not_the_result_is_left_out(tmp_path: Path) -> None:
    assert await fake("long-line", max_output_bytes=50_000)(context(tmp_path), "") == "it is made"


async def test_an_agent_that_is_not_installed_is_named_with_how_to_get_it(tmp_path: Path) -> None:
    error = await failure(create_cli_agent("claude", executable="no-such-claude"), tmp_path)

    assert isinstance(error, AgentNotInstalled)
    assert (error.command, error.run) == ("no-such-claude", None)
    assert str(error) == (
        "'no-such-claude' is not installed, or not on PATH; install it with `npm install -g "
        "@anthropic-ai/claude-code`, or give its path as `executable`, then resume the thread"
    )


async def test_a_workspace_that_is_gone_is_told(tmp_path: Path) -> None:
    error = await failure(fake("done"), tmp_path / "gone")

    assert isinstance(error, AgentSetupError)
    assert str(error) == (
        f"the workspace '{tmp_path / 'gone'}' is not a folder; create it again, then resume"
    )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"env": {"A": "b\0"}}, "the variable 'A' can't be passed to a process"),
        ({"env": {"A=B": "c"}}, "the variable 'A=B' can't be passed"),
        ({"model": "m\0"}, r"the argument 'm\\x00' can't be passed"),
    ],
)
async def test_what_no_process_can_be_given_is_told(
    tmp_path: Path, settings: dict[str, Any], reason: str
) -> None:
    with pytest.raises(AgentSetupError, match=reason):
        await fake("done", **settings)(context(tmp_path), "")


async def test_a_prompt_that_is_too_long_for_an_argument_is_told(tmp_path: Path) -> None:
    agent = create_cli_agent(command=["echo", "{prompt}"])

    with pytest.raises(AgentSetupError, match=r"takes it as an argument of at most 131071"):
        await agent(context(tmp_path, "x" * 131_000), "")
    assert len(await agent(context(tmp_path, "x" * 130_000), "")) > 130_000


async def test_a_failure_with_exit_code_0_is_a_failure(tmp_path: Path) -> None:
    error = await failure(fake("fails-with-0"), tmp_path)

    assert isinstance(error, AgentFailed)
    assert str(error) == (
        f"claude failed. It says: the disk is full. Its session is {SESSION}; {NEXT}"
    )
    assert error.run is not None
    assert error.run.usage.output_tokens == 10  # it is paid for all the same


async def test_a_refusal_names_the_provider_and_quotes_it_without_the_key(tmp_path: Path) -> None:
    error = await failure(fake("refused", env={"ANTHROPIC_API_KEY": "sk-secret"}), tmp_path)

    assert str(error) == (
        "claude failed (its provider answered 401, exit code 1). It says: 401 bad key [key]. "
        f"Its session is {SESSION}; {NEXT}"
    )
    assert error.run is not None
    assert (error.run.status, error.run.stderr) == (401, "key [key]\n")
    assert "sk-secret" not in repr(error.run)


@pytest.mark.parametrize(
    ("does", "words"),
    [
        ("max-turns", "claude failed. It says: error max turns."),
        ("breaks", "RuntimeError: a bug of its own"),
        ("unfinished", "claude failed. It says: it ended without reporting a result."),
        ("says-nothing", "claude failed. It says: it ended without any output."),
        ("cannot-start", "claude failed (exit code 1). It says: Invalid settings: see none"),
    ],
)
async def test_an_end_without_a_result_is_a_failure(tmp_path: Path, does: str, words: str) -> None:
    error = await failure(fake(does), tmp_path)

    assert isinstance(error, AgentFailed)
    assert words in str(error)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("echo why >&2; exit 3", "sh failed (exit code 3). It says: why"),
        ("echo why; exit 3", "sh failed (exit code 3). It says: why"),
        ("kill -SEGV $$", "sh failed (exit code 139, SIGSEGV); to begin the turn again"),
        ("true", "sh failed. It says: it ended without any output"),
        ("exec no-such-program", "no-such-program"),
    ],
)
async def test_a_command_that_fails_is_quoted(tmp_path: Path, script: str, words: str) -> None:
    error = await failure(create_cli_agent(command=["sh", "-c", script]), tmp_path)

    assert isinstance(error, AgentFailed)
    assert words in str(error)


async def test_long_words_are_cut_in_an_error_and_kept_in_its_run(tmp_path: Path) -> None:
    script = "seq 1 2000 >&2; exit 3"
    error = await failure(create_cli_agent(command=["sh", "-c", script]), tmp_path)

    assert str(error).startswith("sh failed (exit code 3). It says: 1\n2\n3\n")
    assert f"1999\n2000; {NEXT}" in str(error)
    assert len(str(error)) < 2200
    assert error.run is not None
    assert len(error.run.stderr) > 8000


async def test_a_command_line_that_the_system_refuses_is_told(tmp_path: Path) -> None:
    agent = create_cli_agent(command=["echo", *(["x" * 100_000] * 40)])

    error = await failure(agent, tmp_path)

    assert isinstance(error, AgentSetupError)
    assert str(error) == f"echo could not be started: Argument list too long; {NEXT}"


async def test_words_that_no_process_can_be_given_are_told(tmp_path: Path) -> None:
    error = await failure(create_cli_agent(command=["echo", "a\0b"]), tmp_path)

    assert isinstance(error, AgentSetupError)
    assert str(error) == f"echo could not be started: embedded null byte; {NEXT}"


async def test_no_room_for_temporary_files_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    error = await failure(create_cli_agent(command=["cat"]), tmp_path)

    assert isinstance(error, AgentSetupError)
    assert str(error) == f"cat could not be started: No such file or directory; {NEXT}"


async def test_a_program_that_cannot_be_run_is_told(tmp_path: Path) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/no/such/interpreter\n")
    program.chmod(0o755)

    error = await failure(create_cli_agent(command=[str(program)]), tmp_path)

    assert "agent failed (exit code 127). It says: " in str(error)


async def test_out_of_time_keeps_what_was_said_and_kills_everything(tmp_path: Path) -> None:
    marker = f"1000.{os.getpid()}1"
    error = await failure(fake("hang", timeout_s=1.5, env={"FAKE_SLEEP": marker}), tmp_path)

    assert isinstance(error, AgentTimedOut)
    assert error.run is not None
    assert (error.run.how, error.run.session_id) == ("timeout", SESSION)
    assert "claude was stopped after 2 s, which is its time limit" in str(error)
    assert not running(marker)


async def test_partial_text_of_a_plain_command_is_kept(tmp_path: Path) -> None:
    agent = create_cli_agent(command=["sh", "-c", "echo part; echo x >&2; sleep 1000"], timeout_s=1)

    error = await failure(agent, tmp_path)

    assert error.run == AgentRun(
        how="timeout", text="part", stderr="x\n", wall_s=error.run.wall_s if error.run else 0
    )


@pytest.mark.parametrize(
    "agent",
    [
        create_cli_agent(command=["yes"], max_output_bytes=100_000),
        fake("long-result", max_output_bytes=50_000),
    ],
    ids=["text", "line"],
)
async def test_output_without_end_is_stopped(tmp_path: Path, agent: AgentFn) -> None:
    error = await failure(agent, tmp_path)

    assert isinstance(error, AgentOutputTooLarge)
    assert error.run is not None
    assert len(error.run.text) <= 100_000


async def test_cancelling_kills_at_once(tmp_path: Path) -> None:
    marker = f"1000.{os.getpid()}2"
    agent = fake("hang", env={"FAKE_SLEEP": marker})
    began_s = 0.0
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent, context(tmp_path), "")
            while not (tmp_path / "at_work").exists():  # noqa: ASYNC110 - another process makes it
                await anyio.sleep(0.01)
            began_s = time.monotonic()
            tasks.cancel_scope.cancel()

    assert time.monotonic() - began_s < 2
    assert not running(marker)


def running(marker: str) -> bool:
    listed = subprocess.run(["ps", "-A", "-o", "stat=,args="], capture_output=True, text=True)
    return any(
        marker in line and not line.startswith("Z") and "sleep" in line
        for line in listed.stdout.splitlines()
    )


async def test_a_profile_of_your_own_reads_its_output_as_it_likes(tmp_path: Path) -> None:
    def read_line(line: bytes, reading: Any) -> tuple[Event, ...]:
        reading.finished, reading.text = True, json.loads(line)["answer"]
        return ()

    profile = AgentProfile(
        name="mine",
        command=sys.executable,
        arguments=["-c", "import sys; print('{\"answer\": \"' + sys.argv[2] + '\"}')"],
        model=["--model", "{model}"],
        read_line=read_line,
    )

    assert await create_cli_agent(profile, model="m1")(context(tmp_path), "") == "m1"


async def test_a_key_at_the_cut_of_a_summary_is_not_shown_in_part(tmp_path: Path) -> None:
    def read_line(line: bytes, reading: Any) -> tuple[Event, ...]:
        reading.finished, reading.text = True, "done"
        return (ToolFinished(name="sh", ok=True, summary=json.loads(line)["said"]),)

    said = json.dumps({"said": "x" * 190 + "sk-very-long-secret" + "y" * 100})
    profile = AgentProfile(
        name="mine", command="echo", arguments=[said], env=["A_KEY"], read_line=read_line
    )
    ctx = context(tmp_path)
    key = Secret("sk-very-long-secret")
    await create_cli_agent(profile, env={"A_KEY": key})(ctx, "")

    assert isinstance(ctx.journal, Notes)
    (finished,) = (each for each in ctx.journal.events if isinstance(each, ToolFinished))
    assert finished.summary == "x" * 190 + "[key]" + "y" * 5


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({}, "name an agent (claude, codex, hermes, opencode, qwen), or give command=['program'"),
        ({"agent": "claude", "command": ["x"]}, "name an agent"),
        ({"command": "rm -rf x"}, "name an agent"),
        (
            {"agent": "claud"},
            "there is no agent 'claud'; use one of claude, codex, hermes, opencode, qwen,",
        ),
        (
            {"command": ["x"], "model": "m"},
            "x has no option for a model; put the model into `command`",
        ),
        ({"agent": "claude", "timeout_s": 0}, "must be above 0"),
    ],
)
def test_what_cannot_work_is_told_at_once(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(AgentSetupError) as caught:
        create_cli_agent(arguments.pop("agent", None), **arguments)

    assert reason in str(caught.value)
