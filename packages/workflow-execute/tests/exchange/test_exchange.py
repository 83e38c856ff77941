"""A thread goes into one file and comes out of it in another store, whole or not at all."""

import base64
import hashlib
import io
import json
import os
import tracemalloc
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workflow_cas import (
    MemoryStore,
    RefMove,
    SqliteStore,
    Store,
    Stored,
    StoreReadOnly,
    content,
    node,
    open_store,
)
from workflow_execute import (
    Engine,
    SecretInThread,
    ThreadExists,
    ThreadFileError,
    ThreadNotExportable,
    ThreadNotFound,
    Workflow,
    check_summaries,
    create_workflow,
    export_thread,
    find_thread,
    import_thread,
    list_threads,
    open_thread_file,
    read_thread,
    read_tree,
    workflow_adapter,
)
from workflow_execute.testing import adapter_of, in_turn
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Answer,
    Hash,
    Question,
    RoleDefinition,
    RoleFailed,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
)

KEY = "sk-planted-5f2c0a9e"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    async with open_store(tmp_path / "store.sqlite3") as opened:
        yield opened


def recorded(calls: list[str]) -> Workflow:
    """Three roles; each asks a model, the last one a person before that."""

    async def turn(ctx: ThreadContext) -> int:
        if len(ctx.steps) == 2:
            await ctx.journal.ask("go", Question(text="Go on?"))
        body = f"{ctx.start.prompt}|{len(ctx.steps)}"

        async def perform() -> bytes:
            calls.append(body)
            return b"raw \xff" + body.encode()

        raw = await ctx.journal.run("llm/0", perform, type=bytes, request=body.encode)
        return len(raw)

    return in_turn(turn, turn, turn)


def family(below: Workflow) -> Workflow:
    """A role that is a thread of its own."""
    role = RoleDefinition(name="above", system_prompt="Delegate.", schema=int)
    return create_workflow(
        WorkflowDefinition(table={START: role, role: END}),
        AdapterBinding(overrides={role: workflow_adapter("below", below)}),
    )


async def exported(store: Store, thread_id: ThreadId) -> bytes:
    out = io.BytesIO()
    await export_thread(store, thread_id, out)
    return out.getvalue()


def same_but(data: bytes, **changes: object) -> bytes:
    """A file with another header, and the digest that belongs to it."""
    size = int.from_bytes(data[9:13], "big")
    header = json.loads(data[13 : 13 + size]) | changes
    encoded = json.dumps(header).encode()
    start = data[:9] + len(encoded).to_bytes(4, "big") + encoded
    body = start + data[13 + size : -32]
    return body + hashlib.sha256(body).digest()


def files_in(folder: Path, name: str) -> list[str]:
    return [each.name for each in folder.iterdir() if name in each.name]


async def count_objects(store: Store) -> int:
    return (await store.verify()).objects


async def test_a_thread_is_taken_up_in_another_store(store: SqliteStore, tmp_path: Path) -> None:
    calls: list[str] = []
    begun = await Engine(store).start(recorded(calls), "p", tags=["night"], name="three")
    assert begun.state == "suspended"

    report = await export_thread(store, begun.thread_id, tmp_path / "x.uwf")
    async with open_store(tmp_path / "other.sqlite3") as other:
        done = await import_thread(other, tmp_path / "x.uwf")

        assert done.new == report.threads == (begun.thread_id,)
        assert (done.known, done.objects, done.bytes) == ((), report.objects, report.bytes)
        assert (await other.verify()).ok
        assert await check_summaries(other) == []
        engine = Engine(other)
        (listed,) = await engine.list_threads(tag="night")
        assert (listed.workflow, listed.state, listed.steps) == ("three", "suspended", 2)
        assert await read_thread(other, begun.thread_id) == await read_thread(
            store, begun.thread_id
        )
        before = list(calls)
        assert (await engine.replay(recorded(calls), begun.thread_id)).requests == 2
        fork = await engine.fork(begun.thread_id, at_step=1)
        assert calls == before
        await engine.answer(begun.thread_id, "go", Answer(approved=True))
        ended = await engine.resume(recorded(calls), begun.thread_id)
        assert (ended.state, calls[len(before) :]) == ("completed", ["p|2"])
        assert (await engine.resume(recorded(calls), fork)).state == "suspended"


async def test_equal_threads_give_equal_bytes_in_any_store(
    store: SqliteStore, tmp_path: Path
) -> None:
    begun = await Engine(store).start(family(recorded([])), "p")
    data = await exported(store, begun.thread_id)
    (tmp_path / "x.uwf").write_bytes(data)
    other = MemoryStore()

    await import_thread(other, tmp_path / "x.uwf")

    assert await exported(other, begun.thread_id) == data
    async with open_thread_file(tmp_path / "x.uwf") as file:
        assert await exported(file, begun.thread_id) == data


async def test_children_and_bundle_come_along_and_what_others_have_stays(
    store: SqliteStore, tmp_path: Path
) -> None:
    engine = Engine(store)
    bundle, stranger = content(b"the code"), content(b"of nobody")
    await store.commit([bundle, stranger])
    await engine.start(in_turn(adapter_turn), "another thread")
    begun = await engine.start(family(recorded([])), "p", bundle=bundle.hash)
    (child,) = (await read_tree(store, begun.thread_id)).children

    await export_thread(store, begun.thread_id, tmp_path / "x.uwf")
    other = MemoryStore()
    done = await import_thread(other, tmp_path / "x.uwf")

    assert done.has_bundle
    assert done.new == (begun.thread_id, child.thread.thread_id)
    assert await list_threads(other) == sorted(done.new)
    assert (await other.get(bundle.hash)).data == b"the code"
    assert (await other.collect_garbage(keep_newer_than_s=-1)).removed == ()
    with pytest.raises(ThreadNotExportable, match=begun.thread_id):
        await export_thread(store, child.thread.thread_id, tmp_path / "y.uwf")
    assert not (tmp_path / "y.uwf").exists()
    await Engine(other).answer(child.thread.thread_id, "go", Answer(approved=True))
    ended = await Engine(other).resume(family(recorded([])), begun.thread_id)
    assert ended.state == "completed"


async def adapter_turn(ctx: ThreadContext) -> int:
    return len(ctx.steps)


async def test_a_fork_brings_the_past_that_it_shares_and_not_the_rest(
    store: SqliteStore, tmp_path: Path
) -> None:
    engine = Engine(store)
    begun = await engine.start(in_turn(*[adapter_turn] * 5), "p")
    fork = await engine.fork(begun.thread_id, at_step=2, prompt="another task")

    await export_thread(store, fork, tmp_path / "x.uwf")
    other = MemoryStore()
    await import_thread(other, tmp_path / "x.uwf")

    assert await list_threads(other) == [fork]
    thread = await read_thread(other, fork)
    assert (len(thread.steps), thread.prompt, thread.origin) == (2, "another task", begun.thread_id)
    ended = await Engine(other).resume(in_turn(*[adapter_turn] * 5), fork)
    assert [step.meta for step in ended.steps] == [0, 1, 2, 3, 4]


async def test_a_second_import_changes_nothing_and_another_past_is_refused(
    store: SqliteStore, tmp_path: Path
) -> None:
    engine = Engine(store)
    begun = await engine.start(recorded([]), "p")
    path = tmp_path / "x.uwf"
    await export_thread(store, begun.thread_id, path)
    refs, objects = await store.refs(), await count_objects(store)

    again = await import_thread(store, path)

    assert (again.new, again.known) == ((), (begun.thread_id,))
    assert (await store.refs(), await count_objects(store)) == (refs, objects)
    await engine.answer(begun.thread_id, "go", Answer(approved=True))
    refs, objects = await store.refs(), await count_objects(store)
    with pytest.raises(ThreadExists, match="gone on otherwise"):
        await import_thread(store, path)
    assert (await store.refs(), await count_objects(store)) == (refs, objects)


async def test_of_a_family_only_what_is_missing_is_added(
    store: SqliteStore, tmp_path: Path
) -> None:
    engine = Engine(store)
    begun = await engine.start(family(recorded([])), "p")
    fork = await engine.fork(begun.thread_id)
    await export_thread(store, begun.thread_id, tmp_path / "x.uwf")
    await export_thread(store, fork, tmp_path / "y.uwf")
    other = MemoryStore()
    first = await import_thread(other, tmp_path / "x.uwf")

    second = await import_thread(other, tmp_path / "y.uwf")

    assert second.new == (fork,)
    assert {*second.known} < {*first.new} or second.known == ()
    assert await check_summaries(other) == []


async def test_a_file_that_is_cut_anywhere_is_refused_and_nothing_is_written(
    store: SqliteStore, tmp_path: Path
) -> None:
    begun = await Engine(store).start(in_turn(adapter_turn), "p")
    data = await exported(store, begun.thread_id)
    path, other = tmp_path / "x.uwf", MemoryStore()

    for size in range(len(data)):
        path.write_bytes(data[:size])
        with pytest.raises(ThreadFileError) as refused:
            await import_thread(other, path)
        assert str(path) in str(refused.value)
    path.write_bytes(data + b"\n")
    with pytest.raises(ThreadFileError, match="goes on for 1 bytes"):
        await import_thread(other, path)
    assert (await count_objects(other), await other.refs()) == (0, {})


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_other_bytes_are_refused_and_nothing_is_written(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    async def main() -> None:
        store, other = MemoryStore(), MemoryStore()
        begun = await Engine(store).start(in_turn(adapter_turn), "p")
        good = bytearray(await exported(store, begun.thread_id))
        for _ in range(data.draw(st.integers(1, 4))):
            at = data.draw(st.integers(0, 2**16)) % len(good)  # the length differs with the time
            good[at] ^= data.draw(st.integers(1, 255))
        if data.draw(st.booleans()):  # somebody who knows the form
            good[-32:] = hashlib.sha256(good[:-32]).digest()
        path = tmp_path_factory.getbasetemp() / "changed.uwf"
        path.write_bytes(good)
        try:
            await import_thread(other, path)
        except ThreadFileError:
            assert (await count_objects(other), await other.refs()) == (0, {})
        else:  # only the header can say something else that is true
            assert (await other.verify()).ok

    anyio.run(main)


def claim(size: int) -> bytes:
    """A file whose only object says that it is so large."""
    header: dict[str, object] = {"kind": "thread", "format": 1, "objects": 1, "bytes": size}
    header["threads"] = [{"id": "01" + "A" * 24, "head": "0" * 64, "status": "0" * 64}]
    encoded = json.dumps(header).encode()
    start = b"\x89UWF\r\n\x1a\n\0" + len(encoded).to_bytes(4, "big") + encoded
    return start + b"\0" + size.to_bytes(8, "big") + bytes(32) + b"short"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "this is not a thread file; `uwf thread export` makes one"),
        (b"PK\x03\x04 a zip file", "not a thread file"),
        (b"SQLite format 3\0", "not a thread file"),
        (b"\x89UWF\n\x1a\n\0 sent as text", "not a thread file"),
        (b"\x89UWF\r\n\x1a\n\0" + b"\xff\xff\xff\xff", "its header has 4294967295 bytes"),
        (b"\x89UWF\r\n\x1a\n\0" + (9).to_bytes(4, "big") + b'{"a":[[[}', "header can't be read"),
        (b"\x89UWF\r\n\x1a\n\0" + (90_000).to_bytes(4, "big") + b"[" * 90_000, "can't be read"),
        (claim(2**63), "it ends too early"),
        (claim(2**40), "it ends too early"),
    ],
)
async def test_what_is_no_thread_file_is_told_apart(
    tmp_path: Path, data: bytes, words: str
) -> None:
    path, store = tmp_path / "x.uwf", MemoryStore()
    path.write_bytes(data)
    with pytest.raises(ThreadFileError) as refused:
        await import_thread(store, path)
    assert words in str(refused.value)
    assert (await count_objects(store), await store.refs()) == (0, {})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": 2}, "format 2 and this version reads up to 1; upgrade the packages"),
        ({"format": 99, "threads": "of another form"}, "upgrade the packages"),
        ({"kind": "memory"}, "it holds a 'memory', not a thread"),
        ({"threads": []}, "names no thread"),
        ({"objects": 1}, "its bytes are not those of its digest"),
        ({"objects": 1000}, "it ends too early"),
        ({"bytes": 5}, "bytes of data, and should have 5"),
    ],
)
async def test_a_header_that_says_something_else_is_refused(
    store: SqliteStore, tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    begun = await Engine(store).start(in_turn(adapter_turn), "p")
    path, other = tmp_path / "x.uwf", MemoryStore()
    path.write_bytes(same_but(await exported(store, begun.thread_id), **changes))
    with pytest.raises(ThreadFileError, match=words):
        await import_thread(other, path)
    assert (await count_objects(other), await other.refs()) == (0, {})


@pytest.mark.parametrize("name", ["../../etc", "a/../head", "", "workflow/x", "0" * 27, "0\n" * 13])
async def test_no_name_of_a_file_but_an_id_gets_into_the_store(
    store: SqliteStore, tmp_path: Path, name: str
) -> None:
    begun = await Engine(store).start(in_turn(adapter_turn), "p")
    thread = await read_thread(store, begun.thread_id)
    path, other = tmp_path / "x.uwf", MemoryStore()
    threads = [{"id": name, "head": thread.head, "status": thread.status_hash}]
    path.write_bytes(same_but(await exported(store, begun.thread_id), threads=threads))
    with pytest.raises(ThreadFileError, match="can't be the id of a thread"):
        await import_thread(other, path)
    assert await other.refs() == {}


async def forged(tmp_path: Path, objects: list[Stored], *, status: Mapping[str, object]) -> Path:
    """A file with these objects, the last of them the head; its hashes and digest are right."""
    last = node("status", status)
    thread = {"id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "head": objects[-1].hash, "status": last.hash}
    parts = [*objects, last]
    header: dict[str, object] = {"kind": "thread", "format": 1, "threads": [thread]}
    header["objects"] = len(parts)
    header["bytes"] = sum(len(each.data) for each in parts)
    encoded = json.dumps(header).encode()
    data = b"\x89UWF\r\n\x1a\n\0" + len(encoded).to_bytes(4, "big") + encoded
    for each in parts:
        kind = bytes([each.kind == "node"])
        data += kind + len(each.data).to_bytes(8, "big") + bytes.fromhex(each.hash) + each.data
    path = tmp_path / "forged.uwf"
    path.write_bytes(data + hashlib.sha256(data).digest())
    return path


START_RECORD = {
    "format": 1,
    "thread_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "workflow": "w",
    "workspace": "/",
    "at_ms": 1,
}


@pytest.mark.parametrize(
    ("start", "state", "status", "words"),
    [
        ({}, None, {"state": "melted", "at_ms": 1}, "Invalid enum value"),
        ({"thread_id": "../x"}, None, {}, "its records are those of thread '../x'"),
        ({"parent_thread": "../x"}, None, {}, "'../x' can't be the id"),
        ({"format": 9}, None, {}, "format 9"),
        ({"workspace": 5}, None, {}, "not what this version reads"),
        ({}, {"value": 7}, {}, "refers to its object 7 of 2"),
        ({}, {"value": -1}, {}, "refers to its object -1 of 2"),
        ({}, {"turn": 0}, {}, "can't be read"),
        ({}, {"error": "ValueError"}, {}, "Expected `object`, got `int`"),
        ({}, {"child_threads": ["../../x"]}, {}, "'../../x' can't be the id"),
    ],
)
async def test_records_that_no_thread_has_are_refused_though_all_hashes_are_right(
    tmp_path: Path,
    start: dict[str, object],
    state: dict[str, object] | None,
    status: dict[str, object],
    words: str,
) -> None:
    text = content("1")
    first = node("start", {**START_RECORD, "prompt": text.hash, **start}, [text.hash])
    objects = [text, first]
    if state is not None:
        record = {"role": "r", "step": 0, "at_ms": 1, **state}
        objects.append(node("state", record, [first.hash, text.hash]))
    path = await forged(tmp_path, objects, status={"state": "completed", "at_ms": 1, **status})
    store = MemoryStore()
    with pytest.raises(ThreadFileError, match="can't be read") as refused:
        await import_thread(store, path)
    assert words in str(refused.value)
    assert (await count_objects(store), await store.refs()) == (0, {})


async def test_a_head_that_is_a_text_and_an_object_too_many_are_refused(tmp_path: Path) -> None:
    text = content('{"payload":{},"refs":[],"type":"start"}')
    done = {"state": "completed", "at_ms": 1}
    with pytest.raises(ThreadFileError, match="is a content"):
        await import_thread(MemoryStore(), await forged(tmp_path, [text], status=done))
    start = node("start", {**START_RECORD, "prompt": text.hash}, [text.hash])
    extra = content("carried along")
    with pytest.raises(ThreadFileError, match="no thread needs"):
        await import_thread(
            MemoryStore(), await forged(tmp_path, [text, extra, start], status=done)
        )
    with pytest.raises(ThreadFileError, match="is not before it"):
        await import_thread(MemoryStore(), await forged(tmp_path, [start], status=done))


async def test_turns_that_share_their_records_do_not_make_a_check_endless(tmp_path: Path) -> None:
    text = content("1")
    record = {"k": "a", "t": 1, "v": 1}
    turns = [node("turn", {**record, "f": True})]
    for number in range(1, 60):
        turns.append(node("turn", {**record, "t": number}, [turns[-1].hash]))
    states = [node("start", {**START_RECORD, "prompt": text.hash}, [text.hash])]
    for number, turn in enumerate(turns):
        state = {"role": "r", "step": number, "at_ms": 1, "turn": 2}
        states.append(node("state", state, [states[-1].hash, text.hash, turn.hash]))
    done = {"state": "completed", "at_ms": 1}
    path = await forged(tmp_path, [text, *turns, *states], status=done)
    with pytest.raises(ThreadFileError, match="have the same records"):
        await import_thread(MemoryStore(), path)


@pytest.mark.parametrize("kind", ["question", "answer"])
async def test_a_record_without_its_value_is_refused(tmp_path: Path, kind: str) -> None:
    text = content("1")
    turn = node("turn", {"k": "go", "t": 1, "c": kind, "f": True})
    start = node("start", {**START_RECORD, "prompt": text.hash}, [text.hash])
    record = {"role": "r", "step": 0, "at_ms": 1, "turn": 2}
    state = node("state", record, [start.hash, text.hash, turn.hash])
    done = {"state": "completed", "at_ms": 1}
    path = await forged(tmp_path, [text, turn, start, state], status=done)
    with pytest.raises(ThreadFileError, match=f"the {kind} 'go' has no value"):
        await import_thread(MemoryStore(), path)


async def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with anyio.fail_after(5):
        for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path):
            with pytest.raises(ThreadFileError, match="not a regular file"):
                await import_thread(MemoryStore(), path)


@pytest.mark.parametrize("levels", [500, 100_000])
async def test_a_record_that_is_nested_too_deep_is_refused(tmp_path: Path, levels: int) -> None:
    text = content("1")
    data = b'{"payload":' + b"[" * levels + b"]" * levels + b',"refs":[],"type":"start"}'
    digest = hashlib.sha256(b"node %d\0" % len(data) + data).hexdigest()
    deep = Stored(Hash(digest), "node", data, ())
    path = await forged(tmp_path, [text, deep], status={"state": "completed", "at_ms": 1})
    with pytest.raises(ThreadFileError):
        await import_thread(MemoryStore(), path)


async def test_two_imports_at_the_same_time_come_to_one_thread(
    store: SqliteStore, tmp_path: Path
) -> None:
    begun = await Engine(store).start(family(recorded([])), "p")
    await export_thread(store, begun.thread_id, tmp_path / "x.uwf")
    async with open_store(tmp_path / "other.sqlite3") as other:
        done: list[int] = []

        async def take() -> None:
            done.append(len((await import_thread(other, tmp_path / "x.uwf")).new))

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(take)
        assert sorted(done) == [0, 0, 0, 2]
        assert await check_summaries(other) == []


def planted(where: str, value: str) -> Workflow:
    """A thread that has a value somewhere."""

    async def turn(ctx: ThreadContext) -> str:
        async def perform() -> bytes:
            return value.encode() if where == "raw result" else msgspec.json.encode({"a": value})

        async def give() -> list[bytes]:
            return [b"x", f"y{value}".encode()]

        if where in {"raw result", "json result"}:
            await ctx.journal.run("llm/0", perform, type=bytes)
        if where == "base64":
            await ctx.journal.run("tool/0", give, type=list[bytes])
        if where == "json in json":
            return json.dumps({"arguments": json.dumps({"key": value})})
        return value if where == "value" else "nothing"

    return in_turn(turn, schema=str)


@pytest.mark.parametrize("value", [KEY, 'quo"ted\\key\u00e9-1234'])
@pytest.mark.parametrize(
    "where", ["prompt", "value", "raw result", "json result", "json in json", "base64", "bundle"]
)
async def test_a_planted_key_does_not_leave(
    store: SqliteStore, tmp_path: Path, where: str, value: str
) -> None:
    bundle = content(f"KEY = '{value if where == 'bundle' else ''}'")
    await store.commit([bundle])
    begun = await Engine(store).start(
        planted(where, value), value if where == "prompt" else "p", bundle=bundle.hash
    )
    path, out = tmp_path / "x.uwf", io.BytesIO()

    for target in (path, out):
        with pytest.raises(SecretInThread) as refused:
            await export_thread(store, begun.thread_id, target, secrets={"MY_KEY": value})
        assert "MY_KEY" in str(refused.value)
        assert value not in str(refused.value)
    assert (out.getvalue(), files_in(tmp_path, ".uwf")) == (b"", [])
    await export_thread(store, begun.thread_id, path, secrets={"MY_KEY": value}, with_secrets=True)
    assert (await import_thread(MemoryStore(), path)).thread_id == begun.thread_id


async def test_a_key_of_the_environment_does_not_leave_either_and_a_short_one_is_no_key(
    store: SqliteStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = await Engine(store).start(planted("value", KEY), "p")
    await export_thread(store, begun.thread_id, tmp_path / "x.uwf", secrets={"A": "p", "B": ""})
    monkeypatch.setenv("SOME_API_KEY", KEY)
    with pytest.raises(SecretInThread, match="SOME_API_KEY"):
        await export_thread(store, begun.thread_id, tmp_path / "x.uwf")
    assert KEY.encode() in (tmp_path / "x.uwf").read_bytes()  # what was there is left as it was


@given(st.binary(max_size=9), st.text(min_size=8, max_size=20), st.binary(max_size=9))
def test_a_key_is_found_in_base64_wherever_it_begins(before: bytes, key: str, after: bytes) -> None:
    from workflow_execute.exchange._secrets import SecretScan

    scan = SecretScan({"K": key})
    encoded = base64.b64encode(before + key.encode("utf-8", "backslashreplace") + after)
    assert scan.find(content(encoded)) == "K"
    assert scan.find(content(json.dumps(json.dumps({"a": key})))) == "K"


async def test_what_is_not_there_is_said(store: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(ThreadNotFound):
        await export_thread(store, ThreadId("01ARZ3NDEKTSV4RRFFQ69G5FAV"), tmp_path / "x.uwf")
    with pytest.raises(FileNotFoundError):
        await import_thread(store, tmp_path / "x.uwf")


async def test_a_thread_file_is_a_store_that_can_not_be_written(
    store: SqliteStore, tmp_path: Path
) -> None:
    calls: list[str] = []
    begun = await Engine(store).start(recorded(calls), "p", tags=["night"])
    await export_thread(store, begun.thread_id, tmp_path / "x.uwf")
    async with open_thread_file(tmp_path / "x.uwf") as file:
        assert await find_thread(file, "latest") == file.thread_id == begun.thread_id
        assert (await file.verify()).ok
        assert (await Engine(file).replay(recorded(calls), begun.thread_id)).steps == 2
        head = (await read_thread(file, begun.thread_id)).head
        assert await file.find(head[:12]) == head
        for refused in (
            file.commit([], [RefMove("a", None, head)]),
            file.collect_garbage(keep_newer_than_s=0),
        ):
            with pytest.raises(StoreReadOnly):
                await refused


async def test_a_cancelled_export_leaves_the_earlier_file(
    store: SqliteStore, tmp_path: Path
) -> None:
    begun = await Engine(store).start(in_turn(adapter_turn), "p")
    path = tmp_path / "x.uwf"
    path.write_bytes(b"earlier")
    with anyio.CancelScope() as scope:
        scope.cancel()
        await export_thread(store, begun.thread_id, path)
    assert files_in(tmp_path, "x.uwf") == ["x.uwf"]
    assert path.read_bytes() == b"earlier"


async def test_a_cancelled_import_brings_no_thread(store: SqliteStore, tmp_path: Path) -> None:
    begun = await Engine(store).start(in_turn(adapter_turn), "p")
    await export_thread(store, begun.thread_id, tmp_path / "x.uwf")

    class Slow(MemoryStore):
        async def commit(self, *args: object, **kwargs: object) -> None:
            await anyio.sleep_forever()

    other = Slow()
    with anyio.move_on_after(0.05) as scope:
        await import_thread(other, tmp_path / "x.uwf")
    assert scope.cancelled_caught
    assert await other.refs() == {}


@pytest.mark.slow
async def test_memory_does_not_grow_with_the_length_of_a_thread(
    store: SqliteStore, tmp_path: Path
) -> None:
    async def turn(ctx: ThreadContext) -> int:
        async def perform() -> bytes:
            return os.urandom(400_000)

        await ctx.journal.run("page", perform, type=bytes)
        return 1

    begun = await Engine(store).start(in_turn(*[turn] * 40), "p")
    async with open_store(tmp_path / "other.sqlite3") as other:
        tracemalloc.start()
        try:
            await export_thread(store, begun.thread_id, tmp_path / "x.uwf")
            done = await import_thread(other, tmp_path / "x.uwf")
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert done.bytes > 16_000_000
    assert peak < 9_000_000


async def test_a_thread_that_runs_is_exported_as_it_stands_and_taken_up_elsewhere(
    store: SqliteStore, tmp_path: Path
) -> None:
    at_work, go_on = anyio.Event(), anyio.Event()
    ids: list[ThreadId] = []

    async def wait(ctx: ThreadContext) -> int:
        async def give() -> int:
            return 7

        found = await ctx.journal.run("llm/0", give, type=int, request=lambda: b"ask")
        if not ids:
            ids.append(ctx.thread_id)
            at_work.set()
            await go_on.wait()
        return found

    run = in_turn(adapter_turn, wait)
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Engine(store).start, run, "p")
            await at_work.wait()
            await export_thread(store, ids[0], tmp_path / "x.uwf")
            go_on.set()
    other = MemoryStore()
    await import_thread(other, tmp_path / "x.uwf")
    (listed,) = await Engine(other).list_threads()
    assert (listed.state, listed.steps) == ("interrupted", 1)
    ended = await Engine(other).resume(run, ids[0])
    assert (ended.state, [step.meta for step in ended.steps]) == ("completed", [0, 7])


async def test_a_step_that_failed_and_led_on_comes_along(
    store: SqliteStore, tmp_path: Path
) -> None:
    first = RoleDefinition(name="first", system_prompt="", schema=int)
    helper = RoleDefinition(name="helper", system_prompt="", schema=str)

    async def fail(ctx: ThreadContext) -> int:
        raise RoleFailed("no way on")

    async def tell(ctx: ThreadContext) -> str:
        failure = ctx.failure(first)
        return "" if failure is None else failure.message

    run = create_workflow(
        WorkflowDefinition(
            table={START: first, first: END, helper: END}, on_failure={first: helper}
        ),
        AdapterBinding(overrides={first: adapter_of(fail), helper: adapter_of(tell)}),
    )
    begun = await Engine(store).start(run, "p")
    await export_thread(store, begun.thread_id, tmp_path / "x.uwf")
    other = MemoryStore()
    await import_thread(other, tmp_path / "x.uwf")
    assert (await Engine(other).replay(run, begun.thread_id)).steps == 2
    thread = await read_thread(other, begun.thread_id)
    assert [step.value for step in thread.steps][1] == b'"no way on"'
    assert [step.failure is not None for step in thread.steps] == [True, False]
