"""Both stores against a model, by a state machine: objects, refs, collection, reopening."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import anyio.from_thread
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from workflow_cas import (
    Entry,
    MemoryStore,
    ObjectMissing,
    RefConflict,
    RefMove,
    Store,
    Stored,
    content,
    node,
    open_store,
)
from workflow_protocol import Hash

T = TypeVar("T")

NAMES = st.sampled_from(["a", "a/b", "b"])
LABELS = st.lists(st.sampled_from(["x", "y", "z"]), max_size=3)


class StoreMachine(RuleBasedStateMachine):
    """Two writers that don't know of each other: what each believes of a ref may be stale."""

    objects: Bundle[Stored] = Bundle("objects")

    def __init__(self) -> None:
        super().__init__()
        self.portal_manager = anyio.from_thread.start_blocking_portal()
        self.portal = self.portal_manager.__enter__()
        self.stores = self.open()
        self.stored: dict[Hash, Stored] = {}
        self.refs: dict[str, Hash] = {}
        self.entries: dict[str, Entry] = {}
        self.believed: list[dict[str, Hash | None]] = [{}, {}]

    def open(self) -> list[Store]:
        raise NotImplementedError

    def close(self) -> None:
        """Close what `open` opened."""

    def teardown(self) -> None:
        self.close()
        self.portal_manager.__exit__(None, None, None)

    def call(self, function: Callable[..., Coroutine[Any, Any, T]], *arguments: object) -> T:
        return self.portal.call(function, *arguments)

    @rule(target=objects, text=st.text("ab", max_size=3))
    def make_content(self, text: str) -> Stored:
        return content(text)

    @rule(target=objects, number=st.integers(0, 3), parts=st.lists(objects, max_size=3))
    def make_node(self, number: int, parts: list[Stored]) -> Stored:
        return node("n", number, [part.hash for part in parts])

    @rule(writer=st.integers(0, 1), name=NAMES)
    def read_ref(self, writer: int, name: str) -> None:
        found = self.call(self.stores[writer].ref, name)
        assert found == self.refs.get(name)
        self.believed[writer][name] = found

    @rule(
        writer=st.integers(0, 1),
        put=st.lists(objects, max_size=4),
        places=st.dictionaries(NAMES, st.none() | objects, max_size=2),
        said=st.binary(max_size=2),
        labels=st.none() | LABELS,
    )
    def commit(
        self,
        writer: int,
        put: list[Stored],
        places: dict[str, Stored | None],
        said: bytes,
        labels: list[str] | None,
    ) -> None:
        moves = [
            RefMove(name, self.believed[writer].get(name), target.hash if target else None)
            for name, target in places.items()
        ]
        entries = [
            Entry(name, said, tuple(sorted(set(labels))))
            for name, target in places.items()
            if labels is not None and target is not None
        ]
        after = self.stored | {stored.hash: stored for stored in put}
        needed = {ref for stored in put for ref in stored.refs} | {m.new for m in moves if m.new}
        stale = any(self.refs.get(move.name) != move.old for move in moves)
        try:
            self.call(self.stores[writer].commit, put, moves, entries)
        except RefConflict as error:
            assert stale
            assert self.refs.get(error.name) == error.found != error.expected  # noqa: PT017
        except ObjectMissing as error:
            assert not stale
            assert error.hash in needed - after.keys()  # noqa: PT017
        else:
            assert not stale
            assert needed <= after.keys()
            self.stored = after
            for move in moves:
                self.believed[writer][move.name] = move.new
                if move.new:
                    self.refs[move.name] = move.new
                else:
                    self.refs.pop(move.name, None)
                    self.entries.pop(move.name, None)
            self.entries.update((entry.ref, entry) for entry in entries)

    @rule(writer=st.integers(0, 1))
    def collect(self, writer: int) -> None:
        live: dict[Hash, Stored] = {}
        waiting = list(self.refs.values())
        while waiting:
            hash = waiting.pop()
            live[hash] = self.stored[hash]
            waiting += self.stored[hash].refs
        store = self.stores[writer]

        async def run() -> tuple[Hash, ...]:
            return (await store.collect_garbage(keep_newer_than_s=0)).removed

        assert self.call(run) == tuple(sorted(self.stored.keys() - live.keys()))
        self.stored = live

    @rule(
        writer=st.integers(0, 1),
        labels=LABELS,
        any_of=st.none() | LABELS,
        first=st.none() | NAMES,
        before=st.none() | NAMES,
        limit=st.none() | st.integers(0, 3),
    )
    def search(
        self,
        writer: int,
        labels: list[str],
        any_of: list[str] | None,
        first: str | None,
        before: str | None,
        limit: int | None,
    ) -> None:
        expected = [
            entry
            for name, entry in sorted(self.entries.items(), reverse=True)
            if {*labels} <= {*entry.labels}
            and (any_of is None or {*any_of} & {*entry.labels})
            and (first is None or name >= first)
            and (before is None or name < before)
        ][:limit]

        async def run() -> list[Entry]:
            return await self.stores[writer].entries(
                labels=labels, any_of=any_of, first=first, before=before, limit=limit
            )

        assert self.call(run) == expected

    @rule()
    def reopen(self) -> None:
        self.close()
        self.stores = self.open()

    @invariant()
    def everything_is_as_in_the_model(self) -> None:
        for store in self.stores:
            assert self.call(store.refs) == dict(sorted(self.refs.items()))
            report = self.call(store.verify)
            assert (report.problems, report.objects) == ((), len(self.stored))
            assert report.entries == len(self.entries)
            assert {e.ref: e for e in self.call(store.entries)} == self.entries
            assert self.call(store.get_many, list(self.stored)) == list(self.stored.values())


class MemoryMachine(StoreMachine):
    memory: MemoryStore | None = None

    def open(self) -> list[Store]:
        self.memory = self.memory or MemoryStore()
        return [self.memory, self.memory]


class SqliteMachine(StoreMachine):
    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        super().__init__()

    def open(self) -> list[Store]:
        path = Path(self.folder.name) / "store.db"
        self.contexts = [
            self.portal.wrap_async_context_manager(open_store(path, durability="normal"))
            for _ in range(2)
        ]
        return [context.__enter__() for context in self.contexts]

    def close(self) -> None:
        for context in self.contexts:
            context.__exit__(None, None, None)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


slowly = settings(
    deadline=None,
    max_examples=25,
    stateful_step_count=25,
    suppress_health_check=[HealthCheck.too_slow],
)

TestMemoryMachine = MemoryMachine.TestCase
TestMemoryMachine.settings = slowly
TestSqliteMachine = SqliteMachine.TestCase
TestSqliteMachine.settings = slowly
