"""Looking only at the paths that are said to have changed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from workflow_workspace.versions._known import KnownFiles, KnownFolder
from workflow_workspace.versions._scan import Wanted


def wanted_names(paths: Sequence[str], folder: Path) -> Wanted | None:
    """The paths as a tree of names; `None` where one doesn't lead into the folder plainly."""
    wanted: Wanted = {}
    for path in paths:
        inside = os.path.relpath(path, folder) if os.path.isabs(path) else path
        parts = [part for part in inside.split("/") if part not in {"", "."}]
        if not parts or ".." in parts:
            return None
        at = wanted
        for part in parts[:-1]:
            inner = at.setdefault(part, {})
            if inner is None:
                break
            at = inner
        else:
            at[parts[-1]] = None
    return wanted


def merged(known: KnownFiles, seen: dict[str, KnownFolder]) -> dict[str, KnownFolder]:
    """All folders, after only some were looked at."""
    folders = {**known.folders, **seen}
    gone = [
        f"{path}/{name}" if path else name
        for path, folder in seen.items()
        if path in known.folders
        for name, item in known.folders[path].items.items()
        if item.entry is not None and item.entry.kind == "folder" and not _is_folder(folder, name)
    ]
    for lost in gone:
        for path in [each for each in folders if each == lost or each.startswith(lost + "/")]:
            del folders[path]
    return folders


def _is_folder(folder: KnownFolder, name: str) -> bool:
    item = folder.items.get(name)
    return item is not None and item.entry is not None and item.entry.kind == "folder"
