"""The environment of a command: a fixed few variables, and what the caller adds by name."""

from __future__ import annotations

import os
from collections.abc import Mapping

_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "TZ")
_FIXED = {
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
}
_SANDBOXED = {"HOME": "/tmp", "USER": "agent", "LOGNAME": "agent"}


def command_environment(extra: Mapping[str, str], *, sandboxed: bool) -> dict[str, str]:
    """The whole environment of a command. Of the engine's there is no key, token or password."""
    env = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    env.setdefault("PATH", os.defpath)
    env.setdefault("HOME", "/")
    return {**env, **(_SANDBOXED if sandboxed else {}), **_FIXED, **extra}
