"""What a shell command may see and touch: its environment, and a bubblewrap sandbox around it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from workflow_agent_react._errors import SandboxUnavailable

SandboxMode = Literal["auto", "off", "require"]

_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "TZ")
_FIXED = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
}
_HIDDEN_FOLDERS = (
    *("/root", "/home"),
    *("/run", "/tmp", "/var/tmp"),  # sockets of other programs work without a network
    *("/etc/ssh", "/etc/ssl/private", "/var/backups"),  # readable where the engine runs as root
)
_HIDDEN_FILES = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-")


def command_environment(extra: Mapping[str, str], *, sandboxed: bool) -> dict[str, str]:
    """The whole environment of a command: a fixed few, and what the caller adds by name.

    Nothing else is inherited, so no key, token or password of the engine is in it.
    """
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    env.setdefault("PATH", os.defpath)
    env.setdefault("HOME", "/")
    if sandboxed:
        env["HOME"] = "/tmp"  # the home folder is hidden; programs want one to write to
    return {**env, **_FIXED, **extra}


def use_sandbox(mode: SandboxMode) -> tuple[bool, str]:
    """Whether commands run in the sandbox, and the words for it in their results.

    Raises:
        SandboxUnavailable: it is required and doesn't work.
    """
    if mode == "off":
        return False, "no sandbox"
    fault = sandbox_fault()
    if not fault:
        return True, "sandbox"
    if mode == "require":
        raise SandboxUnavailable(fault)
    return False, f"no sandbox: {fault}"


@cache
def sandbox_fault() -> str:
    """Why there is no sandbox in this process; empty when there is one. Tried once."""
    if shutil.which("bwrap") is None:
        return "bwrap is not installed"
    command = sandbox_command(Path("/usr"), ["true"], readable=())
    try:
        tried = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return "bwrap does not work here"
    return "" if tried.returncode == 0 else "bwrap does not work here"


def sandbox_command(
    workspace: Path, command: Sequence[str], *, readable: Sequence[Path]
) -> list[str]:
    """The command in a sandbox: the workspace is all that it can write to.

    No network (loopback neither), own processes, a private `/tmp`; home folders, sockets under
    `/run` and the password files are hidden. Everything else can be read. The workspace keeps
    its path, also when it lies in a hidden folder.

    Args:
        readable: folders to show, read only, that would be hidden.
    """
    home = os.path.realpath(os.environ.get("HOME", "/root"))
    hidden = [*_HIDDEN_FOLDERS, *([] if home == "/" else [home])]
    real = os.path.realpath(workspace)
    args = [
        shutil.which("bwrap") or "bwrap",
        "--unshare-all",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]
    args += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for folder in dict.fromkeys(folder for folder in hidden if os.path.isdir(folder)):
        args += ["--tmpfs", os.path.realpath(folder)]
    for file in _HIDDEN_FILES:
        if os.path.exists(file):
            args += ["--ro-bind", "/dev/null", file]
    for folder in readable:
        args += ["--ro-bind", os.path.realpath(folder), os.path.realpath(folder)]
    return [*args, "--bind", real, real, "--chdir", real, "--", *command]
