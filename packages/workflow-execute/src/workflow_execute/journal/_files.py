"""The versions of a workspace's files that the records of one thread refer to.

A version is taken before the first effect of a run that may change something, where no record has
the files as they are; with the record of each such effect; and at the end of its step.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio

from workflow_cas import Stored
from workflow_execute._ids import now_ms
from workflow_execute._records import TurnRecord
from workflow_execute.journal._facts import fact_objects
from workflow_execute.journal._turn_writer import QueuedRecord, TurnWriter
from workflow_protocol import Event, Hash, Work, WorkspaceVersioned
from workflow_workspace import FolderVersions, NotVersioned, Version


class ThreadFiles:
    """Which version of its files a thread has come to, by its records.

    Args:
        folder: takes the versions; `None` where none are kept.
        last: the version that the last record has.
        above: the same of the thread that started this one, whose files these are, too.
    """

    def __init__(
        self,
        folder: FolderVersions | None,
        last: Hash | None = None,
        above: ThreadFiles | None = None,
    ) -> None:
        self.folder = folder
        self.last = last
        self.notify: Callable[[Event], Awaitable[None]] | None = None
        """Hears when a folder has its first version, and that none are kept any more."""
        self._above = above
        self._compared = False
        self._may_have_changed = False
        self._order = anyio.Lock()

    async def before_effect(self, writer: TurnWriter) -> None:
        """Have the files as they are among the records, before something may change them.

        The record is written with the next one.
        """
        self.expect_changes()
        if self.folder is None or self._compared:
            return
        async with self._order:
            if not self._compared:
                self._compared = True
                version = await self._take(None)
                if version is not None:
                    record = TurnRecord(key="files", at_ms=now_ms(), kind="files")
                    writer.defer(record, version=version)

    async def queue_result(
        self,
        writer: TurnWriter,
        work: Work,
        record: TurnRecord,
        *objects: Stored,
    ) -> QueuedRecord:
        """Queue the record of an effect, with the version that it left, in the order of versions.

        Args:
            writer: the turn's.
            work: the effect, which may say what it changed, and what is remembered with it.
            record: the record.
            objects: what the record needs.
        """
        facts = fact_objects(work.carried)
        if self.folder is None:
            return writer.queue(record, *objects, facts=facts)
        queued: QueuedRecord | None = None
        with anyio.CancelScope(shield=True):  # the effect is done: its result must be written
            async with self._order:
                version = await self._take(work.changed_paths)
                queued = writer.queue(record, *objects, version=version, facts=facts)
        assert queued is not None
        return queued

    async def after_step(self) -> Version | None:
        """The version at the end of a step, if it isn't that of the last record."""
        if self.folder is None or not self._may_have_changed:
            return None
        self._may_have_changed = False
        async with self._order:
            return await self._take(None)

    def expect_changes(self) -> None:
        """Look at the files when the step ends: something may have changed some."""
        at: ThreadFiles | None = self
        while at is not None:
            at._may_have_changed = True
            at = at._above

    async def _take(self, changed: Sequence[str] | None) -> Version | None:
        """A new version, or `None` where the last one holds or none can be kept any more."""
        folder = self.folder
        if folder is None:  # another effect at the same time has found that out
            return None
        first = folder.is_new and self.last is None
        try:
            version = await folder.take(self.last, changed)
        except NotVersioned as error:
            self.folder = self.last = None
            await self._tell(folder, reason=str(error))
            return None
        if first:
            await self._tell(folder, first=True)
        if version.hash == self.last:
            return None
        self.last = version.hash
        return version

    async def _tell(self, folder: FolderVersions, *, first: bool = False, reason: str = "") -> None:
        if self.notify is not None:
            event = WorkspaceVersioned(
                workspace=str(folder.folder), first=first, left_out=folder.left_out, reason=reason
            )
            await self.notify(event)
