"""Names of files as they are shown, and the files that are meant by a name.

A name may be stored in another Unicode form than a model writes (`é` as one character or as two),
or not be UTF-8 at all, so that it can only be shown with escapes.
"""

from __future__ import annotations

import os
import unicodedata

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace._workspace import Workspace


class SameNames(ToolError):
    """More than one name is meant."""


def printable(path: str) -> str:
    """A path on one line that a message can carry, and by which it is found."""
    text = path.encode("utf-8", "backslashreplace").decode()
    return (
        text
        if text.isprintable()
        else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    )


def plain(name: str) -> str:
    """A name in ASCII, by which it is found beside others that look the same."""
    return printable(name).encode("ascii", "backslashreplace").decode()


def composed(name: str) -> str:
    """A name in the form in which those that look the same are equal (NFC)."""
    return unicodedata.normalize("NFC", name)


def actual_path(workspace: Workspace, path: str) -> str:
    """The path with each name as it is stored: as given if that exists, else the same to the eye.

    What exists under no such name stays as it was given. Look-alikes (`ﬁ`, `fi`) aren't the same.

    Raises:
        SameNames: two names or more are the same to the eye, and none is as given.
        OutsideWorkspace: it is absolute and not in the workspace.
    """
    parts = workspace.relative(path).split("/")
    actual: list[str] = []
    for index, part in enumerate(parts):
        if part not in {".", ".."}:
            name = _name_in(workspace, "/".join(actual) or ".", part)
            if name is None:
                actual += parts[index:]
                break
            part = name
        actual.append(part)
    if actual == parts:
        return path
    return "/".join(actual) + "/" * path.endswith(("/", "/."))


def _name_in(workspace: Workspace, folder: str, wanted: str) -> str | None:
    try:
        fd = workspace.open_folder(folder)
    except (OSError, ToolError):
        return None
    try:
        os.stat(wanted, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        same = [name for name in os.listdir(fd) if _is_meant(name, wanted)]
    except OSError:
        return None
    else:
        return wanted
    finally:
        os.close(fd)
    if len(same) > 1:
        names = ", ".join(f"'{plain(name)}'" for name in sorted(same))
        raise SameNames(
            f"{printable(wanted)!r} could be any of {len(same)} names that look the same: {names}; "
            "give one of these"
        )
    return same[0] if same else None


def _is_meant(name: str, wanted: str) -> bool:
    if name.isascii() and name.isprintable():
        return composed(wanted) == name
    shown = printable(name)
    return composed(shown) == composed(wanted) or wanted in {shown, plain(name)}
