"""Ctrl-C, SIGTERM and SIGHUP: what they end, in order or at once."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import anyio.abc
import pytest

from workflow_reactor.testing import say

from ..cli import Cli, until
from ..entries import WAITING


@pytest.mark.parametrize(
    ("signals", "code", "state"),
    [
        (signal.SIGINT, 130, "cancelled"),
        (signal.SIGTERM, 130, "cancelled"),
        (signal.SIGKILL, -9, "interrupted"),
    ],
)
async def test_a_run_that_is_ended_from_outside_says_so_and_can_be_resumed(
    uwf: Cli, entry: Path, signals: signal.Signals, code: int, state: str
) -> None:
    asked = anyio.Event()

    async def stall(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            asked.set()
            await anyio.sleep_forever()

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    url = f"http://127.0.0.1:{port}/v1"
    assert (await uwf("setup", "--base-url", url, "--model", "m")).code == 0
    with anyio.fail_after(30):
        async with listener, anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, stall)
            async with await uwf.start("run", "hello.py", "Greet.") as process:
                await asked.wait()
                assert "running" in (await uwf("thread", "list")).out
                process.send_signal(signals)
                assert await process.wait() == code
            tasks.cancel_scope.cancel()
    assert f"state      {state}" in (await uwf("show")).out

    async with uwf.scripted([say('{"value": "Salut"}')]):
        assert (await uwf("thread", "resume")).out == '"Salut"\n'


SLOW_TO_END = """
import anyio
import uwf.terminal._signals
from workflow_execute.testing import in_turn

uwf.terminal._signals.REPEAT_S = 60.0  # however long the machine takes over sending the signals

async def turn(ctx):
    (ctx.start.workspace / "begun").touch()
    try:
        await anyio.sleep(20)
    finally:
        with anyio.CancelScope(shield=True), anyio.fail_after(20):
            while not (ctx.start.workspace / "go").exists():
                await anyio.sleep(0.02)

run = in_turn(turn)
"""


STUBBORN = """
import time
from workflow_execute.testing import in_turn

async def turn(ctx):
    (ctx.start.workspace / "begun").touch()
    time.sleep(20)
    return 1

run = in_turn(turn)
"""


@asynccontextmanager
async def running(uwf: Cli, code: str, *, ignoring: str = "") -> AsyncGenerator[anyio.abc.Process]:
    """A run of one role that has begun; a signal may have been ignored before."""
    uwf.write("waiting.py", code)
    trap = f"trap '' {ignoring};" if ignoring else ""
    command = f"{trap} exec {sys.executable} -m uwf run waiting.py x"
    async with await anyio.open_process(
        ["sh", "-c", command], cwd=uwf.folder, env=uwf.environment
    ) as process:
        await until((uwf.folder / "begun").exists)
        yield process


async def ended(process: anyio.abc.Process) -> tuple[int, bytes]:
    """Its exit code, and what it said after that the role had begun."""
    assert process.stderr is not None
    said = b"".join([part async for part in process.stderr])
    return await process.wait(), said


async def test_under_nohup_a_terminal_that_goes_away_ends_nothing(uwf: Cli) -> None:
    async with running(uwf, WAITING, ignoring="HUP") as process:
        process.send_signal(signal.SIGHUP)
        (uwf.folder / "go").touch()
        assert await process.wait() == 0


async def test_a_background_job_of_a_script_can_be_ended(uwf: Cli) -> None:
    """It ignores SIGINT."""
    async with running(uwf, WAITING, ignoring="INT") as process:
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        code, said = await ended(process)
        assert (code, b"Traceback" in said) == (130, False)
    assert "state      cancelled" in (await uwf("show")).out


async def test_signals_that_come_again_do_not_break_the_end(uwf: Cli) -> None:
    """As when a terminal is closed: SIGHUP comes from the system and from the shell."""
    async with running(uwf, SLOW_TO_END) as process:
        for _ in range(10):
            for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
                process.send_signal(number)
                await anyio.sleep(0.005)
        (uwf.folder / "go").touch()
        code, said = await ended(process)
        assert (code, b"Traceback" in said) == (130, False)
    assert "state      cancelled" in (await uwf("show")).out


async def press_ctrl_c(pid: int) -> None:
    """Again and again, since nobody is told when a process has heard the first."""
    with suppress(ProcessLookupError):
        while True:
            os.kill(pid, signal.SIGINT)
            await anyio.sleep(0.2)


async def test_a_second_ctrl_c_ends_what_the_first_could_not(uwf: Cli) -> None:
    async with running(uwf, STUBBORN) as process:
        code, said = 0, b""
        with anyio.fail_after(15):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(press_ctrl_c, process.pid)
                code, said = await ended(process)
                tasks.cancel_scope.cancel()
        assert (code, b"Traceback" in said) == (130, False)
        assert b"uwf: stopped at once, because the first Ctrl-C did not stop it" in said
    assert "state      interrupted" in (await uwf("show")).out


ENDED_AT_ITS_START = """
import atexit, os, signal, sys
from uwf import _main
from uwf._entry import main

def end(*arguments):
    os.kill(os.getpid(), signal.SIGHUP)
    os.kill(os.getpid(), signal.SIGTERM)

atexit.register(end)
_main.parse = end
sys.exit(main([]))
"""


SHIELDED = """
import os, signal
import anyio
from uwf.terminal._loop import run_async

async def main():
    with anyio.CancelScope(shield=True):
        os.kill(os.getpid(), signal.SIGTERM)
        await anyio.sleep(0.05)
        print("came to its end")
    await anyio.sleep(20)

run_async(main)
"""


DROPPED = """
import os, signal
import anyio
from uwf import _main
from uwf._entry import main
from uwf.terminal._loop import run_async

class Last:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)

async def work():
    await anyio.sleep(20)

def carry_out(arguments):
    del Last.last
    run_async(work)

Last.last = Last()
_main.parse = carry_out
raise SystemExit(main([]))
"""


def test_signals_that_come_again_before_and_after_the_work_are_one() -> None:
    ended = run_python(ENDED_AT_ITS_START)
    assert (ended.returncode, ended.stderr) == (130, "uwf: cancelled\n")


def test_a_signal_that_was_raised_where_python_drops_it_is_followed() -> None:
    ended = run_python(DROPPED)
    assert ended.returncode == 130
    assert "Exception ignored in: <function Last.__del__" in ended.stderr
    assert ended.stderr.endswith("\nuwf: cancelled\n")


def test_a_signal_lets_what_is_shielded_come_to_its_end() -> None:
    ended = run_python(SHIELDED)
    assert (ended.stdout, "KeyboardInterrupt" in ended.stderr) == ("came to its end\n", True)


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
