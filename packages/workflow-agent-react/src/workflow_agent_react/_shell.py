"""Running a shell command: bounded in time and output, and gone without a trace afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import msgspec
from anyio import move_on_after, to_thread
from anyio.abc import Process

from workflow_agent_react._sandbox import (
    SandboxMode,
    command_environment,
    sandbox_command,
    use_sandbox,
)
from workflow_agent_react._tool_errors import ToolError

DEFAULT_TIMEOUT_S = 60
MAX_TIMEOUT_S = 600
GRACE_S = 5.0
"""How long a killed command may take to go: it can be in the kernel (a slow disk)."""
_WATCH_S = 0.02
_MAX_COMMAND_BYTES = 100_000  # Linux takes 128 KiB in one argument (MAX_ARG_STRLEN)
_SUPERVISE = Path(__file__).with_name("_supervise.py")

# In a sandbox all processes die with its first one, so a shell is enough, which starts in 1 ms
# where the supervisor takes 13. Both scripts wait for the end of standard input. The inner one ends
# everything in the sandbox. The outer one is for a command that kills the inner one. It waits,
# because a bwrap that is killed while it starts leaves a half-made sandbox behind. Input is kept as
# descriptor 3, for a shell gives what it runs in the background an empty one.
_INSIDE = """
exec 3<&0 </dev/null
( (read -r _ <&3; kill -s KILL -- -1) >/dev/null 2>&1 & )
exec "$@" 3<&-
"""
_OUTSIDE = """
exec 3<&0
(read -r _ <&3; sleep 1; kill -s KILL 0) >/dev/null 2>&1 &
"$@" 3<&-
code=$?
kill -s KILL $! 2>/dev/null
exit $code
"""


class Shell(msgspec.Struct, frozen=True, kw_only=True):
    """How commands run."""

    sandbox: SandboxMode = "auto"
    env: Mapping[str, str]
    readable: Sequence[Path] = ()
    max_output_bytes: int = 64 * 1024

    async def run(self, workspace: Path, command: str, *, timeout_s: float) -> str:
        """Run a command with `sh -c` in the workspace; its output, and how it ended.

        Standard input is empty. Whatever the command leaves running is killed.

        Raises:
            ToolError: the time ran out (with the output so far), or it could not be started.
            SandboxUnavailable: a sandbox is required and there is none.
        """
        _must_be_usable(command)
        if not await anyio.Path(workspace).is_dir():
            raise ToolError("the workspace folder doesn't exist")
        sandboxed, words = await to_thread.run_sync(use_sandbox, self.sandbox)
        line = ["/bin/sh", "-c", command]
        if sandboxed:
            inside = ["/bin/sh", "-c", _INSIDE, "sh", *line]
            line = sandbox_command(workspace, inside, readable=self.readable)
        ran = await run_command(
            line,
            cwd=workspace,
            env=command_environment(self.env, sandboxed=sandboxed),
            timeout_s=timeout_s,
            max_output_bytes=self.max_output_bytes,
            adopt=not sandboxed,
        )
        if ran.exit_code is None:
            took = f"stopped: it took longer than {timeout_s:g} s"
            raise ToolError(f"{ran.output}[{took}; {words}. Raise timeout_s or do less at once]")
        return f"{ran.output}[{_ending(ran.exit_code)}, {_seconds(ran.wall_s)}, {words}]"


def _must_be_usable(command: str) -> None:
    if not command.strip():
        raise ToolError("the command is empty")
    try:
        data = os.fsencode(command)
    except UnicodeEncodeError as error:
        raise ToolError(f"the command can't be run: {error.reason}") from None
    if b"\0" in data:
        raise ToolError("the command contains a null character")
    if len(data) > _MAX_COMMAND_BYTES:
        raise ToolError(
            f"the command is longer than {_MAX_COMMAND_BYTES} bytes; write a script with "
            "write_file and run that"
        )


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a command went."""

    output: str
    """Both streams in the order they were written; ends in a newline unless empty."""
    exit_code: int | None
    """128 + n for signal n, -n if it was the supervisor's; `None` when the time ran out."""
    wall_s: float


async def run_command(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    timeout_s: float,
    max_output_bytes: int,
    adopt: bool,
) -> Ran:
    """Run a command and, on every way out, kill whatever is left of it.

    Args:
        adopt: look after processes that leave the session; not needed where the command is a
            sandbox with processes of its own.

    Raises:
        ToolError: it could not be started.
    """
    started = time.monotonic()
    process = await _start(command, cwd=cwd, env=env, adopt=adopt)
    output = HeadAndTail(max_output_bytes)
    try:
        with move_on_after(timeout_s) as limit:
            async with anyio.create_task_group() as group:
                group.start_soon(_watch, process)
                await _drain(process, output)
                await process.wait()
                group.cancel_scope.cancel()
    finally:
        with move_on_after(GRACE_S, shield=True):
            await _end(process, output)
        if process.returncode is None:
            process.kill()
            with move_on_after(GRACE_S, shield=True):
                await process.aclose()
    return Ran(
        output=output.text(),
        exit_code=None if limit.cancelled_caught else process.returncode,
        wall_s=time.monotonic() - started,
    )


async def _start(
    command: Sequence[str], *, cwd: Path, env: Mapping[str, str], adopt: bool
) -> Process:
    outside = ["/bin/sh", "-c", _OUTSIDE, "sh"]
    supervised = [sys.executable, "-I", "-S", str(_SUPERVISE)] if adopt else outside
    process: Process | None = None
    try:
        # A start that is cancelled half-way kills the supervisor, which then can't do its work.
        with anyio.CancelScope(shield=True):
            process = await anyio.open_process(
                [*supervised, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )
    except OSError as error:
        raise ToolError(f"the command could not be started: {error.strerror}") from error
    assert process is not None  # nobody cancels that scope
    return process


async def _end(process: Process, output: HeadAndTail) -> None:
    """Let go of the lifeline; its other end kills everything and ends, which ends the output."""
    assert process.stdin is not None
    await process.stdin.aclose()
    await _watch(process)
    with move_on_after(0.5):  # held open only by what left the session of a killed supervisor
        await _drain(process, output)
    await process.aclose()


async def _watch(process: Process) -> None:
    """Wait for the supervisor. If somebody killed it, do what is left of its work."""
    # Before cpython#119710 was mended, `wait` returned only when the output was closed as well.
    while process.returncode is None:  # noqa: ASYNC110
        await anyio.sleep(_WATCH_S)
    if process.returncode < 0:
        await to_thread.run_sync(_kill_session, process.pid)


def _kill_session(leader: int) -> None:
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, IndexError):
            # pid (name) state ppid pgrp session …; the name may hold anything, brackets too
            fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[3]) == leader:
                os.kill(int(pid), signal.SIGKILL)


async def _drain(process: Process, output: HeadAndTail) -> None:
    assert process.stdout is not None
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            output.add(await process.stdout.receive())


class HeadAndTail:
    """The beginning and the end of a stream, in bounded memory however long it is."""

    def __init__(self, max_bytes: int) -> None:
        self._half = max(max_bytes // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._half:
            self._trim()

    def _trim(self) -> None:
        extra = len(self._tail) - self._half
        if extra > 0:
            self._dropped += extra
            del self._tail[:extra]

    def text(self) -> str:
        """What was kept, as lines; says how much was left out in the middle."""
        self._trim()
        if not self._dropped:
            return _lines((self._head + self._tail).decode("utf-8", "replace"))
        # Cut between characters: continuation bytes are 0b10xxxxxx.
        head = self._head.decode("utf-8", "replace").rstrip("\ufffd")
        tail = self._tail.lstrip(bytes(range(0x80, 0xC0))).decode("utf-8", "replace")
        return f"{_lines(head)}[… {self._dropped} bytes left out here …]\n{_lines(tail)}"


def _lines(text: str) -> str:
    text = text.replace("\r\n", "\n")
    return f"{text}\n" if text and not text.endswith("\n") else text


def _ending(code: int) -> str:
    if code < 0:  # of the supervisor; the command's own signals come as 128 + n
        return f"ended by {signal.Signals(-code).name}"
    if code > 128:
        with suppress(ValueError):
            return f"exit code {code}, {signal.Signals(code - 128).name}"
    return f"exit code {code}"


def _seconds(wall_s: float) -> str:
    # Coarse, so that the same command with the same outcome gives the same result: the loop
    # notices by that when a model goes in circles.
    return "under 1 s" if wall_s < 1 else f"{wall_s:.0f} s"
