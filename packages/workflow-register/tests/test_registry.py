from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_cas import MemoryStore, RefConflict, RefMove, Store, content, node, open_store
from workflow_protocol import WorkflowDescription
from workflow_register import (
    Bundle,
    BundleCorrupt,
    DamagedRecord,
    NameRejected,
    UnknownWorkflow,
    WorkflowRecord,
    check_name,
    history,
    list_workflows,
    load_registered,
    lookup,
    read_registered,
    register,
)
from workflow_register.bundles._archive import pack

DESCRIPTION = WorkflowDescription(description="d", roles={}, edges=[])


def bundle(text: str) -> Bundle:
    return pack("entry.py", {"entry.py": text.encode()})


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    if request.param == "memory":
        yield MemoryStore()
    else:
        async with open_store(tmp_path / "store.sqlite3") as opened:
            yield opened


async def test_a_registered_bundle_is_found_under_its_name(store: Store) -> None:
    done = await register(store, "review-code", bundle("a = 1"), DESCRIPTION)
    assert done.is_new
    record = await lookup(store, "review-code")
    assert record == done.record
    assert record == WorkflowRecord(
        name="review-code",
        bundle=bundle("a = 1").hash,
        content=content(bundle("a = 1").data).hash,
        entry="entry.py",
        description=DESCRIPTION,
        registered_at_ms=record.registered_at_ms,
        previous=None,
    )
    assert (await store.get(done.hash)).refs == (record.content,)
    assert await read_registered(store, "review-code") == bundle("a = 1")


async def test_the_same_bundle_again_makes_no_history(store: Store) -> None:
    first = await register(store, "greet", bundle("a = 1"), DESCRIPTION)
    again = await register(store, "greet", bundle("a = 1"), DESCRIPTION)
    assert (again.is_new, again.hash, again.record) == (False, first.hash, first.record)
    assert await history(store, "greet") == [first.record]


async def test_history_is_newest_first_and_an_old_bundle_can_come_back(store: Store) -> None:
    for text in ("a = 1", "a = 2", "a = 1"):
        await register(store, "greet", bundle(text), DESCRIPTION)
    records = await history(store, "greet")
    found = [record.bundle for record in records if isinstance(record, WorkflowRecord)]
    assert found == [bundle(text).hash for text in ("a = 1", "a = 2", "a = 1")]
    report = await store.collect_garbage(keep_newer_than_s=0)
    assert report.removed == ()


async def test_workflows_are_listed_by_name(store: Store) -> None:
    assert await list_workflows(store) == []
    for name in ("write-text", "greet", "review-code"):
        await register(store, name, bundle(name), DESCRIPTION)
    assert [each.name for each in await list_workflows(store)] == [
        "greet",
        "review-code",
        "write-text",
    ]


async def test_an_unknown_name_tells_the_nearest_and_how_to_add_it(store: Store) -> None:
    with pytest.raises(UnknownWorkflow) as caught:
        await lookup(store, "greet")
    assert str(caught.value) == (
        "no workflow is registered as 'greet'; register one with `uwf add greet ENTRY.py`"
    )
    await register(store, "greet-people", bundle("a"), DESCRIPTION)
    await register(store, "review", bundle("b"), DESCRIPTION)
    for call in (lookup, history, read_registered, load_registered):
        with pytest.raises(UnknownWorkflow) as caught:
            await call(store, "great-people")
        assert caught.value.known == ("greet-people", "review")
        assert str(caught.value) == (
            "no workflow is registered as 'great-people'; did you mean 'greet-people'? "
            "register one with `uwf add great-people ENTRY.py`"
        )


@pytest.mark.parametrize(
    "name", ["", "Greet", "1greet", "greet-", "-greet", "a--b", "a_b", "a/b", "é", "a\n", "a" * 101]
)
async def test_a_name_is_lower_case_words_joined_by_dashes(name: str) -> None:
    with pytest.raises(NameRejected, match="use lower-case words joined by '-', verb first"):
        await register(MemoryStore(), name, bundle("a"), DESCRIPTION)
    with pytest.raises(UnknownWorkflow):
        await lookup(MemoryStore(), name)


@given(st.from_regex(r"[a-z][a-z0-9]{0,8}(-[a-z0-9]{1,8}){0,3}", fullmatch=True))
def test_such_names_are_accepted(name: str) -> None:
    assert check_name(name) == name


async def test_registering_at_once_loses_nothing(store: Store) -> None:
    async def one(number: int) -> None:
        await register(store, "greet", bundle(f"a = {number}"), DESCRIPTION)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(one, number)
    records = await history(store, "greet")
    found = {record.bundle for record in records if isinstance(record, WorkflowRecord)}
    assert found == {bundle(f"a = {number}").hash for number in range(8)}
    assert len(records) == 8


async def test_a_name_that_never_holds_still_ends_in_a_conflict() -> None:
    class Restless(MemoryStore):
        async def ref(self, name: str) -> None:
            await super().ref(name)

    store = Restless()
    await register(store, "greet", bundle("a"), DESCRIPTION)
    with pytest.raises(RefConflict):
        await register(store, "greet", bundle("b"), DESCRIPTION)


async def test_a_record_that_cannot_be_read_hides_no_other_and_can_be_replaced(
    store: Store,
) -> None:
    strange = node("something", {"else": 1})
    text = content("no node")
    await store.commit(
        [strange, text],
        [
            RefMove("workflow/strange", None, strange.hash),
            RefMove("workflow/text", None, text.hash),
        ],
    )
    good = await register(store, "greet", bundle("a"), DESCRIPTION)
    listed = await list_workflows(store)
    assert listed == [
        good.record,
        DamagedRecord(
            name="strange",
            hash=strange.hash,
            reason=f"object {strange.hash} is a 'something', not a workflow; register it again",
        ),
        DamagedRecord(
            name="text",
            hash=text.hash,
            reason=f"object {text.hash} is a content; read it with `.data`",
        ),
    ]
    mended = await register(store, "strange", bundle("b"), DESCRIPTION)
    assert await history(store, "strange") == [mended.record, listed[1]]


async def test_stored_bytes_that_are_no_bundle_are_refused(store: Store) -> None:
    archive = content(b"not a zip")
    record = WorkflowRecord(
        name="greet",
        bundle=bundle("a").hash,
        content=archive.hash,
        entry="entry.py",
        description=DESCRIPTION,
        registered_at_ms=0,
    )
    stored = node("workflow", record, [archive.hash])
    await store.commit([archive, stored], [RefMove("workflow/greet", None, stored.hash)])
    with pytest.raises(BundleCorrupt, match="build or fetch it again"):
        await load_registered(store, "greet")


async def test_a_registered_workflow_is_loaded_from_the_store(store: Store) -> None:
    text = """
from workflow_protocol import END, START, RoleDefinition, WorkflowDefinition
role = RoleDefinition(name="greeter", description="greets", system_prompt="Hi", schema=str)
class Run:
    definition = WorkflowDefinition(
        description="d", table={START: role, role: END}
    )
run = Run()
"""
    await register(store, "greet", bundle(text), DESCRIPTION)
    run = await load_registered(store, "greet")
    assert [role.name for role in run.definition.roles] == ["greeter"]
