"""A record of a turn together with its result."""

from __future__ import annotations

from dataclasses import dataclass

from workflow_execute._records import TurnRecord
from workflow_protocol import Hash


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """A record of a turn with its result."""

    hash: Hash
    """Of the record's object."""
    record: TurnRecord
    """What was recorded."""
    data: bytes | None
    """The result; `None` for kinds that have none."""
    files: Hash | None = None
    """The version of the workspace's files that it has, if it has one."""

    @property
    def bytes(self) -> bytes:
        """The result of a kind that has one."""
        assert self.data is not None
        return self.data
