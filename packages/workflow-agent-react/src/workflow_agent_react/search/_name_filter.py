"""The glob of a search: which files are meant by their names."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

from workflow_agent_react._errors import ToolError
from workflow_workspace import Effort, Rules

_MAX_CHARS = 1_000
_MAX_GLOBS = 100
_SLASH = ord("/")


def name_filter(glob: str) -> Callable[[str], bool]:
    """Whether a path, or a folder that it is in, fits a line of a `.gitignore` with this text.

    Raises:
        ToolError: the glob is too long, stands for too many patterns, or can't be a name.
    """
    text = glob.strip().removeprefix("./")
    if text in {"", "*", "**", "**/*"}:
        return lambda path: True
    lines = [re.sub(r"^([#!])", r"\\\1", one) for one in _alternatives(text)]
    effort = Effort(sys.maxsize)  # it is one pattern, and the search has its own limit
    rules = Rules.of("\n".join(lines).encode(), effort)

    def matches(path: str) -> bool:
        """Whether it is named, or a folder that it is in."""
        whole = os.fsencode(path)
        ends = (index for index, byte in enumerate(whole) if byte == _SLASH)
        return any(rules.decide(whole[:end], folder=True, effort=effort) for end in ends) or bool(
            rules.decide(whole, folder=False, effort=effort)
        )

    return matches


def _alternatives(glob: str) -> list[str]:
    """`*.{js,ts}` as `*.js` and `*.ts`."""
    if len(glob) > _MAX_CHARS:
        raise ToolError(f"the glob is longer than {_MAX_CHARS} characters; use '*.py' or the like")
    if any(sign in glob for sign in "\n\0") or glob != glob.encode(errors="replace").decode():
        raise ToolError("the glob has a character that a file name can't have")
    done: list[str] = []
    pending = [glob]
    while pending:
        if len(done) + len(pending) > _MAX_GLOBS:
            raise ToolError(f"the glob stands for more than {_MAX_GLOBS} patterns; use fewer {{…}}")
        one = pending.pop()
        group = re.search(r"\{([^{}]*)\}", one)
        if group is None:
            done.append(one)
        else:
            start, end = one[: group.start()], one[group.end() :]
            pending += [start + choice + end for choice in reversed(group[1].split(","))]
    return done
