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
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import cast

import anyio
import msgspec
from anyio import move_on_after, to_thread
from anyio.abc import ByteReceiveStream, Process

from workflow_protocol import WorkflowError
from workflow_util_agent._cgroups import Hit, LimitedGroup, Limits, limited_group, limits_work
from workflow_util_agent._family import kill_family
from workflow_util_agent._output import ShortenedOutput

__all__ = [
    "GRACE_S",
    "Limits",
    "ProcessNotStarted",
    "ProcessResult",
    "ShortenedOutput",
    "ending",
    "limits_work",
    "run_command",
]

GRACE_S = 5.0
"""How long a killed command may take to go: it can be in the kernel (a slow disk)."""
_WATCH_S = 0.02
_CLEAN_END_S = 2.0  # longer than the second that the shell below waits
_SUPERVISE = Path(__file__).with_name("_supervise.py")

# In a sandbox all processes die with its first one, so a shell is enough, which starts in 1 ms
# where the supervisor takes 13. It waits for the end of standard input, and then a second longer:
# the sandbox may end itself by then, and a bwrap that is killed while it starts leaves a half-made
# sandbox behind. Input is kept as descriptor 3, for a shell gives what it runs in the background an
# empty one. The first argument says how many files follow that take the command into its group. If
# the input ended without a word, nobody else is left to remove that.
_WITHOUT_SUPERVISOR = """
caller=
trap 'caller=gone' USR1
trap 'caller=there' USR2
exec 3<&0
(
    read -r word <&3
    if [ -n "$word" ]; then kill -s USR2 $$; else kill -s USR1 $$; fi
    sleep 1; kill -s KILL 0
) >/dev/null 2>&1 &
(
    n=$1; shift
    while [ "$n" -gt 0 ]; do echo 0 >"$1" || exit 127; shift; n=$((n - 1)); done
    exec "$@" 3<&-
)
code=$?
n=$1; shift
if [ "$n" -gt 0 ] && [ "$code" -eq 137 ]; then
    for pause in .01 .03 .1; do [ -z "$caller" ] || break; sleep $pause; done
fi
kill -s KILL $! 2>/dev/null
while [ "$n" -gt 0 ] && [ "$caller" = gone ]; do
    for pause in 0 .01 .1 1; do sleep $pause; rmdir "${1%/*}" && break; done
    shift; n=$((n - 1))
done 2>/dev/null
exit $code
"""

Sink = Callable[[bytes], Awaitable[None]]


class ProcessNotStarted(WorkflowError):
    """A command could not be started; `reason` says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the command could not be started: {reason}")


class ProcessResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a command went."""

    output: str
    """Both streams in the order they were written, or standard error alone where standard output
    went elsewhere; as a terminal would show it, ending in a newline unless empty."""
    left_out_bytes: int = 0
    """What of them was too much to be kept; `output` says so where it was."""
    exit_code: int | None
    """128 + n for signal n, -n if it was the supervisor's; `None` when the time ran out."""
    wall_s: float
    limited: bool = False
    """Whether its `limits` held. They don't where this process may not make control groups."""
    hits: Sequence[Hit] = ()
    """Which of the `limits` it reached."""


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
    limits: Limits | None = None,
    pass_fds: Sequence[int] = (),
    stdio: Sequence[int] = (),
) -> ProcessResult:
    """Run a command and, on every way out, kill whatever is left of it.

    That holds for a timeout, for cancellation, and if this process is killed itself.

    Args:
        command: the program and its arguments.
        cwd: the folder to run it in.
        env: its whole environment; nothing is inherited.
        timeout_s: seconds that it may take.
        max_output_bytes: how much of `ProcessResult.output` is kept: its beginning and its end.
            What is long waits in a temporary file until the command has ended.
        adopt: look after processes that leave the session; not needed where the command is a
            sandbox with processes of its own, which ends when its input does.
        stdin: what it can read; no process and no file name shows it. Not for a sandbox.
        on_stdout: takes standard output as it comes. What it raises ends the command.
        limits: what its processes may have together, where that can be held. The first call of
            `limits_work` finds out, which takes some 10 ms: make it in a thread, before.
        pass_fds: descriptors that it inherits. The caller closes its own.
        stdio: descriptors that become its standard streams, all three, for a caller who talks with
            it while it runs; needs `adopt`. They are closed here, and `output` stays empty.

    Raises:
        ProcessNotStarted: it could not be started, or there is no room for its input.
    """
    if sys.platform == "win32":
        raise ProcessNotStarted("commands run on Linux and macOS; on Windows, use WSL")
    results: list[ProcessResult] = []
    to_close = list(stdio)

    async def run() -> None:
        started = time.monotonic()
        with ShortenedOutput(max_output_bytes) as output:
            async with _limited(limits) as group:
                try:
                    process = await _start(
                        _watched_by(group, adopt=adopt, stdio=stdio),
                        command,
                        cwd=cwd,
                        env=env,
                        stdin=stdin,
                        apart=on_stdout is not None,
                        pass_fds=[*pass_fds, *stdio],
                    )
                finally:
                    _close(to_close)
                timed_out = await _take_output(
                    process, output, on_stdout, group, timeout_s=timeout_s
                )
                hits = group.hits() if group is not None else []
            text = await _text(output)
            results.append(
                ProcessResult(
                    output=text,
                    left_out_bytes=output.left_out,
                    exit_code=None if timed_out else process.returncode,
                    wall_s=time.monotonic() - started,
                    limited=group is not None,
                    hits=hits,
                )
            )

    try:
        # asyncio's own cancellation (`asyncio.timeout`) gets through shields, but not in here.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
    except BaseExceptionGroup as errors:
        raise _first_error(errors) from None
    finally:
        _close(to_close)
    return results[0]


async def _text(output: ShortenedOutput) -> str:
    if not output.is_long:
        return output.text()
    return await to_thread.run_sync(output.text)


def _close(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


@asynccontextmanager
async def _limited(limits: Limits | None) -> AsyncGenerator[LimitedGroup | None]:
    # Both take 0.2 ms, less than a thread would; the caller has asked `limits_work` in one.
    group = limited_group(limits) if limits is not None else None
    try:
        yield group
    finally:
        if group is not None and not group.remove():
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(group.close)


def _watched_by(group: LimitedGroup | None, *, adopt: bool, stdio: Sequence[int]) -> list[str]:
    """What runs the command and ends it: in front of it on the command line."""
    joins = group.joins if group is not None else []
    if not adopt:
        return ["/bin/sh", "-c", _WITHOUT_SUPERVISOR, "sh", str(len(joins)), *joins]
    options = [word for file in joins for word in ("--join", file)]
    if stdio:
        options += ["--stdio", *map(str, stdio)]
    return [sys.executable, "-I", "-S", str(_SUPERVISE), *options]


async def _take_output(
    process: Process,
    output: ShortenedOutput,
    on_stdout: Sink | None,
    group: LimitedGroup | None,
    *,
    timeout_s: float,
) -> bool:
    """Take what it writes until it ends, and leave nothing of it; whether its time ran out."""
    try:
        with move_on_after(timeout_s) as limit:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch, process, group)
                await _drain(process, output, on_stdout)
                await process.wait()
                tasks.cancel_scope.cancel()
    finally:
        with move_on_after(GRACE_S, shield=True):
            await _end(process, output, group)
        if process.returncode is None:
            process.kill()
            with move_on_after(GRACE_S, shield=True):
                await process.aclose()
    return limit.cancelled_caught


async def _start(
    watched_by: Sequence[str],
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes,
    apart: bool,
    pass_fds: Sequence[int],
) -> Process:
    process: Process | None = None
    try:
        with _unnamed_file(stdin) as fds:
            # The supervisor's own input is its lifeline, so the command opens this one itself.
            opening = ["/bin/sh", "-c", f'exec "$0" "$@" </dev/fd/{fds[0]}'] if fds else []
            # A start that is cancelled half-way kills the supervisor, which then can't do its work.
            with anyio.CancelScope(shield=True):
                process = await anyio.open_process(
                    [*watched_by, *opening, *command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE if apart else subprocess.STDOUT,
                    cwd=cwd,
                    env=env,
                    start_new_session=True,
                    pass_fds=[*fds, *pass_fds],
                )
    except (OSError, ValueError) as error:  # the latter for what no argument can be
        reason = error.strerror if isinstance(error, OSError) else None
        raise ProcessNotStarted(reason or str(error)) from error
    assert process is not None  # nobody cancels that scope
    return process


@contextmanager
def _unnamed_file(data: bytes) -> Generator[tuple[int, ...]]:
    """Give the descriptor of a file without a name that holds the data; none if it is empty."""
    if not data:
        yield ()
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        yield (file.fileno(),)


def _first_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    first = group.exceptions[0]
    if isinstance(first, BaseExceptionGroup):
        return _first_error(cast("BaseExceptionGroup[BaseException]", first))
    return first


async def _end(process: Process, output: ShortenedOutput, group: LimitedGroup | None) -> None:
    """Let go of the lifeline; its other end kills everything and ends, which ends the output."""
    assert process.stdin is not None
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.send(b"e")  # says that this process lives
    await process.stdin.aclose()
    with move_on_after(_CLEAN_END_S):
        await _watch(process, group)
    if process.returncode is None:  # it is stopped again and again, or hangs
        await to_thread.run_sync(kill_family, process.pid)
    with move_on_after(0.5):  # held open only by what left the session of a killed supervisor
        await _drain(process, output, None)
    await process.aclose()


async def _watch(process: Process, group: LimitedGroup | None) -> None:
    """Wait for the supervisor and don't let it be stopped. If it is killed, do its work."""
    # Before cpython#119710 was mended, `wait` returned only when the output was closed as well.
    while process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)  # `send_signal` reaps, which asyncio must do
        await anyio.sleep(_WATCH_S)
    if process.returncode < 0:
        await to_thread.run_sync(kill_family, process.pid)
        if group is not None:
            await to_thread.run_sync(group.kill)


async def _drain(process: Process, output: ShortenedOutput, on_stdout: Sink | None) -> None:
    async def keep(data: bytes) -> None:
        output.add(data)

    assert process.stdout is not None
    if process.stderr is None:
        await _pump(process.stdout, keep)
        return
    async with anyio.create_task_group() as group:
        group.start_soon(_pump, process.stderr, keep)
        await _pump(process.stdout, on_stdout or _discard)


async def _pump(stream: ByteReceiveStream, sink: Sink) -> None:
    with suppress(anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
        while True:
            await sink(await stream.receive())


async def _discard(data: bytes) -> None:
    del data


def ending(code: int) -> str:
    """How a command with this exit code ended, in words."""
    if code < 0:  # of the supervisor; the command's own signals come as 128 + n
        return f"ended by {signal.Signals(-code).name}"
    if code > 128:
        with suppress(ValueError):
            return f"exit code {code}, {signal.Signals(code - 128).name}"
    return f"exit code {code}"
