"""The port: what a store does, whatever keeps the bytes. Every store has to pass `testing`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from workflow_cas._entries import Entry
from workflow_cas._errors import AmbiguousHash, ObjectMissing
from workflow_cas._objects import Node, RefMove, Stored, is_hash
from workflow_protocol import Hash

MIN_PREFIX = 4
MAX_CANDIDATES = 10

ProblemKind = Literal["damaged", "unreadable", "dangling"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One damaged thing."""

    kind: ProblemKind
    """Not the bytes that were written; can't be read at all; refers to what isn't stored."""
    place: str
    """The object's hash, `ref <name>`, or what part of the file it is."""
    message: str
    """What is wrong with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """What `verify` looked at and everything that is wrong with it."""

    objects: int
    """How many objects were read."""
    refs: int
    """How many refs."""
    bytes: int
    """Of the objects' data."""
    entries: int = 0
    """How many entries of the index."""
    problems: tuple[Problem, ...] = ()
    """What is wrong with it."""

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


@dataclass(frozen=True, slots=True, kw_only=True)
class GcReport:
    """What `collect_garbage` removed, or would remove in a dry run."""

    kept: int
    """How many objects are left."""
    removed: tuple[Hash, ...]
    """Sorted."""
    removed_bytes: int
    """Of the removed objects' data."""
    dry_run: bool
    """Whether nothing was removed in fact."""


class Store(Protocol):
    """Immutable objects by hash, and refs: the names that move from one object to another.

    What a ref or an object refers to is always stored: a commit that would break this is refused.
    """

    async def get(self, hash: Hash) -> Stored:
        """Return one object; its bytes are known to be those that the hash names.

        Raises:
            ObjectMissing: it is not stored.
            StoreCorrupt: its bytes are no longer those that were written.
        """
        ...

    async def get_many(self, hashes: Sequence[Hash]) -> list[Stored]:
        """Return objects in the order asked for, in one go.

        Raises:
            ObjectMissing: one of them is not stored.
            StoreCorrupt: the bytes of one are no longer those that were written.
        """
        ...

    async def chain(self, last: Hash, ends: Callable[[Node], bool]) -> list[Node]:
        """Follow first refs from one node to the next, in one go: `last` first.

        The last one given is the first of which `ends` is true, or the first without refs.
        `ends` may be called in another thread.

        Raises:
            ObjectMissing: one of them is not stored.
            StoreCorrupt: the bytes of one are no longer those that were written.
            StoreFormat: one of them is a content.
        """
        ...

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        """Write all of it, durably before this returns, or none of it.

        Args:
            objects: what is stored.
            moves: where refs go. The entry of a ref that is deleted goes with it.
            entries: what is found of refs that `moves` has, instead of what was.

        Objects that are stored already are fine; they count as written now. A cancelled commit
        is written as a whole or not at all, as is one whose process dies.

        Raises:
            RefConflict: a ref is not at its `old`.
            ObjectMissing: an object or a move refers to one that is neither stored nor in here.
            ValueError: a ref has an empty name or is moved twice, or an entry has no move of its
                ref.
            StoreBusy: another process kept the store locked.
            StoreFull: there is no room.
            StoreReadOnly: the store can't be written.
        """
        ...

    async def ref(self, name: str) -> Hash | None:
        """Return where a ref is, or `None` if there is none of this name."""
        ...

    async def refs(self, prefix: str = "") -> dict[str, Hash]:
        """Return the refs whose names begin with `prefix`, sorted by name."""
        ...

    async def entries(
        self,
        *,
        labels: Sequence[str] = (),
        any_of: Sequence[str] | None = None,
        first: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        """Return entries, sorted by their refs from the last to the first.

        It takes time in proportion to what has the rarest of `labels`, at most.

        Args:
            labels: all of them have to be on an entry.
            any_of: one of these has to be on it, too.
            first: give none whose ref comes before this name.
            before: give only those whose refs come before this name.
            limit: give no more than these, the last ones.
        """
        ...

    async def find(self, prefix: str) -> Hash:
        """Complete the beginning of a hash, of at least 4 hex digits.

        Raises:
            ObjectMissing: no object begins like this, or it is too short or not hex.
            AmbiguousHash: several do.
        """
        ...

    def watch(self, prefix: str = "") -> AbstractAsyncContextManager[AsyncIterator[RefMove]]:
        """Follow the refs under `prefix`, whoever moves them, from the moment of entering.

        Moves of other processes show within half a second. Quick moves of one ref may show as
        one: from where it was last seen to where it is.
        """
        ...

    async def verify(self) -> VerifyReport:
        """Read and hash everything and follow each link; list all damage. Changes nothing."""
        ...

    async def collect_garbage(self, *, keep_newer_than_s: float, dry_run: bool = False) -> GcReport:
        """Remove the objects that no ref reaches, except what was written lately.

        What was written in the last `keep_newer_than_s` seconds is kept with all that it refers
        to, so work that no ref reaches yet is safe while it takes less time than that.

        Raises:
            StoreCorrupt: an object that must be followed is damaged. Nothing is removed then.
        """
        ...


def check_moves(moves: Sequence[RefMove]) -> None:
    """Refuse names that no store could keep, and two moves of one ref.

    Raises:
        ValueError: says which.
    """
    names = [move.name for move in moves]
    for name in names:
        if not name or "\0" in name:
            raise ValueError(f"{name!r} can't be the name of a ref: use words joined by '/'")
        name.encode()
    for move in moves:
        if move.new is not None and not is_hash(move.new):
            raise ValueError(
                f"ref {move.name!r} can't move to {move.new!r}, which is not a full hash"
            )
    if len(set(names)) != len(names):
        raise ValueError(f"one commit moves a ref twice: {sorted(names)}")


def needed_hashes(objects: Sequence[Stored], moves: Sequence[RefMove]) -> set[Hash]:
    """What a commit refers to without bringing it along."""
    needed = {ref for stored in objects for ref in stored.refs}
    needed.update(move.new for move in moves if move.new is not None)
    return needed.difference(stored.hash for stored in objects)


def missing_in_commit(hash: Hash) -> ObjectMissing:
    """The error for a commit that refers to an object which is not stored."""
    return ObjectMissing(hash, "the commit refers to it; store it in the same commit or before")


def check_prefix(prefix: str) -> str:
    """The prefix of a hash in lower case.

    Raises:
        ObjectMissing: too short, too long or not hex.
    """
    digits = prefix.lower()
    if not (MIN_PREFIX <= len(digits) <= 64 and set(digits) <= set("0123456789abcdef")):
        raise ObjectMissing(prefix, f"give {MIN_PREFIX} to 64 hex digits")
    return digits


def single_match(prefix: str, found: Sequence[Hash]) -> Hash:
    """The hash that was meant.

    Raises:
        ObjectMissing: there is none.
        AmbiguousHash: there are several.
    """
    if not found:
        raise ObjectMissing(prefix)
    if len(found) > 1:
        raise AmbiguousHash(prefix, found)
    return found[0]


def ref_changes(before: dict[str, Hash], after: dict[str, Hash]) -> list[RefMove]:
    """The moves that lead from one state of the refs to another, sorted by name."""
    return [
        RefMove(name, before.get(name), after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]
