"""Failed paths in words for the model: what is wrong, what it may have meant, what to call next."""

from __future__ import annotations

import difflib
import errno
import os
import posixpath
import unicodedata
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from itertools import islice

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace._walk import IgnoreRules, scan, walk
from workflow_agent_react.workspace._workspace import NotRegular, Workspace

_MAX_LOOKED_AT = 3_000
_MAX_NAMED = 20


class NoSuchPath(ToolError):
    """There is nothing under this path."""


@contextmanager
def told_to_the_model(workspace: Workspace, path: str) -> Generator[None]:
    """Turn the system's errors about a path into `ToolError`s that help."""
    try:
        yield
    except NotRegular:
        raise ToolError(f"{path!r} is not a regular file but a pipe, socket or device") from None
    except IsADirectoryError:
        raise ToolError(_folder(workspace, path)) from None
    except FileNotFoundError:
        raise NoSuchPath(_missing(workspace, path)) from None
    except NotADirectoryError:
        raise ToolError(f"{path!r} is not a folder, or something on the way isn't one") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ToolError(f"{path!r} is a link that leads in a circle") from None
        raise ToolError(f"{path!r}: {os.strerror(error.errno or errno.EIO)}") from error


def _folder(workspace: Workspace, path: str) -> str:
    entries = walk(workspace, workspace.relative(path))
    files = [entry.path for entry in islice(entries, _MAX_LOOKED_AT) if entry.kind == "file"]
    some = f"; files in it: {_some(files)}" if files else ""
    return f"{path!r} is a folder, give the path of a file{some}"


def _some(paths: Sequence[str]) -> str:
    more = f" and {len(paths) - _MAX_NAMED} more" if len(paths) > _MAX_NAMED else ""
    return ", ".join(map(repr, paths[:_MAX_NAMED])) + more


def _missing(workspace: Workspace, path: str) -> str:
    near = _near(workspace, workspace.relative(path))
    if near:
        return f"there is no {path!r}; did you mean {' or '.join(map(repr, near))}?"
    entries = scan(workspace, ".", IgnoreRules.above(workspace, "."))
    top = [f"{entry.path}/" if entry.kind == "folder" else entry.path for entry in entries]
    there = f"at the top there are {_some(top)}" if top else "the workspace is empty"
    return f"there is no {path!r}; {there}"


def _near(workspace: Workspace, path: str) -> list[str]:
    """Up to three paths that look like this one: the same name elsewhere, then similar names."""
    name = _folded(posixpath.basename(path))
    entries = islice(walk(workspace, "."), _MAX_LOOKED_AT)
    paths = [entry.path for entry in entries if entry.kind in {"file", "folder", "link"}]
    same = [one for one in paths if _folded(posixpath.basename(one)) == name]
    if same:
        return same[:3]
    siblings = {_folded(one): one for one in paths}
    close = difflib.get_close_matches(_folded(path)[:200], siblings, n=3, cutoff=0.75)
    if close:
        return [siblings[one] for one in close]
    names = {_folded(posixpath.basename(one)): one for one in reversed(paths)}
    return [names[one] for one in difflib.get_close_matches(name[:200], names, n=2, cutoff=0.75)]


def _folded(name: str) -> str:
    """Without case, and look-alikes as the letters that they look like: `ﬁ` as `fi`."""
    return unicodedata.normalize("NFKC", name).casefold()
