from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_cas import MemoryStore, RefConflict, RefMove, Store, node, open_store
from workflow_protocol import Edge, RoleDescription, WorkflowDescription
from workflow_register import (
    Bundle,
    BundleCorrupt,
    DamagedRecord,
    UnknownVersion,
    UnknownWorkflow,
    WorkflowRecord,
    find_version,
    history,
    list_workflows,
    lookup,
    prune_history,
    read_registered,
    register,
    rollback,
    unregister,
)
from workflow_register.bundles._archive import pack


def described(words: str) -> WorkflowDescription:
    return WorkflowDescription(description=words, roles={}, edges=[])


def bundle(text: str) -> Bundle:
    return pack("entry.py", {"entry.py": text.encode()})


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    if request.param == "memory":
        yield MemoryStore()
    else:
        async with open_store(tmp_path / "store.sqlite3") as opened:
            yield opened


async def add(store: Store, *texts: str) -> None:
    for text in texts:
        await register(store, "greet", bundle(text), described(text))


async def versions(store: Store) -> list[tuple[int, str]]:
    records = await history(store, "greet")
    assert all(isinstance(each, WorkflowRecord) for each in records)
    return [
        (each.version, each.description.description)
        for each in records
        if isinstance(each, WorkflowRecord)
    ]


async def test_a_rollback_is_a_new_version_of_the_bundle_before(store: Store) -> None:
    await add(store, "a", "b")

    done = await rollback(store, "greet")

    assert done.is_new
    assert await versions(store) == [(3, "a"), (2, "b"), (1, "a")]
    assert await read_registered(store, "greet") == bundle("a")
    assert await lookup(store, "greet") == done.record


async def test_a_second_rollback_takes_the_first_one_back(store: Store) -> None:
    await add(store, "a", "b")
    await rollback(store, "greet")
    await rollback(store, "greet")
    assert [words for _, words in await versions(store)] == ["b", "a", "b", "a"]


async def test_a_version_is_named_by_its_number_or_the_beginning_of_its_hash(store: Store) -> None:
    await add(store, "a", "b", "c")
    assert (await find_version(store, "greet", "1")).bundle == bundle("a").hash
    await rollback(store, "greet", "1")
    assert await read_registered(store, "greet") == bundle("a")
    await rollback(store, "greet", bundle("b").hash[:12].upper())
    assert await read_registered(store, "greet") == bundle("b")
    again = await rollback(store, "greet", "2")
    assert not again.is_new  # the name stands for it already
    assert len(await versions(store)) == 5


@pytest.mark.parametrize("version", ["9", "0", "-1", "x", "²", "abcdef0", "0" * 64, "1 "])
async def test_a_version_that_is_not_there_changes_nothing(store: Store, version: str) -> None:
    await add(store, "a", "b")
    with pytest.raises(UnknownVersion, match="`uwf workflow history greet` lists its") as caught:
        await rollback(store, "greet", version)
    assert caught.value.known == (2, 1)
    assert await versions(store) == [(2, "b"), (1, "a")]


async def test_the_only_bundle_has_nothing_to_go_back_to(store: Store) -> None:
    await add(store, "a")
    with pytest.raises(UnknownVersion, match="no earlier bundle in its history to go back to"):
        await rollback(store, "greet")


async def test_a_damaged_bundle_is_not_gone_back_to(store: Store) -> None:
    archive = node("something", 1)
    damaged = WorkflowRecord(
        name="greet",
        bundle=bundle("a").hash,
        content=archive.hash,
        entry="entry.py",
        description=described("a"),
        registered_at_ms=0,
    )
    stored = node("workflow", damaged, [archive.hash])
    await store.commit([archive, stored], [RefMove("workflow/greet", None, stored.hash)])
    await add(store, "b")
    with pytest.raises(BundleCorrupt):
        await rollback(store, "greet")
    assert await versions(store) == [(2, "b"), (1, "a")]


async def test_an_unregistered_name_is_gone_with_its_history_and_can_be_taken_again(
    store: Store,
) -> None:
    await add(store, "a", "b")
    await register(store, "other", bundle("b"), described("b"))

    gone = await unregister(store, "greet")

    assert [each.version for each in gone if isinstance(each, WorkflowRecord)] == [2, 1]
    assert [each.name for each in await list_workflows(store)] == ["other"]
    for call in (history, rollback, unregister, lookup):
        with pytest.raises(UnknownWorkflow):
            await call(store, "greet")
    removed = (await store.collect_garbage(keep_newer_than_s=0)).removed
    assert len(removed) == 3  # both records and the bundle `a`; `b` has another name
    assert await read_registered(store, "other") == bundle("b")
    await add(store, "c")
    assert await versions(store) == [(1, "c")]


async def test_garbage_collection_keeps_all_that_a_history_has_until_it_is_pruned(
    store: Store,
) -> None:
    await add(store, "a", "b", "c")
    assert (await store.collect_garbage(keep_newer_than_s=0)).removed == ()

    assert await prune_history(store, "greet", keep=2) == 1

    assert await versions(store) == [(3, "c"), (2, "b")]
    await store.collect_garbage(keep_newer_than_s=0)
    assert await versions(store) == [(3, "c"), (2, "b")]
    assert await read_registered(store, "greet") == bundle("c")
    await rollback(store, "greet")
    assert await versions(store) == [(4, "b"), (3, "c"), (2, "b")]
    with pytest.raises(UnknownVersion):
        await rollback(store, "greet", "1")


async def test_pruning_more_than_there_is_changes_nothing(store: Store) -> None:
    await add(store, "a", "b")
    head = await store.ref("workflow/greet")
    assert await prune_history(store, "greet", keep=2) == 0
    assert await store.ref("workflow/greet") == head
    with pytest.raises(ValueError, match="keep at least the newest version"):
        await prune_history(store, "greet", keep=0)


async def test_a_history_with_a_damaged_record_can_be_pruned_to_what_can_be_read(
    store: Store,
) -> None:
    strange = node("something", 1)
    await store.commit([strange], [RefMove("workflow/greet", None, strange.hash)])
    await add(store, "a")
    assert isinstance((await history(store, "greet"))[1], DamagedRecord)
    assert await prune_history(store, "greet", keep=1) == 1
    assert await versions(store) == [(1, "a")]


async def test_rollbacks_and_registrations_at_once_lose_nothing(store: Store) -> None:
    await add(store, "a", "b")

    async def back() -> None:
        await rollback(store, "greet")

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(add, store, f"n{number}")
            group.start_soon(back)
    found = await versions(store)
    assert {f"n{number}" for number in range(4)} <= {words for _, words in found}
    assert [number for number, _ in found] == list(range(len(found), 0, -1))


async def test_a_name_that_never_holds_still_ends_each_change_in_a_conflict() -> None:
    class Restless(MemoryStore):
        async def commit(self, objects: object, moves: object = (), entries: object = ()) -> None:
            raise RefConflict("workflow/greet", None, None)

    store = MemoryStore()
    await add(store, "a", "b")
    restless = Restless()
    restless.__dict__.update(store.__dict__)
    for change in (rollback, unregister):
        with pytest.raises(RefConflict):
            await change(restless, "greet")
    with pytest.raises(RefConflict):
        await prune_history(restless, "greet", keep=1)


names = st.text("abcdefghij", min_size=1, max_size=4)


@given(st.lists(names, unique=True, min_size=1, max_size=6), st.lists(names, unique=True))
def test_a_record_keeps_the_order_of_roles_and_fields(roles: list[str], fields: list[str]) -> None:
    schema = {"type": "object", "properties": {name: {"type": "string"} for name in fields}}
    description = WorkflowDescription(
        description="d",
        roles={
            name: RoleDescription(description="", system_prompt="", schema=schema) for name in roles
        },
        edges=[Edge(source="__start__", target=roles[0])],
    )

    async def kept() -> WorkflowDescription:
        store = MemoryStore()
        await register(store, "greet", bundle("a"), description)
        return (await lookup(store, "greet")).description

    found = anyio.run(kept)
    assert msgspec.json.encode(found) == msgspec.json.encode(description)
