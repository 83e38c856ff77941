"""A bubblewrap sandbox around a command: what it may see and touch."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from workflow_agent_react._errors import SandboxUnavailable, ToolError
from workflow_agent_react.shell._machine import machine
from workflow_agent_react.shell._mounts import Mounts
from workflow_workspace import (
    GitPlaces,
    enclosing_repository,
    find_git_places,
    git_settings,
    linked_repositories,
    nested_repositories,
    set_aside,
)

_log = logging.getLogger("workflow_agent_react")

SandboxMode = Literal["auto", "off", "require"]

_ISOLATED = [
    "--unshare-all",
    "--die-with-parent",
    "--new-session",
    *("--cap-drop", "ALL"),
]
_USER = ["--uid", "1000", "--gid", "1000"]  # of `etc/passwd`; not root, also where the engine is
_TRIED_BYTES = 1 << 20
_KERNELS = ("/dev", "/proc", "/sys")
_NOBODYS = ("/", "/etc", "/home", "/root", "/run", "/tmp", "/usr", "/var")

# `checkout -b` would fail where it can't write to the configuration what the branch follows.
_GIT_CONFIG = """\
[user]
\tname = {name}
\temail = {email}
[safe]
\tdirectory = *
[branch]
\tautoSetupMerge = false
"""
DEFAULT_NAME, DEFAULT_EMAIL = "agent", "agent@localhost"


class SandboxFolders(msgspec.Struct, frozen=True, kw_only=True):
    """What a sandbox shows beside the workspace and this machine's programs."""

    readable: Sequence[Path] = ()
    writable: Sequence[Path] = ()


class SandboxedCommand:
    """A command line with a sandbox around it. Close it when the command has ended."""

    def __init__(self, words: list[str], fds: list[int], *, root: str, git: GitPlaces) -> None:
        self.words = words
        self.fds = fds
        """The descriptors that the command line names."""
        self._root = root
        self._git = git

    def close(self) -> list[str]:
        """Close the descriptors, and undo what the command did to steer git: in words, what."""
        for fd in self.fds:
            os.close(fd)
        removed = [path for path in self._git.absent if _removed(path)]
        return [
            *(
                f"removed {self._shown(path)}: git would look there for programs"
                for path in removed
            ),
            *(
                f"renamed {self._shown(path)}: it stands in the index of the repository around it, "
                "so that git would run what its config says; leave it out, or run no git there"
                for path in self._set_aside()
            ),
        ]

    def _set_aside(self) -> list[str]:
        """What linked repositories have new, or had when nobody looked, is out of git's way."""
        held = set(self._git.read_only)
        found: list[str] = []
        for top in self._git.tops:
            for link in linked_repositories(top):
                git = os.path.join(top, link, ".git")
                if not held & {git, os.path.join(git, "config")} and set_aside(top, link):
                    found.append(git)
        return found

    def _shown(self, path: str) -> str:
        return os.path.relpath(path, self._root)


def use_sandbox(mode: SandboxMode) -> tuple[bool, str]:
    """Whether commands run in the sandbox, and the words for it in their results.

    The machine's rule goes before: `UWF_SANDBOX=require`, which `uwf` sets by `sandbox: require` in
    workflow.yaml.

    Raises:
        SandboxUnavailable: it is required and doesn't work.
    """
    if os.environ.get("UWF_SANDBOX") == "require":
        mode = "require"
    if mode == "off":
        return False, "no sandbox"
    fault = sandbox_fault()
    if not fault:
        return True, "sandbox"
    if mode == "require":
        raise SandboxUnavailable(fault)
    warn_once(fault)
    return False, f"no sandbox: {fault}"


@cache
def warn_once(fault: str) -> None:
    """Tell whoever runs this process that commands run without a sandbox."""
    _log.warning("commands run without a sandbox: %s", fault)


@cache
def sandbox_fault() -> str:
    """Why there is no sandbox in this process; empty when there is one. Tried once."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        return "bwrap is not installed"
    return "" if _options(bwrap) is not None else "bwrap does not work here"


@cache
def _options(bwrap: str) -> tuple[list[str], bool] | None:
    """Options that work here for the user, and whether `--size` does; nothing if none do.

    Without user namespaces only root has a sandbox, and stays root in it. `--size` came with
    bubblewrap 0.7.
    """
    for user in (_USER, []):
        for sized in (True, False):
            with tempfile.TemporaryDirectory() as folder:
                start = [bwrap, *_ISOLATED, *user]
                size = _TRIED_BYTES if sized else 0
                command = _command(start, Path(folder), ["true"], SandboxFolders(), size)
                try:
                    tried = subprocess.run(
                        command.words,
                        stdin=subprocess.DEVNULL,
                        capture_output=True,
                        timeout=10,
                        pass_fds=command.fds,
                        check=False,
                    )
                except (OSError, subprocess.TimeoutExpired):
                    continue
                finally:
                    command.close()
                if tried.returncode == 0:
                    return user, sized
    return None


def sandboxed(
    workspace: Path, command: Sequence[str], folders: SandboxFolders, *, max_tmp_bytes: int
) -> SandboxedCommand:
    """The command in a sandbox: the workspace is all that it can write to.

    No network (loopback neither), own processes, a private `/tmp`; of the machine the programs and
    what they need. The workspace keeps its path.

    Raises:
        ToolError: the workspace can't be one in a sandbox.
    """
    bwrap = shutil.which("bwrap") or "bwrap"
    options = _options(bwrap)
    assert options is not None  # `use_sandbox` has asked
    user, sized = options
    size = max_tmp_bytes if sized else 0
    return _command([bwrap, *_ISOLATED, *user], workspace, command, folders, size)


def _command(
    start: list[str],
    workspace: Path,
    command: Sequence[str],
    folders: SandboxFolders,
    tmp_bytes: int,
) -> SandboxedCommand:
    root = os.path.realpath(workspace)
    mounts = machine().copy()
    size = ["--size", str(tmp_bytes)] if tmp_bytes else []
    mounts.put("/dev", "--dev", "/dev")
    mounts.put("/dev/shm", *size, "--tmpfs", "/dev/shm")
    mounts.put("/proc", "--proc", "/proc")
    mounts.put("/tmp", *size, "--tmpfs", "/tmp")
    mounts.put("/var/tmp", "--symlink", "/tmp", "/var/tmp")
    git = _bind_folders(mounts, root, folders)
    if any(path.startswith("/var/tmp/") for path in mounts):  # a link can't have folders in it
        mounts.put("/var/tmp", *size, "--tmpfs", "/var/tmp")
    hidden = _hide(mounts, root)
    words, fds = mounts.open()
    if "/etc" not in mounts:
        fds.append(_git_config(root))
        words += ["--file", str(fds[-1]), "/etc/gitconfig"]
    for path in ("/dev", "/proc", "/", *hidden):
        words += ["--remount-ro", path]
    line = [*start, *words, "--chdir", root, "--", *command]
    return SandboxedCommand(line, fds, root=root, git=git)


def _bind_folders(mounts: Mounts, root: str, folders: SandboxFolders) -> GitPlaces:
    """Show the workspace and what was asked for, outer folders first; keep git's files from it."""
    _must_be_a_folder_for_work(root)
    ways = {os.path.realpath(path): False for path in folders.readable if path.exists()}
    outer = enclosing_repository(root)
    if outer is not None and _may_be_shown(outer):
        ways.setdefault(outer, False)
    ways |= {os.path.realpath(path): True for path in folders.writable if path.exists()}
    ways[root] = True
    for path in sorted(ways, key=lambda path: path.split("/")):
        mounts.bind(path, writable=ways[path])
    git = GitPlaces()
    for path in (path for path, writable in ways.items() if writable):
        for top in (path, *nested_repositories(path)):
            find_git_places(top, path, git)
    for path in git.writable:
        mounts.put(path, "--bind", path, path)
    for path in (path for path in git.readable if not mounts.shows(path)):
        mounts.put(path, "--ro-bind", path, path)
    for path in (*git.read_only, *git_settings(root).files):
        _hold(mounts, path)
    return git


def _must_be_a_folder_for_work(root: str) -> None:
    if root == "/" or any(f"{root}/".startswith(f"{kernels}/") for kernels in _KERNELS):
        raise ToolError(f"{root!r} can't be the workspace of a command in the sandbox")


def _may_be_shown(folder: str) -> bool:
    """Whether a folder around the workspace is a project, and nobody's home."""
    homes = (os.path.realpath(os.environ.get("HOME", "/root")), *_NOBODYS)
    return not any(f"{home}/".startswith(f"{folder.rstrip('/')}/") for home in homes)


def _hold(mounts: Mounts, path: str) -> None:
    """Make a path unwritable, and keep the folders that it is in from being renamed."""
    above = mounts.nearest(path)
    if above is None or not mounts.is_writable(above):
        return
    mounts.put(path, "--ro-bind", path, path)
    for folder in map(str, Path(path).parents):
        if folder == above:
            return
        mounts.put(folder, "--bind", folder, folder)


def _hide(mounts: Mounts, root: str) -> list[str]:
    """Hide home folders in what is shown, and the engine's own, which has keys and conversations.

    Returns:
        The empty folders that stand for them.
    """
    home = os.path.realpath(os.path.expanduser("~"))
    own = os.path.realpath(os.path.expanduser(os.environ.get("UWF_HOME") or "~/.uwf"))
    if root == own:
        raise ToolError(
            f"the workspace {root!r} is the folder of uwf itself, with its keys and conversations; "
            "commands run in another one"
        )
    hidden = [own] if os.path.isdir(own) and mounts.shows(own) else []
    is_asked_for = home in mounts or root == home or home.startswith(f"{root}/")
    if home != "/" and not is_asked_for and mounts.shows(home):
        hidden.append(home)
    for path in hidden:
        mounts.put(path, "--tmpfs", path)
    return hidden


def _git_config(root: str) -> int:
    """A file with what git has to know beside the repository's own configuration."""
    settings = git_settings(root)
    text = _GIT_CONFIG.format(
        name=_quoted(settings.name or DEFAULT_NAME), email=_quoted(settings.email or DEFAULT_EMAIL)
    )
    fd = os.memfd_create("gitconfig", os.MFD_CLOEXEC)
    os.write(fd, os.fsencode(text))
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
    return f'"{escaped}"'


def _removed(path: str) -> bool:
    """Remove what a command made, unless the way to it leads elsewhere now."""
    if not os.path.lexists(path) or os.path.realpath(os.path.dirname(path)) != os.path.dirname(
        path
    ):
        return False
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)
    except OSError:
        return False
    return True
