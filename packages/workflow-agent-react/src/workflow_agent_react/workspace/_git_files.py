"""What the tools that write may not write: files by which git would run a program.

Commands in the sandbox are kept from the same by what `find_git_places` finds.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace._workspace import Workspace
from workflow_workspace import GIT_FOLDER, git_settings


def must_not_steer_git(workspace: Workspace, path: str, names: Sequence[str]) -> None:
    """Refuse a place in a folder of git, or that would make one, or that git's settings name.

    Args:
        path: what the model asked for.
        names: the real way there from the workspace.

    Raises:
        ToolError: git would run what stands there, or look for it where the file says.
    """
    if any(_is_dot_git(name) for name in names):
        raise ToolError(
            f"{path!r} belongs to git, which runs what its files name; use git commands instead"
        )
    root = os.path.realpath(workspace.root)
    for depth, name in enumerate(names):
        if _would_make_git_folder(os.path.join(root, *names[:depth]), name):
            raise ToolError(
                f"{path!r} would make its folder a bare git repository, or is in one, and git "
                "runs what its config says; choose another name or folder"
            )
    whole = os.path.join(root, *names)
    if any(f"{whole}/".startswith(f"{file}/") for file in git_settings(root).files):
        raise ToolError(
            f"{path!r} is named by git's configuration, so git may run what it says; a person "
            "has to change it"
        )


def _is_dot_git(name: str) -> bool:
    """Also as file systems take it that ignore case, or characters that aren't seen (HFS+)."""
    seen = "".join(each for each in name if unicodedata.category(each) != "Cf")
    return unicodedata.normalize("NFKC", seen).casefold() == ".git"


def _would_make_git_folder(folder: str, name: str) -> bool:
    return all(
        needed.casefold() == name.casefold() or os.path.lexists(os.path.join(folder, needed))
        for needed in GIT_FOLDER
    )
