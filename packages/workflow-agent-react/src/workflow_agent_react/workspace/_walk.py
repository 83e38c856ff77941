"""What is in a workspace, in a stable order: without `.git` and without what git ignores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Literal

import msgspec

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace._workspace import Workspace
from workflow_workspace import Effort, Rules

_MAX_IGNORE_BYTES = 64 * 1024
_MAX_DEPTH = 64
_CHECK_EVERY = 256

Kind = Literal["file", "folder", "link", "other"]


class Entry(msgspec.Struct, frozen=True):
    """Something in a folder. Links are listed as links and never followed."""

    path: str
    """Relative to the workspace, with `/`."""
    kind: Kind


def walk(
    workspace: Workspace,
    folder: str,
    *,
    effort: Effort | None = None,
    check: Callable[[], None] | None = None,
) -> Iterator[Entry]:
    """Everything below a folder that git would not ignore, each folder before what is in it.

    Args:
        effort: what the rules may take; it says afterwards whether some were left out.
        check: called now and then, also where there is nothing to give yet. What it raises ends it.

    Raises:
        OSError: the folder can't be opened. Folders below it that can't are skipped.
    """
    start = workspace.relative(folder)
    rules = IgnoreRules.above(workspace, start, effort=effort)
    pending = [(entry, rules) for entry in reversed(scan(workspace, start, rules, check=check))]
    while pending:
        entry, rules = pending.pop()
        yield entry
        if entry.kind == "folder" and entry.path.count("/") < _MAX_DEPTH:
            inner = rules.within(workspace, entry.path)
            try:
                found = scan(workspace, entry.path, inner, check=check)
            except OSError:
                continue
            pending += [(item, inner) for item in reversed(found)]


def scan(
    workspace: Workspace,
    folder: str,
    rules: IgnoreRules,
    *,
    check: Callable[[], None] | None = None,
) -> list[Entry]:
    """The entries of one folder that aren't ignored, sorted by name.

    Raises:
        OSError: the folder can't be opened.
    """
    fd = workspace.open_folder(folder)
    found: list[tuple[str, Kind]] = []
    try:
        with os.scandir(fd) as items:
            for item in items:
                found.append((item.name, _kind(item)))
                if check is not None and len(found) % _CHECK_EVERY == 0:
                    check()
    finally:
        os.close(fd)
    prefix = "" if folder == "." else f"{folder}/"
    entries: list[Entry] = []
    for number, (name, kind) in enumerate(sorted(found)):
        if check is not None and number % _CHECK_EVERY == 0:
            check()
        entry = Entry(prefix + name, kind)
        if name != ".git" and not rules.ignore(entry.path, kind == "folder"):
            entries.append(entry)
    return entries


def _kind(item: os.DirEntry[str]) -> Kind:
    try:
        if item.is_symlink():
            return "link"
        if item.is_dir(follow_symlinks=False):
            return "folder"
        return "file" if item.is_file(follow_symlinks=False) else "other"
    except OSError:
        return "other"  # it is gone


class IgnoreRules(msgspec.Struct, frozen=True):
    """The `.gitignore` files from the workspace down to a folder, the nearest first."""

    effort: Effort
    levels: tuple[tuple[int, Rules], ...] = ()
    """Each with the length of the path that it stands at."""

    @classmethod
    def above(
        cls, workspace: Workspace, folder: str, *, effort: Effort | None = None
    ) -> IgnoreRules:
        """The rules that hold in a folder.

        A folder that is ignored itself, but asked for by name, is shown by its own rules only.

        Args:
            effort: what all of them may take together.
        """
        none = cls(effort or Effort())
        rules = none.within(workspace, ".")
        if folder == ".":
            return rules
        parts = folder.split("/")
        for count in range(1, len(parts) + 1):
            path = "/".join(parts[:count])
            if rules.ignore(path, True):
                rules = none
            rules = rules.within(workspace, path)
        return rules

    def within(self, workspace: Workspace, folder: str) -> IgnoreRules:
        """These rules and those of the folder's own `.gitignore`, if it has one."""
        prefix = "" if folder == "." else f"{folder}/"
        if self.effort.is_spent:
            return self
        try:
            data = workspace.read(f"{prefix}.gitignore", max_bytes=_MAX_IGNORE_BYTES)
        except (OSError, ToolError):
            return self
        whole = data if len(data) <= _MAX_IGNORE_BYTES else data[: data.rfind(b"\n") + 1]
        level = len(os.fsencode(prefix)), Rules.of(whole, self.effort)
        return IgnoreRules(self.effort, (level, *self.levels))

    def ignore(self, path: str, folder: bool, /) -> bool:
        """Whether git would ignore this path, whose parents aren't ignored."""
        whole = os.fsencode(path)
        for start, rules in self.levels:
            said = rules.decide(whole[start:], folder=folder, effort=self.effort)
            if said is not None:
                return said
        return False
