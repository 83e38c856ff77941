"""Running a shell command: bounded in time and output, and gone without a trace afterwards."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
from anyio import to_thread

from workflow_agent_react._errors import ToolError
from workflow_agent_react.shell._environment import command_environment
from workflow_agent_react.shell._limits import CommandLimits
from workflow_agent_react.shell._sandbox import (
    SandboxedCommand,
    SandboxFolders,
    SandboxMode,
    sandboxed,
    use_sandbox,
)
from workflow_util_agent.process import ProcessNotStarted, ProcessResult, ending, run_command

DEFAULT_TIMEOUT_S = 60
MAX_TIMEOUT_S = 600
MAX_OUTPUT_BYTES = 8 * 1024 * 1024
"""What is kept of a command's output by default; `read_result` pages through it."""
_MAX_COMMAND_BYTES = 100_000  # Linux takes 128 KiB in one argument (MAX_ARG_STRLEN)

# In a sandbox all processes die with its first one, so this ends it all when its input ends. Input
# is kept as descriptor 3, for a shell gives what it runs in the background an empty one.
_INSIDE = """
exec 3<&0 </dev/null
( (read -r _ <&3; kill -s KILL -- -1) >/dev/null 2>&1 & )
exec "$@" 3<&-
"""


class _Prepared(NamedTuple):
    """A command line that is ready to run."""

    line: Sequence[str]
    words: str
    """For its results: whether it runs in a sandbox."""
    sandbox: SandboxedCommand | None


class Ran(NamedTuple):
    """How a command went."""

    exit_code: int | None
    """`None` where its time ran out."""
    output: str
    """The last line says how it ended."""


class Shell(msgspec.Struct, frozen=True, kw_only=True):
    """How commands run."""

    sandbox: SandboxMode = "auto"
    env: Mapping[str, str]
    folders: SandboxFolders = SandboxFolders()
    limits: CommandLimits = CommandLimits()
    max_output_bytes: int = MAX_OUTPUT_BYTES

    async def run(self, workspace: Path, command: str, *, timeout_s: float) -> str:
        """Run a command with `sh -c` in the workspace; its output, and how it ended.

        Standard input is empty. Whatever the command leaves running is killed.

        Raises:
            ToolError: the time ran out (with the output so far), or it could not be started.
            SandboxUnavailable: a sandbox is required and there is none.
        """
        _must_be_usable(command)
        ran = await self.execute(workspace, ["/bin/sh", "-c", command], timeout_s=timeout_s)
        if ran.exit_code is None:
            raise ToolError(f"{ran.output[:-1]}. Raise timeout_s or do less at once]")
        return ran.output

    async def execute(self, workspace: Path, words: Sequence[str], *, timeout_s: float) -> Ran:
        """Run a program with its arguments in the workspace. See `run`.

        Raises:
            ToolError: it could not be started.
            SandboxUnavailable: a sandbox is required and there is none.
        """
        if not await anyio.Path(workspace).is_dir():
            raise ToolError("the workspace folder doesn't exist")
        prepared: _Prepared | None = None
        with anyio.CancelScope(shield=True):  # its descriptors must not get lost
            prepared = await to_thread.run_sync(self._prepare, workspace, words)
        assert prepared is not None
        ran, undone = await self._run(workspace, prepared, timeout_s=timeout_s)
        hits = self.limits.told(ran, in_sandbox=prepared.sandbox is not None)
        notes, words_of_mode = [*_not_kept(ran), *hits, *undone], prepared.words
        output = ran.output + "".join(f"[{note}]\n" for note in notes)
        if ran.exit_code is None:
            took = f"stopped: it took longer than {timeout_s:g} s"
            return Ran(None, f"{output}[{took}; {words_of_mode}]")
        ended = f"{ending(ran.exit_code)}, {_seconds(ran.wall_s)}, {words_of_mode}"
        return Ran(ran.exit_code, f"{output}[{ended}]")

    def _prepare(self, workspace: Path, command: Sequence[str]) -> _Prepared:
        in_sandbox, words = use_sandbox(self.sandbox)
        line = self.limits.around(list(command), in_sandbox=in_sandbox)
        if not in_sandbox:
            return _Prepared(line, words, None)
        inside = ["/bin/sh", "-c", _INSIDE, "sh", *line]
        size = self.limits.max_tmp_bytes
        sandbox = sandboxed(workspace, inside, self.folders, max_tmp_bytes=size)
        return _Prepared(sandbox.words, words, sandbox)

    async def _run(
        self, workspace: Path, prepared: _Prepared, *, timeout_s: float
    ) -> tuple[ProcessResult, list[str]]:
        sandbox, undone = prepared.sandbox, list[str]()
        try:
            ran = await run_command(
                prepared.line,
                cwd=workspace,
                env=command_environment(self.env, sandboxed=sandbox is not None),
                timeout_s=timeout_s,
                max_output_bytes=self.max_output_bytes,
                adopt=sandbox is None,
                limits=self.limits.of_all(),
                pass_fds=sandbox.fds if sandbox is not None else (),
            )
        except ProcessNotStarted as error:
            raise ToolError(str(error)) from error
        finally:
            if sandbox is not None:
                with anyio.CancelScope(shield=True):
                    undone = await to_thread.run_sync(sandbox.close)
        return ran, undone


def _not_kept(ran: ProcessResult) -> list[str]:
    """The model may not come to see the place in the middle that says so."""
    words = "bytes of output in the middle were not kept; write long output to a file"
    return [f"{ran.left_out_bytes} {words}"] if ran.left_out_bytes else []


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


def _seconds(wall_s: float) -> str:
    # Coarse, so that the same command with the same outcome gives the same result: the loop
    # notices by that when a model goes in circles.
    return "under 1 s" if wall_s < 1 else f"{wall_s:.0f} s"
