"""The folders that threads work in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from anyio import to_thread

from workflow_protocol import ThreadId
from workflow_workspace import remove_beside


async def resolve_workspace(workspace: Path | None) -> Path:
    """The workspace as an absolute path; the current folder if none is given.

    Raises:
        NotADirectoryError: it is not a folder, or its name can't be stored.
    """
    return await to_thread.run_sync(_resolve, workspace or Path())


async def remove_own_folders(workspaces: Path | None, thread_ids: Iterable[ThreadId]) -> None:
    """Remove the folders that were made for threads, which are gone."""
    if workspaces is not None:
        for each in thread_ids:
            await to_thread.run_sync(remove_beside, workspaces / each)


def _resolve(workspace: Path) -> Path:
    folder = workspace.resolve()
    if not folder.is_dir():
        raise NotADirectoryError(f"the workspace {str(folder)!r} is not a folder; create it")
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise NotADirectoryError(
            f"the workspace {str(folder)!r} has a name that is not UTF-8; rename it"
        ) from error
    return folder
