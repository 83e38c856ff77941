"""What every store has to do, as a test class to inherit from.

    class TestMyStore(StoreConformance):
        @pytest.fixture
        async def store(self) -> AsyncIterator[Store]:
            async with open_my_store() as store:
                yield store

The tests are coroutines: run them with pytest-asyncio in auto mode. Ask for readable assertions
with `pytest.register_assert_rewrite("workflow_cas.testing")` in `conftest.py`.
"""

# ruff: noqa: D102  (the name of a test is its sentence)

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Any, TypeVar

import anyio

from workflow_cas import (
    AmbiguousHash,
    Entry,
    ObjectMissing,
    RefConflict,
    RefMove,
    Store,
    StoreError,
    StoreFormat,
    content,
    node,
)
from workflow_protocol import Hash

E = TypeVar("E", bound=Exception)

_NOWHERE = Hash("0" * 64)


async def raised(error: type[E], awaitable: Awaitable[object]) -> E:
    """Return the error that this raises. It fails if there is none."""
    try:
        result = await awaitable
    except error as found:
        return found
    raise AssertionError(f"{error.__name__} was not raised; the result is {result!r}")


class StoreConformance:
    """Inherit, and define a fixture `store` that gives an empty store."""

    async def test_objects_come_back_as_they_were_written(self, store: Store) -> None:
        raw = content(bytes(range(256)))
        empty = content(b"")
        state = node("state", {"text": 'é\u2028"\\', "n": [1, 2.5, None]}, [raw.hash, empty.hash])
        await store.commit([raw, empty, state])
        assert await store.get(raw.hash) == raw
        assert await store.get(empty.hash) == empty
        assert await store.get(state.hash) == state

    async def test_text_that_looks_like_a_node_is_just_text(self, store: Store) -> None:
        real = node("state", 1)
        text = content(real.data)
        assert text.hash != real.hash
        await store.commit([text])
        assert (await store.get(text.hash)).kind == "content"
        await raised(ObjectMissing, store.get(real.hash))
        await store.commit([real])
        assert (await store.get(text.hash), await store.get(real.hash)) == (text, real)

    async def test_many_objects_come_in_the_order_asked_for(self, store: Store) -> None:
        objects = [content(f"{number}") for number in range(50)]
        await store.commit(objects)
        wanted = [*reversed(objects), objects[3], objects[3]]
        assert await store.get_many([stored.hash for stored in wanted]) == wanted
        assert await store.get_many([]) == []

    async def test_what_is_not_stored_is_missing(self, store: Store) -> None:
        stored = content("here")
        await store.commit([stored])
        for hash in (_NOWHERE, Hash(stored.hash[:10]), Hash("no hash"), Hash("")):
            assert (await raised(ObjectMissing, store.get(hash))).hash == hash
            error = await raised(ObjectMissing, store.get_many([stored.hash, hash]))
            assert error.hash == hash

    async def test_a_ref_is_made_moved_and_deleted(self, store: Store) -> None:
        one, two = content("1"), content("2")
        assert await store.ref("head") is None
        await store.commit([one, two], [RefMove("head", None, one.hash)])
        assert await store.ref("head") == one.hash
        await store.commit([], [RefMove("head", one.hash, two.hash)])
        assert await store.ref("head") == two.hash
        await store.commit([], [RefMove("head", two.hash, None)])
        assert await store.ref("head") is None
        assert await store.refs() == {}

    async def test_a_move_to_the_same_place_only_checks(self, store: Store) -> None:
        one = content("1")
        await store.commit([one], [RefMove("a", None, one.hash)])
        await store.commit([], [RefMove("a", one.hash, one.hash), RefMove("b", None, None)])
        assert await store.refs() == {"a": one.hash}
        await raised(RefConflict, store.commit([], [RefMove("b", one.hash, one.hash)]))
        await raised(RefConflict, store.commit([], [RefMove("a", None, None)]))

    async def test_a_conflict_writes_nothing_of_its_commit(self, store: Store) -> None:
        one, two, extra = content("1"), content("2"), content("extra")
        await store.commit([one, two], [RefMove("a", None, one.hash)])
        for name, old, found in (
            ("a", None, one.hash),
            ("a", two.hash, one.hash),
            ("b", one.hash, None),
        ):
            for new in (two.hash, None):
                moves = [RefMove("c", None, one.hash), RefMove(name, old, new)]
                error = await raised(RefConflict, store.commit([extra], moves))
                assert (error.name, error.expected, error.found) == (name, old, found)
                assert await store.refs() == {"a": one.hash}
                await raised(ObjectMissing, store.get(extra.hash))

    async def test_an_object_may_be_written_again(self, store: Store) -> None:
        one = content("1")
        await store.commit([one, one])
        await store.commit([one])
        assert await store.get(one.hash) == one
        assert (await store.verify()).objects == 1

    async def test_nothing_may_refer_to_what_is_not_stored(self, store: Store) -> None:
        one = content("1")
        parent = node("state", None, [one.hash])
        error = await raised(ObjectMissing, store.commit([content("other"), parent]))
        assert error.hash == one.hash
        move = RefMove("a", None, parent.hash)
        assert (await raised(ObjectMissing, store.commit([], [move]))).hash == parent.hash
        assert (await store.verify()).objects == 0
        await store.commit([parent, one], [move])
        assert (await store.verify()).ok

    async def test_moves_that_make_no_sense_are_refused(self, store: Store) -> None:
        one = content("1")
        for moves in (
            [RefMove("", None, one.hash)],
            [RefMove("a\0b", None, one.hash)],
            [RefMove("lone \ud800", None, one.hash)],
            [RefMove("a", None, Hash("abc"))],
            [RefMove("a", None, one.hash), RefMove("a", one.hash, None)],
        ):
            await raised(ValueError, store.commit([one], moves))
        assert (await store.verify()).objects == 0

    async def test_refs_are_listed_by_prefix_and_sorted(self, store: Store) -> None:
        one = content("1")
        names = ["thread/2", "thread/1/head", "thread/10", "thread", "thread/", "thread0", "Ω", "z"]
        names += ["thread/\U0010ffff", "thread/\uffff", "thread/é", "thread/_%"]
        await store.commit([one], [RefMove(name, None, one.hash) for name in names])
        for prefix in ("", "thread", "thread/", "thread/1", "t%", "thread/_", "thread/\U0010ffff"):
            expected = sorted(name for name in names if name.startswith(prefix))
            assert list(await store.refs(prefix)) == expected

    async def test_a_chain_is_followed_to_its_end_or_to_where_it_is_told(
        self, store: Store
    ) -> None:
        side = content("beside")
        nodes = [node("first", 0)]
        for number in range(1, 30):
            nodes.append(node("link", number, [nodes[-1].hash, side.hash]))
        await store.commit([side, *nodes])
        newest_first = [each.as_node() for each in reversed(nodes)]

        assert await store.chain(nodes[-1].hash, lambda _: False) == newest_first
        assert await store.chain(nodes[-1].hash, lambda _: True) == newest_first[:1]
        fifth = await store.chain(nodes[-1].hash, lambda node: node.refs[0] == nodes[20].hash)
        assert fifth == newest_first[:9]
        assert await store.chain(nodes[0].hash, lambda _: False) == newest_first[-1:]

    async def test_a_chain_with_something_else_in_it_is_refused(self, store: Store) -> None:
        text, lost = content("text"), node("lost", 0)
        link, above_lost = node("link", 1, [text.hash]), node("link", 2, [lost.hash])
        await store.commit([text, link, lost, above_lost])
        await raised(StoreFormat, store.chain(link.hash, lambda _: False))
        assert len(await store.chain(link.hash, lambda _: True)) == 1
        missing = await raised(ObjectMissing, store.chain(_NOWHERE, lambda _: True))
        assert missing.hash == _NOWHERE

    async def test_an_entry_is_written_with_its_ref_changed_and_gone_with_it(
        self, store: Store
    ) -> None:
        one, two = content("1"), content("2")
        first = Entry("a", b"first", ("x", "y"))
        await store.commit([one, two], [RefMove("a", None, one.hash)], [first])
        assert await store.entries() == [first]
        second = Entry("a", b"\x00second", ("y", "z"))
        await store.commit([], [RefMove("a", one.hash, one.hash)], [second])
        assert await store.entries() == await store.entries(labels=["z"]) == [second]
        assert await store.entries(labels=["x"]) == []
        await store.commit([], [RefMove("a", one.hash, two.hash)])
        assert await store.entries(labels=["y"]) == [second]
        assert (await store.verify()).entries == 1
        await store.commit([], [RefMove("a", two.hash, None)])
        assert await store.entries() == await store.entries(labels=["y"]) == []
        await store.commit([], [RefMove("a", None, one.hash)])
        assert await store.entries() == []
        assert (await store.verify()).ok

    async def test_an_entry_is_not_written_where_its_ref_is_elsewhere(self, store: Store) -> None:
        one, two = content("1"), content("2")
        entry = Entry("a", b"first", ("x",))
        await store.commit([one, two], [RefMove("a", None, one.hash)], [entry])
        for old, new in ((two.hash, two.hash), (None, two.hash)):
            commit = store.commit([], [RefMove("a", old, new)], [Entry("a", b"other")])
            await raised(RefConflict, commit)
        assert await store.entries() == [entry]

    async def test_entries_that_make_no_sense_are_refused(self, store: Store) -> None:
        one = content("1")
        await store.commit([one], [RefMove("a", None, one.hash)])
        same, gone = RefMove("a", one.hash, one.hash), RefMove("a", one.hash, None)
        for moves, entries in (
            ([], [Entry("a", b"")]),
            ([gone], [Entry("a", b"")]),
            ([same], [Entry("b", b"")]),
            ([same], [Entry("a", b""), Entry("a", b"")]),
            ([same], [Entry("a", b"", ("",))]),
            ([same], [Entry("a", b"", ("two\nlines",))]),
            ([same], [Entry("a", b"", ("lone \ud800",))]),
        ):
            await raised(ValueError, store.commit([], moves, entries))
        assert await store.entries() == []

    async def test_entries_are_found_by_labels_and_range_from_the_last(self, store: Store) -> None:
        one = content("1")
        entries = {
            f"t/{number:02}/head": Entry(
                f"t/{number:02}/head",
                str(number).encode(),
                tuple(f"by{divisor}" for divisor in (1, 2, 3, 7) if number % divisor == 0),
            )
            for number in range(50)
        }
        await store.commit(
            [one], [RefMove(name, None, one.hash) for name in entries], [*entries.values()]
        )

        def expected(*divisors: int, low: int = 0, high: int = 50) -> list[int]:
            return [n for n in range(low, high) if all(n % each == 0 for each in divisors)][::-1]

        async def found(**wanted: Any) -> list[int]:
            return [int(entry.data) for entry in await store.entries(**wanted)]

        assert await found() == expected(1)
        assert await found(limit=3) == [49, 48, 47]
        assert await found(limit=0) == []
        assert await found(labels=["by2"]) == expected(2)
        for labels in (["by1", "by2", "by3"], ["by3", "by2", "by1"], ["by2", "by3", "by3"]):
            assert await found(labels=labels) == expected(6)
        assert await found(labels=["by2", "nothing"]) == await found(labels=["BY2"]) == []
        assert await found(labels=["by2", "by3"], before="t/24/head", limit=2) == [18, 12]
        assert await found(labels=["by7"], first="t/14/head") == expected(7, low=14)
        assert await found(first="t/10", before="t/12") == [11, 10]
        assert await found(any_of=["by7", "by3"]) == sorted({*expected(7), *expected(3)})[::-1]
        assert await found(any_of=["by7", "by3"], labels=["by2"], limit=4) == [48, 42, 36, 30]
        assert await found(any_of=[]) == []
        whole = await store.entries(labels=["by2", "by3"], limit=1)
        assert set(whole[0].labels) == {"by1", "by2", "by3"}

    async def test_a_short_hash_is_completed_if_it_is_unique(self, store: Store) -> None:
        by_start: dict[str, list[Hash]] = {}
        objects = [content(f"{number}") for number in range(600)]
        for stored in objects:
            by_start.setdefault(stored.hash[:4], []).append(stored.hash)
        await store.commit(objects)
        assert any(len(hashes) > 1 for hashes in by_start.values())
        for start, hashes in by_start.items():
            if len(hashes) == 1:
                assert await store.find(start) == hashes[0]
            else:
                error = await raised(AmbiguousHash, store.find(start))
                assert (error.prefix, error.candidates) == (start, tuple(sorted(hashes)))
        whole = objects[0].hash
        assert await store.find(whole) == await store.find(whole[:33].upper()) == whole
        unused = next(f"{n:04x}" for n in range(65536) if f"{n:04x}" not in by_start)
        for prefix in (unused, whole[:3], "", "wxyz", whole + "0", "+123", "12 4"):
            await raised(ObjectMissing, store.find(prefix))

    async def test_a_watcher_sees_each_move_from_the_moment_it_enters(self, store: Store) -> None:
        one, two = content("1"), content("2")
        await store.commit([one, two], [RefMove("a/old", None, one.hash)])
        with anyio.fail_after(5):
            async with store.watch("a/") as changes:
                moves = [
                    RefMove("a/new", None, one.hash),
                    RefMove("a/old", one.hash, two.hash),
                    RefMove("b", None, one.hash),
                ]
                await store.commit([], moves)
                assert [await anext(changes), await anext(changes)] == moves[:2]
                await store.commit([], [RefMove("a/old", two.hash, None)])
                assert await anext(changes) == RefMove("a/old", two.hash, None)

    async def test_garbage_is_what_no_ref_reaches(self, store: Store) -> None:
        leaf, lost = content("leaf"), content("lost")
        middle = node("state", 1, [leaf.hash])
        top = node("state", 2, [middle.hash])
        lost_node = node("state", 3, [lost.hash, leaf.hash])
        await store.commit([leaf, lost, middle, top, lost_node], [RefMove("head", None, top.hash)])
        garbage = tuple(sorted([lost.hash, lost_node.hash]))
        size = len(lost.data) + len(lost_node.data)
        for dry_run in (True, False):
            report = await store.collect_garbage(keep_newer_than_s=0, dry_run=dry_run)
            assert (report.kept, report.removed, report.removed_bytes) == (3, garbage, size)
            assert report.dry_run is dry_run
            assert (await store.verify()).objects == (5 if dry_run else 3)
        assert await store.get_many([top.hash, middle.hash, leaf.hash]) == [top, middle, leaf]
        await raised(ObjectMissing, store.get(lost.hash))
        await store.commit([], [RefMove("head", top.hash, None)])
        assert (await store.collect_garbage(keep_newer_than_s=0)).kept == 0

    async def test_what_was_written_lately_is_kept_with_what_it_needs(self, store: Store) -> None:
        old, again, lost = content("old"), content("again"), content("lost")
        await store.commit([old, again, lost])
        await anyio.sleep(0.05)  # age is what this is about
        began_s = time.monotonic()
        await anyio.sleep(0.05)
        fresh = node("state", None, [old.hash])
        await store.commit([fresh, again])
        assert (await store.collect_garbage(keep_newer_than_s=3600)).removed == ()
        report = await store.collect_garbage(keep_newer_than_s=time.monotonic() - began_s)
        assert report.removed == (lost.hash,)
        assert (await store.verify()).ok

    async def test_many_commits_at_once_all_land(self, store: Store) -> None:
        async def work(name: str) -> None:
            head: Hash | None = None
            for number in range(5):
                state = node(name, number, [head] if head else [])
                await store.commit([state], [RefMove(name, head, state.hash)])
                head = state.hash

        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(work, f"thread/{number:02}")
        heads = await store.refs()
        assert len(heads) == 40
        for name, head in heads.items():
            for number in (4, 3, 2, 1, 0):
                found = (await store.get(head)).as_node()
                assert (found.type, found.read(int)) == (name, number)
                head = found.refs[0] if found.refs else _NOWHERE

    async def test_one_of_many_that_move_a_ref_wins(self, store: Store) -> None:
        won: list[Hash] = []
        lost: list[RefConflict] = []

        async def race(number: int) -> None:
            mine = content(f"{number}")
            try:
                await store.commit([mine], [RefMove("head", None, mine.hash)])
                won.append(mine.hash)
            except RefConflict as error:
                lost.append(error)

        async with anyio.create_task_group() as tasks:
            for number in range(30):
                tasks.start_soon(race, number)
        assert [await store.ref("head")] == won
        assert [error.found for error in lost] == won * 29
        assert (await store.verify()).objects == 1

    async def test_a_cancelled_task_writes_nothing_more(self, store: Store) -> None:
        one = content("1")
        with anyio.CancelScope() as scope:
            scope.cancel()
            await store.commit([one], [RefMove("head", None, one.hash)])
        assert await store.refs() == {}
        await raised(ObjectMissing, store.get(one.hash))
        await store.commit([one], [RefMove("head", None, one.hash)])

    async def test_a_whole_store_verifies(self, store: Store) -> None:
        one = content("12345")
        state = node("state", None, [one.hash])
        await store.commit([one, state], [RefMove("head", None, state.hash)])
        report = await store.verify()
        assert (report.ok, report.problems) == (True, ())
        assert (report.objects, report.refs, report.bytes) == (2, 1, 5 + len(state.data))

    async def test_every_error_of_a_store_is_a_store_error(self, store: Store) -> None:
        error = await raised(StoreError, store.get(_NOWHERE))
        assert _NOWHERE in str(error)
