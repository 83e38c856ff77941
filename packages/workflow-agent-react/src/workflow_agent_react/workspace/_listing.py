"""Listing the files of a workspace."""

from __future__ import annotations

import posixpath
from collections import Counter, deque

from workflow_agent_react.workspace._names import actual_path, composed, plain, printable
from workflow_agent_react.workspace._paths import told_to_the_model
from workflow_agent_react.workspace._walk import IgnoreRules, Kind, scan
from workflow_agent_react.workspace._workspace import Workspace
from workflow_workspace import Effort

MAX_LISTED = 300
MAX_LISTED_CHARS = 15_000  # below an adapter's own cut, as for `read_file`
DEFAULT_DEPTH = 3
SMALL = 40
"""So few lines are shown down to the default depth, whatever was asked: it saves rounds."""
MAX_DEPTH = 20


def list_files(workspace: Workspace, path: str = ".", *, depth: int = DEFAULT_DEPTH) -> str:
    """The paths below a folder, sorted; folders end in `/`, links are told as links.

    A small tree is shown to the default depth at least. The upper levels are listed before the
    lower ones are begun, so a large tree is cut below.

    Raises:
        ToolError: there is no such folder.
    """
    with told_to_the_model(workspace, path):
        path = actual_path(workspace, path)
        start, depth = workspace.relative(path), min(max(depth, 1), MAX_DEPTH)
        effort = Effort()
        lines, hidden = _tree(workspace, start, depth, effort)
        if hidden and depth < DEFAULT_DEPTH:
            deeper = _tree(workspace, start, DEFAULT_DEPTH, effort)
            if len(deeper[0]) <= SMALL:
                lines, hidden = deeper
    if not lines:
        return f"({workspace.relative(path)} is empty)"
    shown = [lines[key] for key in sorted(lines)]
    if hidden:
        shown.append(f"({hidden}; call list_files with one of the folders as path)")
    if effort.note:
        shown.append(effort.note)
    return "\n".join(shown)


def _tree(
    workspace: Workspace, start: str, depth: int, effort: Effort
) -> tuple[dict[tuple[str, ...], str], str]:
    lines: dict[tuple[str, ...], str] = {}
    top = "" if start == "." else f"{printable(start)}/"
    pending = deque([(start, top, IgnoreRules.above(workspace, start, effort=effort), depth)])
    closed = size = 0
    while pending:
        folder, prefix, rules, left = pending.popleft()
        try:
            entries = scan(workspace, folder, rules)
        except OSError:
            if folder == start:
                raise
            continue
        names = [posixpath.basename(entry.path) for entry in entries]
        alike = Counter(map(composed, names))
        for index, (entry, name) in enumerate(zip(entries, names, strict=True)):
            if len(lines) >= MAX_LISTED or size >= MAX_LISTED_CHARS:
                unseen = len(entries) - index
                return lines, f"{unseen} more in {folder!r}, and more below what is listed"
            is_twin = alike[composed(name)] > 1 and name != composed(name)
            shown = prefix + (plain(name) if is_twin else printable(name))
            line = _line(shown, entry.kind)
            lines[tuple(entry.path.split("/"))] = line
            size += len(line) + 1
            if entry.kind == "folder" and left > 1:
                inner = rules.within(workspace, entry.path)
                pending.append((entry.path, f"{shown}/", inner, left - 1))
            elif entry.kind == "folder":
                closed += 1
    return lines, f"{closed} folder{'s' * (closed != 1)} not opened" if closed else ""


def _line(name: str, kind: Kind) -> str:
    match kind:
        case "folder":
            return f"{name}/"
        case "link":
            return f"{name} (link)"
        case "other":
            return f"{name} (not a regular file)"
        case "file":
            return name
