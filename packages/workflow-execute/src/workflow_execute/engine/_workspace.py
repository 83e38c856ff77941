"""The folder that a thread works in."""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread


async def resolve_workspace(workspace: Path | None) -> Path:
    """The workspace as an absolute path; the current folder if none is given.

    Raises:
        NotADirectoryError: it is not a folder, or its name can't be stored.
    """
    return await to_thread.run_sync(_resolve, workspace or Path())


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
