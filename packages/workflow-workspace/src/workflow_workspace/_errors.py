"""What goes wrong with the versions of a folder.

WorkflowError
├── NotVersioned    go on without: no versions are kept of this folder
└── RestoreError    give another folder: the files can't be put into this one
"""

from __future__ import annotations

from pathlib import Path

from workflow_protocol import WorkflowError


class NotVersioned(WorkflowError):
    """No versions are kept of a folder. `reason` says why, and what would help."""

    def __init__(self, folder: Path, reason: str) -> None:
        self.folder = folder
        self.reason = reason
        super().__init__(f"no versions are kept of {str(folder)!r}: {reason}")


class RestoreError(WorkflowError):
    """The files of a version can't be put into a folder. `path` is which of them, or the folder."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(f"can't restore {path!r}: {reason}")
