"""The files of a workspace as they are now, beside those that a thread has left in it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workflow_execute._ids import now_ms
from workflow_execute._records import TurnRecord
from workflow_execute.journal._turn_writer import TurnWriter
from workflow_execute.run._services import RunServices
from workflow_execute.threads._files import newest_version
from workflow_execute.threads._summary import thread_ref
from workflow_execute.threads._tree import ThreadTree
from workflow_protocol import Hash, WorkspaceDiffers
from workflow_workspace import FileChange, NotVersioned, Version, compare, put_back

_MOST_PATHS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PresentFiles:
    """How the files of a workspace are now, and how they were left."""

    left: Hash
    """The version that the thread has recorded last."""
    present: Version
    """The folder as it is now, stored."""
    changes: Sequence[FileChange]
    """Which files and links differ; `before` is as the thread left them."""


async def look_at_files(
    services: RunServices, tree: ThreadTree, folder: Path
) -> PresentFiles | None:
    """Compare a folder with what a thread has left; `None` where it has recorded no version.

    Raises:
        NotVersioned: no versions are kept of the folder any more.
    """
    versions = services.versions_of(folder) if tree.thread.start.versioned else None
    left = newest_version(tree)
    if versions is None or left is None:
        return None
    store = services.store
    present = await versions.take(left)
    if present.objects:
        await store.commit(present.objects)
    changes = await compare(store, left, present.hash)
    return PresentFiles(
        left=left, present=present, changes=[each for each in changes if not each.is_mere_folder]
    )


async def tell_of_files(
    services: RunServices, tree: ThreadTree, folder: Path, *, restore: bool
) -> None:
    """Tell which files are not as a thread left them, before it goes on; put them back if wanted.

    The caller owns the thread.

    Raises:
        NotVersioned: they are to be put back, and what is there now can't be kept before.
        RestoreError: some can't be written.
    """
    try:
        found = await look_at_files(services, tree, folder)
    except NotVersioned:
        if restore:
            raise
        return  # the run says so itself
    if found is None or not found.changes:
        return
    stay = await _put_back(services, tree, folder, found) if restore else ()
    paths = [each.path for each in found.changes if each.path not in stay]
    await services.notify(
        WorkspaceDiffers(
            thread=tree.thread.thread_id,
            workspace=str(folder),
            count=len(paths),
            paths=_shown(paths),
            put_back=restore,
            stay=_shown(stay),
            version=found.present.hash,
        )
    )


async def _put_back(
    services: RunServices, tree: ThreadTree, folder: Path, found: PresentFiles
) -> Sequence[str]:
    """Put the files back. Both versions are recorded before.

    A process that dies in the middle of it leaves the thread with what it left before, so that the
    rest can be put back by the next one.
    """
    thread = tree.thread
    writer = TurnWriter(services.store, thread_ref(thread.thread_id, "turn"), thread.turn)
    for version in (found.present, Version(found.left, ())):
        record = TurnRecord(key="files", at_ms=now_ms(), kind="files")
        writer.defer(record, version=version)
    await writer.flush()
    return await put_back(services.store, found.left, found.present.hash, folder)


def _shown(paths: Sequence[str]) -> tuple[str, ...]:
    """The first paths as text that can be written as JSON."""
    return tuple(
        os.fsencode(path).decode("utf-8", "backslashreplace") for path in paths[:_MOST_PATHS]
    )
