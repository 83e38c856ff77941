import asyncio  # noqa: TID251 - its own cancellation is what is tested
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from workflow_util_agent.process import (
    ProcessNotStarted,
    ProcessResult,
    run_command,
)

ENV = {"PATH": os.environ["PATH"]}


async def run(
    folder: Path,
    script: str,
    *,
    stdin: bytes = b"",
    timeout_s: float = 20,
) -> tuple[ProcessResult, bytes]:
    """Run a shell script with its standard output apart; the process, and that output."""
    collected = bytearray()

    async def collect(data: bytes) -> None:
        collected.extend(data)

    ran = await run_command(
        ["sh", "-c", script],
        cwd=folder,
        env=ENV,
        timeout_s=timeout_s,
        max_output_bytes=1000,
        adopt=True,
        stdin=stdin,
        on_stdout=collect,
    )
    return ran, bytes(collected)


async def test_standard_output_can_be_taken_apart_from_errors(tmp_path: Path) -> None:
    ran, output = await run(tmp_path, "echo out; echo err >&2; exit 3")

    assert (output, ran.output, ran.exit_code) == (b"out\n", "err\n", 3)


async def test_a_command_can_be_given_its_input(tmp_path: Path) -> None:
    data = b"much \0 \xff\n" * 100_000

    ran, output = await run(tmp_path, "cat; readlink /proc/self/fd/0 >&2", stdin=data)

    assert output == data
    assert "(deleted)" in ran.output  # nobody else can find it


async def test_much_on_both_streams_does_not_block(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        ran, output = await run(tmp_path, "seq 1 100000; seq 1 100000 >&2; echo last")

    assert output.endswith(b"100000\nlast\n")
    assert "bytes left out here" in ran.output


async def test_what_the_taker_of_the_output_raises_ends_the_command(tmp_path: Path) -> None:
    async def refuse(data: bytes) -> None:
        raise ValueError(data)

    with anyio.fail_after(10), pytest.raises(ValueError, match="first"):
        await run_command(
            ["sh", "-c", "echo first; sleep 1000"],
            cwd=tmp_path,
            env=ENV,
            timeout_s=1000,
            max_output_bytes=1000,
            adopt=True,
            on_stdout=refuse,
        )


async def test_out_of_time_keeps_what_was_taken(tmp_path: Path) -> None:
    with anyio.fail_after(10):
        ran, output = await run(tmp_path, "echo part; echo why >&2; sleep 1000", timeout_s=0.5)

    assert (output, ran.output, ran.exit_code) == (b"part\n", "why\n", None)


@pytest.mark.slow
async def test_asyncios_own_cancellation_at_any_moment_of_the_start_leaves_nothing(
    tmp_path: Path,
) -> None:
    """It gets through every shield of anyio."""
    marker = f"1000.{os.getpid()}6"
    for moment in range(20):
        running = asyncio.ensure_future(run(tmp_path, f"sleep {marker} & sleep {marker}"))
        for _ in range(moment):
            await anyio.lowlevel.checkpoint()
        time.sleep(0.05)  # noqa: ASYNC251 - a busy loop, while the command gets going
        running.cancel()
        with anyio.fail_after(5), pytest.raises(asyncio.CancelledError):
            await running

    assert not running_with(marker)


def running_with(marker: str) -> bool:
    found = subprocess.run(["pgrep", "-f", marker], capture_output=True, check=False)
    return found.stdout != b""


async def test_a_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProcessNotStarted, match="could not be started: No such file") as caught:
        await run(tmp_path / "gone", "true")

    assert caught.value.reason == "No such file or directory"


async def test_no_room_for_the_input_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(ProcessNotStarted, match="could not be started: No such file"):
        await run(tmp_path, "cat", stdin=b"x")


async def test_what_no_argument_can_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(ProcessNotStarted, match="could not be started: embedded null byte"):
        await run(tmp_path, "echo \0")


STOPS = {
    "once": "kill -STOP $PPID",
    "again and again": "(while :; do kill -STOP $PPID; done) &",
    "from outside its session": 'p=$PPID; setsid sh -c "while :; do kill -STOP $p; done" &',
}


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS.keys())
@pytest.mark.parametrize("ends_by", ["its time", "cancelling"])
async def test_a_command_that_stops_its_supervisor_is_ended_all_the_same(
    tmp_path: Path, stop: str, ends_by: str
) -> None:
    marker = f"1000.{os.getpid()}7"
    script = f"{stop}\nsetsid sleep {marker} & touch ready; sleep {marker}"

    with anyio.fail_after(10):
        if ends_by == "its time":
            ran, _ = await run(tmp_path, script, timeout_s=0.5)
            assert ran.exit_code is None
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(run, tmp_path, script)
                while not (tmp_path / "ready").exists():  # noqa: ASYNC110 - another process makes it
                    await anyio.sleep(0.01)
                group.cancel_scope.cancel()

    assert not running_with(marker)


async def test_a_command_that_stops_its_supervisor_and_ends_is_told_with_its_code(
    tmp_path: Path,
) -> None:
    with anyio.fail_after(10):
        ran, output = await run(tmp_path, "echo out; kill -STOP $PPID; exit 3")

    assert (output, ran.exit_code) == (b"out\n", 3)


async def test_on_windows_a_command_says_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")

    with pytest.raises(ProcessNotStarted, match="commands run on Linux and macOS; on Windows"):
        await run(tmp_path, "true")


async def test_a_caller_can_talk_with_a_command_while_it_runs(tmp_path: Path) -> None:
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    errors, theirs_err = os.pipe()
    results: list[ProcessResult] = []

    async def serve() -> None:
        results.append(
            await run_command(
                ["sh", "-c", "while read -r line; do echo got $line; done; echo bye >&2; exit 4"],
                cwd=tmp_path,
                env=ENV,
                timeout_s=20,
                max_output_bytes=1000,
                adopt=True,
                stdio=(theirs_in, theirs_out, theirs_err),
            )
        )

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(serve)
            for word in (b"one", b"two"):
                os.write(ours_out, word + b"\n")
                assert (
                    await anyio.to_thread.run_sync(os.read, ours_in, 100) == b"got " + word + b"\n"
                )
            os.close(ours_out)
    assert [os.read(each, 100) for each in (ours_in, errors)] == [b"", b"bye\n"]
    os.close(ours_in)
    os.close(errors)
    assert (results[0].exit_code, results[0].output) == (4, "")
    for each in (theirs_in, theirs_out, theirs_err):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(each)
