"""The tools that a role gets for working in its thread's workspace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_agent_react.tools._toolset import Toolset

if TYPE_CHECKING:
    from workflow_agent_react.shell._sandbox import SandboxMode


def workspace_tools(
    *,
    shell: bool = True,
    write: bool = True,
    sandbox: SandboxMode = "auto",
    env: Mapping[str, str] | None = None,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
    max_processes: int = 1024,
    max_memory_bytes: int | None = None,
    max_tmp_bytes: int = 1 << 30,
    max_output_bytes: int = 8 * 1024 * 1024,
) -> Toolset:
    """Tools that work in the workspace of the thread that calls them, and nowhere else.

    In this order: `read_file`, `list_files`, `search_files`, `write_file`, `patch_file`,
    `move_file`, `delete_file`, `shell_exec`. The file tools can't leave the workspace. A shell
    command can, unless it runs in the sandbox; each result says whether it did.

    Args:
        shell: offer `shell_exec`.
        write: offer `write_file` to `delete_file`. A shell command can write without them.
        sandbox: run commands in bubblewrap: where it works, never, or not at all without it. With
            `sandbox: require` in workflow.yaml, or `UWF_SANDBOX=require`, always the last.
        env: variables for commands, beside the few that they always get. Nothing else is passed
            on, so a key that is named here is the only one they see.
        readable: folders that the sandbox would hide, such as a home folder's tools.
        writable: folders beside the workspace that commands in the sandbox can write to.
        max_processes: how many processes and threads a command may have at a time.
        max_memory_bytes: what they may hold together; half of this machine's memory if not given.
        max_tmp_bytes: what `/tmp` and `/dev/shm` in the sandbox each may hold; it is memory, too.
        max_output_bytes: what is kept of a command's output, half of it from the end. The model
            is shown a part and reads on with `read_result`.

    Raises:
        SandboxUnavailable: a sandbox is required and doesn't work here.
    """
    # Here, because they and what they need are a tenth of this package's import time.
    from workflow_agent_react.shell._limits import CommandLimits
    from workflow_agent_react.shell._sandbox import SandboxFolders, use_sandbox
    from workflow_agent_react.shell._shell import Shell
    from workflow_agent_react.tools import _workspace_functions as functions

    parts: list[Toolset | Callable[..., object]] = [
        functions.read_file,
        functions.list_files,
        functions.search_files,
    ]
    if write:
        parts += [
            functions.write_file,
            functions.patch_file,
            functions.move_file,
            functions.delete_file,
        ]
    if shell:
        use_sandbox(sandbox if sandbox == "require" else "off")  # raises where it is required
        made = Shell(
            sandbox=sandbox,
            env=dict(env or {}),
            folders=SandboxFolders(readable=tuple(readable), writable=tuple(writable)),
            limits=CommandLimits(
                max_processes=max_processes,
                max_memory_bytes=max_memory_bytes or 0,
                max_tmp_bytes=max_tmp_bytes,
            ),
            max_output_bytes=max_output_bytes,
        )
        parts.append(functions.shell_tool(made))
    return Toolset.combine(*parts)
