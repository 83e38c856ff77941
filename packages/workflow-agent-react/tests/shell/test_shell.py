import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from workflow_agent_react._errors import ToolError
from workflow_agent_react.shell._sandbox import SandboxMode, sandbox_fault
from workflow_agent_react.shell._shell import Shell
from workflow_util_agent._cgroups import group_parents

needs_sandbox = pytest.mark.skipif(bool(sandbox_fault()), reason=sandbox_fault())
MODES = pytest.mark.parametrize("sandbox", ["off", pytest.param("require", marks=needs_sandbox)])
WORDS = {"off": "no sandbox", "require": "sandbox"}


async def run(
    workspace: Path, command: str, *, sandbox: SandboxMode = "off", timeout_s: float = 20
) -> str:
    return await Shell(sandbox=sandbox, env={}).run(workspace, command, timeout_s=timeout_s)


def untimed(text: str) -> str:
    """Without how long it took, which is the machine's matter."""
    return re.sub(r"(?<=, )(under )?\d+ s(?=, )", "in time", text)


@MODES
async def test_both_streams_come_in_order_with_the_exit_code_and_the_mode(
    tmp_path: Path, sandbox: SandboxMode
) -> None:
    command = "echo one; echo two >&2; printf three; exit 3"

    assert untimed(await run(tmp_path, command, sandbox=sandbox)) == (
        f"one\ntwo\nthree\n[exit code 3, in time, {WORDS[sandbox]}]"
    )


@MODES
async def test_a_command_runs_in_the_workspace_without_input(
    tmp_path: Path, sandbox: SandboxMode
) -> None:
    text = await run(tmp_path, "cat; pwd; echo x > made", sandbox=sandbox)

    assert untimed(text) == f"{tmp_path}\n[exit code 0, in time, {WORDS[sandbox]}]"
    assert (tmp_path / "made").read_text() == "x\n"


@pytest.mark.slow
@MODES
async def test_a_command_may_take_its_time(tmp_path: Path, sandbox: SandboxMode) -> None:
    text = await run(tmp_path, "sleep 1.5; echo done", sandbox=sandbox)

    assert text.startswith("done\n[exit code 0, ")


@MODES
async def test_a_signal_is_named(tmp_path: Path, sandbox: SandboxMode) -> None:
    text = await run(tmp_path, "kill -SEGV $$", sandbox=sandbox)

    assert text.startswith("[exit code 139, SIGSEGV, ")


@MODES
async def test_out_of_time_gives_the_output_so_far_and_kills_everything(
    tmp_path: Path, sandbox: SandboxMode
) -> None:
    marker = f"1000.{os.getpid()}1"
    with anyio.fail_after(10), pytest.raises(ToolError) as caught:
        await run(
            tmp_path,
            f"echo part; setsid sleep {marker} & sleep {marker}",
            sandbox=sandbox,
            timeout_s=1,
        )

    assert str(caught.value) == (
        f"part\n[stopped: it took longer than 1 s; {WORDS[sandbox]}. "
        "Raise timeout_s or do less at once]"
    )
    assert not running(marker)


@MODES
async def test_what_holds_the_output_open_does_not_hold_up_the_end(
    tmp_path: Path, sandbox: SandboxMode
) -> None:
    marker = f"1000.{os.getpid()}2"
    with anyio.fail_after(5):
        text = await run(
            tmp_path, f"setsid sleep {marker} & sleep {marker} & echo started", sandbox=sandbox
        )

    assert text.startswith("started\n[exit code 0, ")
    assert not running(marker)


@MODES
async def test_cancelling_kills_at_once(tmp_path: Path, sandbox: SandboxMode) -> None:
    marker = f"1000.{os.getpid()}3"
    command = f"trap '' TERM INT HUP; setsid sleep {marker} & touch ready; sleep {marker}"
    cancelled = 0.0
    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(_quietly, tmp_path, command, sandbox)
            while not (tmp_path / "ready").exists():  # noqa: ASYNC110 - another process makes it
                await anyio.sleep(0.01)
            group.cancel_scope.cancel()
            cancelled = time.monotonic()

    assert time.monotonic() - cancelled < 1
    assert not running(marker)


@pytest.mark.slow
@MODES
async def test_cancelling_at_any_moment_of_the_start_leaves_nothing(
    tmp_path: Path, sandbox: SandboxMode
) -> None:
    marker = f"1000.{os.getpid()}5"
    command = f"setsid sleep {marker} & sleep {marker}"
    for moment in range(20):
        with anyio.fail_after(10):
            async with anyio.create_task_group() as group:
                group.start_soon(_quietly, tmp_path, command, sandbox)
                for _ in range(moment):
                    await anyio.lowlevel.checkpoint()
                time.sleep(0.05)  # noqa: ASYNC251 - a busy loop, while the command gets going
                group.cancel_scope.cancel()
    for ms in range(0, 60, 2):
        with anyio.move_on_after(ms / 1000):
            await _quietly(tmp_path, command, sandbox)

    assert not running(marker)


@MODES
@pytest.mark.parametrize("first", ["true", "kill -STOP $PPID"])
def test_when_the_engine_is_killed_its_commands_are(
    tmp_path: Path, sandbox: SandboxMode, first: str
) -> None:
    marker = f"1000.{os.getpid()}6"
    engine = (
        "import anyio\n"
        "from pathlib import Path\n"
        "from workflow_agent_react.shell._shell import Shell\n"
        f"command = '{first}; setsid sleep {marker} & touch ready; sleep {marker}'\n"
        f"shell = Shell(sandbox={sandbox!r}, env={{}})\n"
        f"anyio.run(lambda: shell.run(Path({str(tmp_path)!r}), command, timeout_s=60))\n"
    )
    with subprocess.Popen([sys.executable, "-c", engine]) as process:
        wait_until((tmp_path / "ready").exists)
        assert running(marker)
        process.kill()

    wait_until(lambda: not running(marker))
    wait_until(lambda: not groups_of(process.pid))


@needs_sandbox
async def test_a_command_that_kills_what_watches_it_in_the_sandbox_is_ended_too(
    tmp_path: Path,
) -> None:
    marker = f"1000.{os.getpid()}8"
    command = f"pkill -KILL -f '[r]ead -r _' && echo killed; setsid sleep {marker} & sleep {marker}"
    with anyio.fail_after(10), pytest.raises(ToolError, match=r"killed\n\[stopped: "):
        await run(tmp_path, command, sandbox="require", timeout_s=1)

    assert not running(marker)


@needs_sandbox
@pytest.mark.parametrize("whom", ["-1", "1", "$PPID"])
async def test_a_command_that_stops_what_watches_it_in_the_sandbox_is_ended_too(
    tmp_path: Path, whom: str
) -> None:
    marker = f"1000.{os.getpid()}9"
    command = f"kill -STOP {whom}; setsid sleep {marker} & sleep {marker}"
    with anyio.fail_after(10), pytest.raises(ToolError, match="stopped: "):
        await run(tmp_path, command, sandbox="require", timeout_s=0.3)

    assert not running(marker)


@needs_sandbox
async def test_a_killed_sandbox_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    marker = f"1000.{os.getpid()}7"
    texts: list[str] = []

    async def start() -> None:
        command = f"touch ready; sleep {marker} & sleep {marker}"
        texts.append(await run(tmp_path, command, sandbox="require"))

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(start)
            await to_thread.run_sync(wait_until, (tmp_path / "ready").exists)
            await anyio.run_process(["pkill", "-KILL", "-o", "-f", f"^[^ ]*bwrap .*{marker}"])

    assert [untimed(text) for text in texts] == [
        "Killed\n[exit code 137, SIGKILL, in time, sandbox]"
    ]
    assert not running(marker)


def groups_of(pid: int) -> list[str]:
    """Control groups for commands of an engine."""
    return [
        name
        for parent in group_parents()
        for name in os.listdir(parent.folder)
        if name.startswith(f"uwf-{pid}-")
    ]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


async def _quietly(workspace: Path, command: str, sandbox: SandboxMode) -> None:
    await run(workspace, command, sandbox=sandbox)


def running(marker: str) -> bool:
    # A killed process stays for a moment until its parent has reaped it.
    found = subprocess.run(["ps", "-A", "-o", "stat=,args="], capture_output=True, text=True)
    return any(
        marker in line and not line.startswith("Z") and "sleep" in line
        for line in found.stdout.splitlines()
    )


async def test_a_command_that_kills_its_supervisor_is_killed_too(tmp_path: Path) -> None:
    marker = f"1000.{os.getpid()}4"
    with anyio.fail_after(5):
        text = await run(
            tmp_path, f"echo before; kill -KILL $PPID; sleep {marker} & sleep {marker}"
        )

    assert untimed(text) == "before\n[ended by SIGKILL, in time, no sandbox]"
    assert not running(marker)


async def test_much_output_is_kept_at_both_ends_in_bounded_memory(tmp_path: Path) -> None:
    shell = Shell(sandbox="off", env={}, max_output_bytes=200)

    text = await shell.run(tmp_path, "seq 1 1000000; echo last", timeout_s=30)

    head, cut, tail = text.partition("[… 6888701 bytes left out here …]\n")
    assert cut
    assert head.startswith("1\n2\n3\n")
    assert len(head) <= 101
    assert "\n1000000\nlast\n[6888701 bytes of output in the middle were not kept; " in tail
    assert "\n[exit code 0, " in tail


async def test_megabytes_of_output_are_kept_whole_without_colours_and_frames(
    tmp_path: Path,
) -> None:
    frames = r"printf '\033[31mred\033[0m\r\n 10%%\r 50%%\r100%%\n'"

    text = await run(tmp_path, f"{frames}; seq 1 1000000")

    numbers = "".join(f"{number}\n" for number in range(1, 1_000_001))
    assert text.startswith("red\n100%\n" + numbers + "[exit code 0, ")


async def test_commands_run_at_the_same_time(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "meet")

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run, tmp_path, "echo x > meet")
            group.start_soon(run, tmp_path, "read line < meet")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "the command is empty"),
        (" \n", "the command is empty"),
        ("echo \0", "contains a null character"),
        ("echo \ud800", "can't be run: surrogates not allowed"),
        ("#" * 100_001, "longer than 100000 bytes; write a script"),
    ],
)
async def test_a_command_that_cannot_be_run_is_told(
    tmp_path: Path, command: str, message: str
) -> None:
    with pytest.raises(ToolError, match=message):
        await run(tmp_path, command)


async def test_a_long_command_is_run(tmp_path: Path) -> None:
    assert (await run(tmp_path, "echo ok #" + "x" * 99_000)).startswith("ok\n")


async def test_a_workspace_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="the workspace folder doesn't exist"):
        await run(tmp_path / "gone", "true")


@pytest.mark.parametrize(
    ("took_s", "words"), [(0.01, "under 1 s"), (0.99, "under 1 s"), (1.2, "1 s"), (61.4, "61 s")]
)
async def test_the_same_command_with_the_same_outcome_gives_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took_s: float, words: str
) -> None:
    clock = SimpleNamespace(monotonic=iter([5.0, 5.0 + took_s]).__next__)
    monkeypatch.setattr("workflow_util_agent.process.time", clock)

    assert await run(tmp_path, "echo x") == f"x\n[exit code 0, {words}, no sandbox]"
