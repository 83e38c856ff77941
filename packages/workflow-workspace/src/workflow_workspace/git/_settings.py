"""What the configuration of git says that commands and tools have to know.

It is read by git itself, which for that runs none of the programs in it.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from functools import lru_cache

import msgspec

_RUNS = re.compile(
    r"core\.(fsmonitor|hookspath|sshcommand|pager|editor|askpass|gitproxy|alternaterefscommand)"
    r"|diff\.external|diff\..*\.(command|textconv)|interactive\.difffilter|sequence\.editor"
    r"|(difftool|mergetool|man|browser|guitool)\..*\.cmd|merge\..*\.driver"
    r"|filter\..*\.(clean|smudge|process)|(alias|pager)\..*|(.*\.)?credential(\..*)?\.helper"
    r"|gpg(\..*)?\.(program|defaultkeycommand)|remote\..*\.(uploadpack|receivepack)"
    r"|submodule\..*\.update|tar\..*\.command|trailer\..*\.(cmd|command)|hook\..*\.command"
    r"|uploadpack\.packobjectshook|web\.browser|sendemail\..*cmd"
)
"""The keys whose value is a program, or a folder of programs (git-config(1))."""

_OF_ONE = {"GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS"}
"""Variables that would make git speak of another repository than that of the folder."""
_TIMEOUT_S = 5


class GitSettings(msgspec.Struct, frozen=True):
    """What the configuration says in a folder."""

    name: str = ""
    """Of who commits."""
    email: str = ""
    """Of who commits."""
    files: tuple[str, ...] = ()
    """Files in this folder that the configuration includes, or whose programs it has git run."""


def git_settings(top: str) -> GitSettings:
    """What git's configuration says in a folder. Read again when the repository's own changed."""
    return _read(top, _stamp(os.path.join(top, ".git", "config")))


def _stamp(file: str) -> tuple[int, ...]:
    try:
        state = os.stat(file)
    except OSError:
        return ()
    return state.st_ctime_ns, state.st_mtime_ns, state.st_size, state.st_ino


@lru_cache(maxsize=256)
def _read(top: str, stamp: tuple[int, ...]) -> GitSettings:
    del stamp
    git = shutil.which("git")
    if git is None:
        return GitSettings()
    try:
        ran = subprocess.run(
            [git, "config", "--list", "--show-origin", "-z"],
            cwd=top,
            env={name: value for name, value in os.environ.items() if name not in _OF_ONE},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return GitSettings()
    fields = os.fsdecode(ran.stdout).split("\0")
    said: dict[str, str] = {}
    files: dict[str, None] = {}
    for origin, entry in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = entry.partition("\n")
        said[key] = value
        words = [origin.removeprefix("file:")]
        if key == "core.hookspath":
            words.append(value)
        elif _RUNS.fullmatch(key):
            words += _words(key, value)
        for path in filter(None, (_inside(top, word) for word in words)):
            if key == "core.hookspath" or os.path.isfile(path):  # not a folder called `test`
                files[path] = None
    return GitSettings(said.get("user.name", ""), said.get("user.email", ""), tuple(files))


def _words(key: str, command: str) -> list[str]:
    """What may be a file in a command. An alias without `!` is a command of git."""
    if key.startswith("alias.") and not command.startswith("!"):
        return []
    try:
        return shlex.split(command.lstrip("!"))
    except ValueError:
        return command.split()


def _inside(top: str, word: str) -> str | None:
    """The file in this folder that a word names; none for git's own, which are known anyway."""
    try:
        path = os.path.realpath(os.path.join(top, os.path.expanduser(word)))
        inside = os.path.relpath(path, top)
    except ValueError:  # a null character
        return None
    if inside.split("/")[0] in {".", "..", ".git"} or not os.path.lexists(path):
        return None
    return path
