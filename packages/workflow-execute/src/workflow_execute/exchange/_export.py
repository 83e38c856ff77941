"""Writes a thread, with all that it needs, into one file."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import msgspec
from anyio import to_thread

from workflow_cas import Store, Stored
from workflow_execute._errors import SecretInThread, ThreadNotExportable, ThreadNotFound
from workflow_execute._failure import environment_secrets
from workflow_execute.exchange._format import (
    FORMAT,
    Header,
    ThreadRefs,
    encode_object,
    encode_start,
)
from workflow_execute.exchange._secrets import SecretScan
from workflow_execute.threads._read import children_of_turn, read_attempts, read_chain
from workflow_execute.threads._summary import thread_ref
from workflow_protocol import Hash, ThreadId

_MOST_AT_ONCE = 64
_BYTES_AT_ONCE = 2 * 1024 * 1024


class ThreadFileReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a thread file has."""

    thread_id: ThreadId
    """The thread that was exported."""
    threads: tuple[ThreadId, ...]
    """The thread, and those that it started."""
    objects: int
    """How many objects the file has."""
    bytes: int
    """Of the objects' data."""


async def export_thread(
    store: Store,
    thread_id: ThreadId,
    to: Path | IO[bytes],
    *,
    secrets: Mapping[str, str] | None = None,
    with_secrets: bool = False,
) -> ThreadFileReport:
    """Write a thread into one file, which `import_thread` reads in another store.

    The file has all objects of the thread and of the threads that it started: the task, values,
    requests' digests, replies, tool results, questions and answers, the bundle, and what a fork
    shares with the thread it came from. It has no configuration, no keys and no files of the
    workspace, only its path. The same thread gives the same bytes. One object after the other is
    read, so that memory does not grow with their sizes.

    Args:
        store: has the thread, which may be running. It is only read.
        thread_id: the thread.
        to: the file, which is replaced when all is written; or an open one to write to.
        secrets: values that must not leave, by name, besides what the environment has under names
            such as `…_KEY` or `…_TOKEN`. Those of less than 8 characters aren't looked for.
        with_secrets: export it even if one of these is in it.

    Raises:
        ThreadNotFound: there is none of this id.
        ThreadNotExportable: another thread started it; export that one.
        SecretInThread: the value of a key is in it. Nothing is written.
        StoreError: it can't be read.
        OSError: the file can't be written.
    """
    threads = await _read_refs(store, thread_id)
    known = {**dict(environment_secrets()), **(secrets or {})}
    scan = SecretScan({} if with_secrets else known)
    roots = [hash for each in threads for hash in each.targets.values()]
    links, size = await _read_links(store, roots, scan)
    order = _needed_first(roots, links)
    header = Header(
        kind="thread", format=FORMAT, threads=tuple(threads), objects=len(order), bytes=size
    )
    if isinstance(to, Path):
        try:
            await _replace_file(to, header, store, order)
        except OSError as error:  # it names the temporary file, or none
            raise OSError(error.errno, error.strerror, str(to)) from error
    else:
        await _write(to, header, store, order)
    ids = tuple(ThreadId(each.id) for each in threads)
    return ThreadFileReport(thread_id=thread_id, threads=ids, objects=len(order), bytes=size)


async def _read_refs(store: Store, thread_id: ThreadId) -> list[ThreadRefs]:
    """Where the refs of a thread and of all that it started are, each after the one above it."""
    first = await _refs_of(store, thread_id)
    if first is None:
        raise ThreadNotFound(thread_id)
    summary = (await read_chain(store, first.head)).summary
    if summary.parent is not None and await _refs_of(store, summary.parent) is not None:
        raise ThreadNotExportable(thread_id, summary.parent)
    found = {first.id: first}
    waiting = [first]
    while waiting:
        above = waiting.pop()
        for each in reversed(await child_ids(store, above)):
            refs = None if each in found else await _refs_of(store, each)
            if refs is not None:  # else its id was chosen, and the process died before it began
                found[each] = refs
                waiting.append(refs)
    return list(found.values())


async def _refs_of(store: Store, thread_id: str) -> ThreadRefs | None:
    refs = await store.refs(thread_ref(thread_id, ""))
    head, status = (
        refs.get(thread_ref(thread_id, "head")),
        refs.get(thread_ref(thread_id, "status")),
    )
    if head is None or status is None:
        return None
    turn = refs.get(thread_ref(thread_id, "turn"))
    return ThreadRefs(id=thread_id, head=head, status=status, turn=turn)


async def child_ids(store: Store, thread: ThreadRefs) -> list[str]:
    """The ids of what a thread started, in its steps and in its unfinished turn."""
    chain = await read_chain(store, thread.head)
    in_steps = [each for record in chain.records for each in record.child_threads]
    in_turn = children_of_turn(await read_attempts(store, thread.turn))
    return list(dict.fromkeys([*in_steps, *in_turn]))


async def _read_links(
    store: Store, roots: Iterable[Hash], scan: SecretScan
) -> tuple[dict[Hash, tuple[Hash, ...]], int]:
    """What each object that is needed refers to, and the bytes of all.

    Raises:
        SecretInThread: one of them has the value of a key.
    """
    links: dict[Hash, tuple[Hash, ...]] = {}
    size = 0
    waiting = list(dict.fromkeys(roots))
    seen = set(waiting)
    batches = _BatchedReads(store)
    while waiting:
        waiting, batch = waiting[: -batches.count], waiting[-batches.count :]
        for stored in await batches.get(batch):
            if name := scan.find(stored):
                raise SecretInThread(name, stored.hash)
            links[stored.hash] = stored.refs
            size += len(stored.data)
            new = [each for each in stored.refs if each not in seen]
            seen.update(new)
            waiting += new
    return links, size


def _needed_first(roots: Sequence[Hash], links: Mapping[Hash, Sequence[Hash]]) -> list[Hash]:
    """All objects, each after those that it refers to; the order depends on nothing else."""
    placed: dict[Hash, None] = {}
    for root in roots:
        waiting = [(root, iter(links[root]))] if root not in placed else []
        while waiting:
            hash, rest = waiting[-1]
            below = next((each for each in rest if each not in placed), None)
            if below is None:
                placed[hash] = None
                waiting.pop()
            else:
                waiting.append((below, iter(links[below])))
    return list(placed)


async def _replace_file(path: Path, header: Header, store: Store, order: Sequence[Hash]) -> None:
    """Write a file beside the one that it replaces."""
    if await to_thread.run_sync(path.is_dir):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    descriptor, temporary = await to_thread.run_sync(
        lambda: tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            await _write(file, header, store, order)
            await to_thread.run_sync(os.fsync, file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


async def _write(file: IO[bytes], header: Header, store: Store, order: Sequence[Hash]) -> None:
    digest = hashlib.sha256()

    def write(data: bytes) -> None:
        digest.update(data)
        file.write(data)

    def write_all(objects: Iterable[Stored]) -> None:
        for stored in objects:
            write(encode_object(stored))
            write(stored.data)

    write(encode_start(header))
    async for objects in _in_order(store, order):
        await to_thread.run_sync(write_all, objects)
    file.write(digest.digest())
    file.flush()


async def _in_order(store: Store, order: Sequence[Hash]) -> AsyncIterator[list[Stored]]:
    batches = _BatchedReads(store)
    at = 0
    while at < len(order):
        batch = order[at : at + batches.count]
        at += len(batch)
        yield await batches.get(batch)


class _BatchedReads:
    """Reads several objects in one go, as many as were not too large the last time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.count = 1
        """How many to read next."""

    async def get(self, hashes: Sequence[Hash]) -> list[Stored]:
        """Read these objects."""
        found = await self._store.get_many(hashes)
        mean = max(1, sum(len(each.data) for each in found) // len(found))
        self.count = max(1, min(_MOST_AT_ONCE, 4 * self.count, _BYTES_AT_ONCE // mean))
        return found
