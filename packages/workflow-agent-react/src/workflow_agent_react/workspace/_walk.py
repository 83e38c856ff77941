"""What is in a workspace, in a stable order: without `.git` and without what git ignores."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace._workspace import Workspace

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

_MAX_IGNORE_BYTES = 64 * 1024
_MAX_DEPTH = 64

Kind = Literal["file", "folder", "link", "other"]


class Entry(msgspec.Struct, frozen=True):
    """Something in a folder. Links are told as links and never followed."""

    path: str
    """Relative to the workspace, with `/`."""
    kind: Kind


def walk(workspace: Workspace, folder: str) -> Iterator[Entry]:
    """Everything below a folder that git would not ignore, each folder before what is in it.

    Raises:
        OSError: the folder can't be opened. Folders below it that can't are skipped.
    """
    start = workspace.relative(folder)
    rules = IgnoreRules.above(workspace, start)
    pending = [(entry, rules) for entry in reversed(scan(workspace, start, rules))]
    while pending:
        entry, rules = pending.pop()
        yield entry
        if entry.kind == "folder" and entry.path.count("/") < _MAX_DEPTH:
            inner = rules.within(workspace, entry.path)
            try:
                found = scan(workspace, entry.path, inner)
            except OSError:
                continue
            pending += [(item, inner) for item in reversed(found)]


def scan(workspace: Workspace, folder: str, rules: IgnoreRules) -> list[Entry]:
    """The entries of one folder that aren't ignored, sorted by name.

    Raises:
        OSError: the folder can't be opened.
    """
    fd = workspace.open_folder(folder)
    try:
        with os.scandir(fd) as items:
            found: list[tuple[str, Kind]] = [(item.name, _kind(item)) for item in items]
    finally:
        os.close(fd)
    prefix = "" if folder == "." else f"{folder}/"
    entries = (Entry(prefix + name, kind) for name, kind in sorted(found) if name != ".git")
    return [entry for entry in entries if not rules.ignore(entry.path, entry.kind == "folder")]


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

    levels: tuple[tuple[str, GitIgnoreSpec], ...] = ()
    """Each with the folder it stands in, as a prefix of paths."""

    @classmethod
    def above(cls, workspace: Workspace, folder: str) -> IgnoreRules:
        """The rules that hold in a folder.

        A folder that is ignored itself, but asked for by name, is shown by its own rules only.
        """
        rules = cls().within(workspace, ".")
        if folder == ".":
            return rules
        parts = folder.split("/")
        for count in range(1, len(parts) + 1):
            path = "/".join(parts[:count])
            if rules.ignore(path, True):
                rules = cls()
            rules = rules.within(workspace, path)
        return rules

    def within(self, workspace: Workspace, folder: str) -> IgnoreRules:
        """These rules and those of the folder's own `.gitignore`, if it has one."""
        prefix = "" if folder == "." else f"{folder}/"
        try:
            data = workspace.read(f"{prefix}.gitignore", max_bytes=_MAX_IGNORE_BYTES)
        except (OSError, ToolError):
            return self
        whole = data if len(data) <= _MAX_IGNORE_BYTES else data[: data.rfind(b"\n") + 1]
        text = whole.removeprefix(codecs.BOM_UTF8).decode("utf-8", "surrogateescape")
        lines = text.replace("\r\n", "\n").split("\n")  # as git: other characters end no line
        spec = spec_of([line for line in lines if is_tame(line)])
        return IgnoreRules(((prefix, spec), *self.levels))

    def ignore(self, path: str, folder: bool, /) -> bool:
        """Whether git would ignore this path, whose parents aren't ignored."""
        for prefix, spec in self.levels:
            said = spec.check_file(path[len(prefix) :] + ("/" if folder else "")).include
            if said is not None:
                return said
        return False


def spec_of(lines: Sequence[str]) -> GitIgnoreSpec:
    """The rules of these lines, without those that aren't valid patterns."""
    from pathspec import GitIgnoreSpec  # here: a tenth of this package's import time

    def is_valid(line: str) -> bool:
        try:
            GitIgnoreSpec.from_lines([line])
        except ValueError:
            return False
        return True

    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return GitIgnoreSpec.from_lines(filter(is_valid, lines))


def is_tame(pattern: str) -> bool:
    """Whether matching is fast on every path.

    Patterns become regular expressions, which try each way to share a name among their stars:
    255**n / n! steps for n stars in a name. Three take 30 ms at worst, five a minute; all that
    time no other thread runs.
    """
    names = re.sub(r"\\.", "x", pattern).split("/")
    return names.count("**") <= 3 and all(len(re.findall(r"\*+", name)) <= 3 for name in names)
