"""What a model gets of stored objects."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_cas import AmbiguousHash, MemoryStore, ObjectMissing, Stored, content, node
from workflow_protocol import StartStep, ThreadContext, ThreadId, WorkflowError
from workflow_reactor import CAS_GET, ToolCall, cas_get

CTX = ThreadContext(
    thread_id=ThreadId("T"), start=StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=0)
)


class Host:
    def __init__(self, store: MemoryStore) -> None:
        self.store = store

    async def read_object(self, digits: str) -> Stored:
        return await self.store.get(await self.store.find(digits))


async def read(stored: Stored, hash: str | None = None, offset: int = 0) -> str:
    """Read from a store that has one object."""
    store = MemoryStore()
    await store.commit([stored])
    arguments = json.dumps({"hash": stored.hash if hash is None else hash, "offset": offset})
    call = CAS_GET.receive(ToolCall(id="1", name="cas_get", arguments=arguments))
    assert not call.fault
    return await cas_get(call, replace(CTX, host=Host(store)))


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50), st.integers(0, 1500))
async def test_all_pages_together_are_the_object(piece: str, times: int) -> None:
    stored, pages, offset = content(piece * times), [""], 0
    while True:
        page = await read(stored, offset=offset)
        text, mark, more = page.rpartition("\n[")
        if not (mark and more.endswith(f"offset={offset + 16_000}]")):
            break
        assert len(page) <= (CAS_GET.max_result_chars or 0)
        pages.append(text)
        offset += 16_000

    assert "".join([*pages, page]) == piece * times


async def test_twelve_digits_are_enough_in_either_case() -> None:
    stored = content("all of it")

    assert await read(stored, stored.hash[:12].upper()) == "all of it"


async def test_a_node_is_shown_as_its_json() -> None:
    assert json.loads(await read(node("state", {"a": 1})))["payload"] == {"a": 1}


@pytest.mark.parametrize("hash", ["", "abcd", "a" * 11, "a" * 65, "../etc/passwd", "\u0663" * 12])
async def test_what_is_too_short_or_no_hash_is_refused(hash: str) -> None:
    with pytest.raises(WorkflowError, match="is not a hash; give 12 to 64 hex digits"):
        await read(content("x"), hash)


async def test_a_hash_under_which_nothing_is_stored_is_told() -> None:
    with pytest.raises((ObjectMissing, AmbiguousHash), match="no object is stored"):
        await read(content("x"), "0" * 64)


async def test_bytes_that_are_no_text_are_told_and_not_shown() -> None:
    with pytest.raises(WorkflowError, match="is not text: 2 bytes"):
        await read(content(b"\xff\xfe"))


async def test_an_offset_past_the_end_is_told() -> None:
    with pytest.raises(WorkflowError, match="has 1 characters"):
        await read(content("x"), offset=7)


@pytest.mark.parametrize("arguments", ['{"hash": 3}', "{}", '{"hash": "a", "offset": -1}', "["])
async def test_arguments_that_do_not_fit_are_told(arguments: str) -> None:
    ctx = replace(CTX, host=Host(MemoryStore()))
    with pytest.raises(WorkflowError, match=r"don't fit|give 0 or more"):
        await cas_get(ToolCall(id="1", name="cas_get", arguments=arguments), ctx)
