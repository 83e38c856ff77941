"""What getting or serving a local model can fail with.

WorkflowError
└── LocalModelError
    ├── UnknownModel       fix the name: `known` lists the ones there are
    ├── ModelAbsent        pull it first: `command` does
    ├── PullError          try again later: every source failed, `failures` says how
    ├── DiskFull           make room: `needed_bytes` on the disk of `path`
    ├── CacheUnusable      choose another folder: `path` can't be read or written
    └── ServerError        the server did not start: `reason` is its own last word

SourceError and its kind WrongHash are the entries of `PullError.failures`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from workflow_protocol import WorkflowError


class LocalModelError(WorkflowError):
    """A local model could not be found, fetched or served."""


class UnknownModel(LocalModelError):
    """The catalogue has no model of this name. `known` lists the names that it has."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.name = name
        self.known = tuple(sorted(known))
        super().__init__(f"there is no local model {name!r}; choose one of {', '.join(self.known)}")


class ModelAbsent(LocalModelError):
    """The weights aren't on this disk. `command` fetches them."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.path = path
        self.command = f"uwf model pull {name}"
        super().__init__(
            f"the weights of {name!r} are missing: there is no {str(path)!r}; run: {self.command}"
        )


class SourceError(LocalModelError):
    """One source did not give the weights. `source` names it, `reason` says why."""

    def __init__(self, source: str, reason: str) -> None:
        self.source = source
        self.reason = reason
        super().__init__(f"{source}: {reason}")


class WrongHash(SourceError):
    """A source gave other bytes than the pinned ones. They were removed."""

    def __init__(self, source: str, *, expected: str, found: str) -> None:
        self.expected = expected
        self.found = found
        super().__init__(
            source,
            f"the file has SHA-256 {found} instead of {expected}; it was deleted",
        )


class PullError(LocalModelError):
    """No source gave the weights. `failures` has one entry for each source, in order."""

    def __init__(self, name: str, failures: Sequence[SourceError]) -> None:
        self.name = name
        self.failures = tuple(failures)
        lines = "".join(f"\n  {failure}" for failure in self.failures)
        super().__init__(
            f"{name!r} could not be downloaded; check the network and run `uwf model pull {name}`"
            f" again:{lines}"
        )


class DiskFull(LocalModelError):
    """The disk has too little room for the weights. What was fetched of them is removed."""

    def __init__(self, path: Path, *, needed_bytes: int, free_bytes: int) -> None:
        self.path = path
        self.needed_bytes = needed_bytes
        self.free_bytes = free_bytes
        super().__init__(
            f"{str(path)!r} needs {needed_bytes:,} free bytes and has {free_bytes:,};"
            " free some space, or set UWF_MODELS to another folder"
        )


class CacheUnusable(LocalModelError):
    """The folder for weights can't be used. `reason` is the system's own word."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"can't write weights to {str(path)!r}: {reason}; set UWF_MODELS to another folder"
        )


class ServerError(LocalModelError):
    """The model server did not start, or its settings can't work."""

    def __init__(self, name: str, reason: str) -> None:
        self.name = name
        self.reason = reason
        super().__init__(f"could not serve {name!r}: {reason}")
