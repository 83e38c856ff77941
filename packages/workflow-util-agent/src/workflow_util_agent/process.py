"""Running a process: bounded in time and output, and gone without a trace afterwards.

Not part of `workflow_util_agent` itself, since not every program that imports that runs processes.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import cast

import anyio
import msgspec
from anyio import move_on_after, to_thread
from anyio.abc import ByteReceiveStream, Process

from workflow_protocol import WorkflowError

__all__ = [
    "GRACE_S",
    "HeadAndTail",
    "ProcessNotStarted",
    "Ran",
    "ending",
    "run_command",
]

GRACE_S = 5.0
"""How long a killed command may take to go: it can be in the kernel (a slow disk)."""
_WATCH_S = 0.02
_SUPERVISE = Path(__file__).with_name("_supervise.py")

# In a sandbox all processes die with its first one, so a shell is enough, which starts in 1 ms
# where the supervisor takes 13. It waits for the end of standard input, and then a second longer:
# the sandbox may end itself by then, and a bwrap that is killed while it starts leaves a half-made
# sandbox behind. Input is kept as descriptor 3, for a shell gives what it runs in the background an
# empty one.
_OUTSIDE = """
exec 3<&0
(read -r _ <&3; sleep 1; kill -s KILL 0) >/dev/null 2>&1 &
"$@" 3<&-
code=$?
kill -s KILL $! 2>/dev/null
exit $code
"""

Sink = Callable[[bytes], Awaitable[None]]


class ProcessNotStarted(WorkflowError):
    """A command could not be started; `reason` says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the command could not be started: {reason}")


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a command went."""

    output: str
    """Both streams in the order they were written, or standard error alone where standard output
    went elsewhere; ends in a newline unless empty."""
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
    stdin: bytes = b"",
    on_stdout: Sink | None = None,
) -> Ran:
    """Run a command and, on every way out, kill whatever is left of it.

    That holds for a timeout, for cancellation, and if this process is killed itself.

    Args:
        command: the program and its arguments.
        cwd: the folder to run it in.
        env: its whole environment; nothing is inherited.
        timeout_s: seconds that it may take.
        max_output_bytes: how much of `Ran.output` is kept: its beginning and its end.
        adopt: look after processes that leave the session; not needed where the command is a
            sandbox with processes of its own, which ends when its input does.
        stdin: what it can read; no process and no file name shows it. Not for a sandbox.
        on_stdout: takes standard output as it comes. What it raises ends the command.

    Raises:
        ProcessNotStarted: it could not be started, or there is no room for its input.
    """
    ran: list[Ran] = []

    async def run() -> None:
        started = time.monotonic()
        process = await _start(
            command, cwd=cwd, env=env, adopt=adopt, stdin=stdin, apart=on_stdout is not None
        )
        output = HeadAndTail(max_output_bytes)
        timed_out = await _attend(process, output, on_stdout, timeout_s=timeout_s)
        ran.append(
            Ran(
                output=output.text(),
                exit_code=None if timed_out else process.returncode,
                wall_s=time.monotonic() - started,
            )
        )

    try:
        # asyncio's own cancellation (`asyncio.timeout`) gets through shields, but not in here.
        async with anyio.create_task_group() as group:
            group.start_soon(run)
    except BaseExceptionGroup as group:
        raise _alone(group) from None
    return ran[0]


async def _attend(
    process: Process, output: HeadAndTail, on_stdout: Sink | None, *, timeout_s: float
) -> bool:
    """Take what it writes until it ends, and leave nothing of it; whether its time ran out."""
    try:
        with move_on_after(timeout_s) as limit:
            async with anyio.create_task_group() as group:
                group.start_soon(_watch, process)
                await _drain(process, output, on_stdout)
                await process.wait()
                group.cancel_scope.cancel()
    finally:
        with move_on_after(GRACE_S, shield=True):
            await _end(process, output)
        if process.returncode is None:
            process.kill()
            with move_on_after(GRACE_S, shield=True):
                await process.aclose()
    return limit.cancelled_caught


async def _start(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    adopt: bool,
    stdin: bytes,
    apart: bool,
) -> Process:
    outside = ["/bin/sh", "-c", _OUTSIDE, "sh"]
    supervised = [sys.executable, "-I", "-S", str(_SUPERVISE)] if adopt else outside
    process: Process | None = None
    try:
        with _readable(stdin) as fds:
            # The supervisor's own input is its lifeline, so the command opens this one itself.
            opening = ["/bin/sh", "-c", f'exec "$0" "$@" </dev/fd/{fds[0]}'] if fds else []
            # A start that is cancelled half-way kills the supervisor, which then can't do its work.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    [*supervised, *opening, *command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE if apart else subprocess.STDOUT,
                    cwd=cwd,
                    env=env,
                    start_new_session=True,
                    pass_fds=fds,
                )
    except (OSError, ValueError) as error:  # the latter for what no argument can be
        reason = error.strerror if isinstance(error, OSError) else None
        raise ProcessNotStarted(reason or str(error)) from error
    assert process is not None  # nobody cancels that scope
    return process


@contextmanager
def _readable(data: bytes) -> Generator[tuple[int, ...]]:
    """Give the descriptor of a file without a name that holds the data; none if it is empty."""
    if not data:
        yield ()
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        yield (file.fileno(),)


def _alone(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    if isinstance(first, BaseExceptionGroup):
        return _alone(cast("BaseExceptionGroup[BaseException]", first))
    return first


async def _end(process: Process, output: HeadAndTail) -> None:
    """Let go of the lifeline; its other end kills everything and ends, which ends the output."""
    assert process.stdin is not None
    await process.stdin.aclose()
    await _watch(process)
    with move_on_after(0.5):  # held open only by what left the session of a killed supervisor
        await _drain(process, output, None)
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


async def _drain(process: Process, output: HeadAndTail, on_stdout: Sink | None) -> None:
    async def keep(data: bytes) -> None:
        output.add(data)

    assert process.stdout is not None
    if process.stderr is None:
        await _pump(process.stdout, keep)
        return
    async with anyio.create_task_group() as group:
        group.start_soon(_pump, process.stderr, keep)
        await _pump(process.stdout, on_stdout or _nowhere)


async def _pump(stream: ByteReceiveStream, sink: Sink) -> None:
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            await sink(await stream.receive())


async def _nowhere(data: bytes) -> None:
    del data


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


def ending(code: int) -> str:
    """How a command with this exit code ended, in words."""
    if code < 0:  # of the supervisor; the command's own signals come as 128 + n
        return f"ended by {signal.Signals(-code).name}"
    if code > 128:
        with suppress(ValueError):
            return f"exit code {code}, {signal.Signals(code - 128).name}"
    return f"exit code {code}"
