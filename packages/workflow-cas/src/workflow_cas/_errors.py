"""What can go wrong with a store, by what a caller would do about it.

StoreError (a WorkflowError)  the disk or SQLite reported something that has no name below
├── StoreBusy                 try again: another process held the write lock for too long
├── StoreFull                 make room: disk, quota or file-size limit is used up
├── StoreReadOnly             open another place, or mend the permissions
├── StoreCorrupt              restore: what is on disk isn't what was written
├── StoreFormat               upgrade: written by a newer version, or by another program
├── RefConflict               read the ref again: somebody else moved it first
├── ObjectMissing             fix the hash: nothing is stored under it
└── AmbiguousHash             type more digits: several objects begin like this
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from workflow_protocol import Hash, WorkflowError


class StoreError(WorkflowError):
    """A store could not do what it was asked. `path` is its file, if it has one."""

    def __init__(self, message: str, *, path: Path | None = None) -> None:
        self.path = path
        super().__init__(f"store {str(path)!r}: {message}" if path else message)


class StoreBusy(StoreError):
    """Another process kept the store locked beyond the timeout. Nothing was written."""


class StoreFull(StoreError):
    """There is no room for what was to be written. Nothing of it was."""


class StoreReadOnly(StoreError):
    """The store, its file or its directory can't be written."""


class StoreCorrupt(StoreError):
    """What is on disk isn't what was written. `hash` names the damaged object, if it is one."""

    def __init__(self, message: str, *, path: Path | None = None, hash: Hash | None = None) -> None:
        self.hash = hash
        super().__init__(
            f"{message}; restore it from a backup, `verify` lists all damage", path=path
        )


class StoreFormat(StoreError):
    """The data is in a form that this version does not know."""


class RefConflict(StoreError):
    """A ref was not where the commit expected it, so nothing of the commit was written."""

    def __init__(self, name: str, expected: Hash | None, found: Hash | None) -> None:
        self.name = name
        self.expected = expected
        self.found = found
        super().__init__(
            f"ref {name!r} was expected at {expected!r} and found at {found!r}: "
            "read it again, then retry"
        )


class ObjectMissing(StoreError):
    """Nothing is stored under `hash`, which may be a prefix that was to be completed."""

    def __init__(
        self, hash: str, advice: str = "check the hash; garbage collection may have removed it"
    ) -> None:
        self.hash = hash
        super().__init__(f"no object is stored under {hash!r}: {advice}")


class AmbiguousHash(StoreError):
    """Several objects begin with `prefix`; `candidates` holds the first of them."""

    def __init__(self, prefix: str, candidates: Sequence[Hash]) -> None:
        self.prefix = prefix
        self.candidates = tuple(candidates)
        super().__init__(
            f"several objects begin with {prefix!r}; give more digits: "
            + ", ".join(self.candidates)
        )
