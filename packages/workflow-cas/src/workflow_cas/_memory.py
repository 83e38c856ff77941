"""The store in memory: for a run that nobody resumes, and for tests."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager

import anyio
import anyio.lowlevel

from workflow_cas._entries import Entry, check_entries, is_found
from workflow_cas._errors import ObjectMissing, RefConflict, StoreCorrupt
from workflow_cas._gc import reachable
from workflow_cas._objects import Node, RefMove, Stored, restore
from workflow_cas._store import (
    MAX_CANDIDATES,
    GcReport,
    Problem,
    Store,
    VerifyReport,
    check_moves,
    check_prefix,
    missing_in_commit,
    needed_hashes,
    ref_changes,
    single_match,
)
from workflow_protocol import Hash


class MemoryStore(Store):
    """A store that lives as long as this object does."""

    def __init__(self) -> None:
        self._objects: dict[Hash, Stored] = {}
        self._written_s: dict[Hash, float] = {}
        self._refs: dict[str, Hash] = {}
        self._entries: dict[str, Entry] = {}
        self._watchers: set[anyio.Event] = set()

    async def get(self, hash: Hash) -> Stored:
        await anyio.lowlevel.checkpoint()
        return self._get(hash)

    async def get_many(self, hashes: Sequence[Hash]) -> list[Stored]:
        await anyio.lowlevel.checkpoint()
        return [self._get(hash) for hash in hashes]

    async def chain(self, last: Hash, ends: Callable[[Node], bool]) -> list[Node]:
        await anyio.lowlevel.checkpoint()
        nodes = [self._get(last).as_node()]
        while not ends(nodes[-1]) and nodes[-1].refs:
            nodes.append(self._get(nodes[-1].refs[0]).as_node())
        return nodes

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        check_moves(moves)
        check_entries(entries, moves)
        await anyio.lowlevel.checkpoint()
        for move in moves:
            if (found := self._refs.get(move.name)) != move.old:
                raise RefConflict(move.name, move.old, found)
        for hash in needed_hashes(objects, moves):
            if hash not in self._objects:
                raise missing_in_commit(hash)
        now_s = time.monotonic()
        for stored in objects:
            self._objects[stored.hash] = stored
            self._written_s[stored.hash] = now_s
        for move in moves:
            if move.new is None:
                self._refs.pop(move.name, None)
                self._entries.pop(move.name, None)
            else:
                self._refs[move.name] = move.new
        self._entries.update((entry.ref, entry) for entry in entries)
        if moves:
            for watcher in self._watchers:
                watcher.set()

    async def ref(self, name: str) -> Hash | None:
        await anyio.lowlevel.checkpoint()
        return self._refs.get(name)

    async def refs(self, prefix: str = "") -> dict[str, Hash]:
        await anyio.lowlevel.checkpoint()
        return self._refs_under(prefix)

    async def entries(
        self,
        *,
        labels: Sequence[str] = (),
        any_of: Sequence[str] | None = None,
        first: str | None = None,
        before: str | None = None,
        limit: int | None = None,
    ) -> list[Entry]:
        await anyio.lowlevel.checkpoint()
        found = [
            self._entries[name]
            for name in sorted(self._entries, reverse=True)
            if is_found(
                self._entries[name], labels=labels, any_of=any_of, first=first, before=before
            )
        ]
        return found[:limit]

    async def find(self, prefix: str) -> Hash:
        digits = check_prefix(prefix)
        await anyio.lowlevel.checkpoint()
        found = sorted(hash for hash in self._objects if hash.startswith(digits))
        return single_match(prefix, found[:MAX_CANDIDATES])

    @asynccontextmanager
    async def watch(self, prefix: str = "") -> AsyncGenerator[AsyncIterator[RefMove]]:
        before = await self.refs(prefix)
        async with aclosing(self._changes(prefix, before)) as changes:
            yield changes

    async def verify(self) -> VerifyReport:
        await anyio.lowlevel.checkpoint()
        problems = [
            Problem(kind="damaged", place=hash, message="its bytes are not those of its hash")
            for hash, stored in self._objects.items()
            if restore(hash, stored.kind, stored.data) is None
        ]
        return VerifyReport(
            objects=len(self._objects),
            refs=len(self._refs),
            entries=len(self._entries),
            bytes=sum(len(stored.data) for stored in self._objects.values()),
            problems=tuple(problems),
        )

    async def collect_garbage(self, *, keep_newer_than_s: float, dry_run: bool = False) -> GcReport:
        await anyio.lowlevel.checkpoint()
        cutoff_s = time.monotonic() - keep_newer_than_s
        recent = [hash for hash, written_s in self._written_s.items() if written_s > cutoff_s]
        live = reachable([*self._refs.values(), *recent], lambda hash: self._objects[hash].refs)
        garbage = sorted(self._objects.keys() - live)
        removed_bytes = sum(len(self._objects[hash].data) for hash in garbage)
        if not dry_run:
            for hash in garbage:
                del self._objects[hash], self._written_s[hash]
        return GcReport(
            kept=len(live), removed=tuple(garbage), removed_bytes=removed_bytes, dry_run=dry_run
        )

    def _get(self, hash: Hash) -> Stored:
        if (stored := self._objects.get(hash)) is None:
            raise ObjectMissing(hash)
        if restore(hash, stored.kind, stored.data) is None:
            raise StoreCorrupt(f"object {hash} is damaged", hash=hash)
        return stored

    def _refs_under(self, prefix: str) -> dict[str, Hash]:
        return {name: self._refs[name] for name in sorted(self._refs) if name.startswith(prefix)}

    async def _changes(self, prefix: str, before: dict[str, Hash]) -> AsyncGenerator[RefMove]:
        while True:
            woken = anyio.Event()
            self._watchers.add(woken)
            try:
                after = self._refs_under(prefix)
                for change in ref_changes(before, after):
                    yield change
                before = after
                await woken.wait()
            finally:
                self._watchers.discard(woken)
