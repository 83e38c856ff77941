"""Takes the threads of a file into a store: all of them or none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from workflow_cas import Entry, RefConflict, RefMove, Store, Stored
from workflow_execute._errors import ThreadExists
from workflow_execute.exchange._file import ThreadFile, open_thread_file
from workflow_execute.exchange._format import ThreadRefs
from workflow_execute.threads._key import key_move
from workflow_execute.threads._summary import thread_ref
from workflow_protocol import ThreadId

_BATCH_OBJECTS = 500
_BATCH_BYTES = 2 * 1024 * 1024


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """What an import came to."""

    thread_id: ThreadId
    """The thread that was exported."""
    new: tuple[ThreadId, ...]
    """The threads that the store did not have."""
    known: tuple[ThreadId, ...]
    """Those that it had already, the same."""
    objects: int
    """How many objects the file has."""
    bytes: int
    """Of their data."""
    has_bundle: bool
    """Whether the file brings the code of its workflow, which a resume or a replay runs."""


async def import_thread(store: Store, path: Path) -> ImportReport:
    """Take a thread out of a file that `export_thread` wrote, with all that it started.

    The whole file is verified before anything is written. Its objects are written in parts; no
    name leads to them before the one last commit, which brings all of its threads. A thread that
    the store has already, the same, is left as it is, so that a second import changes nothing. The
    key that it was submitted with leads to it here too, unless another thread has it. No code of
    the file is run.

    Args:
        store: gets the thread.
        path: the file.

    Raises:
        ThreadFileError: it is no thread file, not whole, or of a newer version.
        ThreadExists: the store has one of its threads, and it has gone on otherwise.
        StoreError: it can't be written.
        OSError: the file can't be read.
    """
    async with open_thread_file(path) as file:
        new = await _missing(store, file)
        if new:
            async for objects in _parts(file):
                await store.commit(objects)
        while new:
            try:
                await _commit_refs(store, new, await file.entries())
                break
            except RefConflict:  # somebody else imports it at this moment
                new = await _missing(store, file)
        return ImportReport(
            thread_id=file.thread_id,
            new=tuple(ThreadId(each.id) for each in new),
            known=tuple(ThreadId(each.id) for each in file.threads if each not in new),
            objects=sum(1 for _ in file.hashes),
            bytes=file.size,
            has_bundle=file.has_bundle,
        )


async def _missing(store: Store, file: ThreadFile) -> list[ThreadRefs]:
    """The threads of a file that the store has not got.

    Raises:
        ThreadExists: it has one of them, otherwise.
    """
    return [each for each in file.threads if not await _is_there(store, each)]


async def _is_there(store: Store, thread: ThreadRefs) -> bool:
    """Whether the store has a thread, just as it is in the file.

    Raises:
        ThreadExists: it has another one of this id.
    """
    there = await store.refs(thread_ref(thread.id, ""))
    found = {what: there.get(thread_ref(thread.id, what)) for what in ("head", "status", "turn")}
    if found["head"] is None:
        return False
    if found != {"head": thread.head, "status": thread.status, "turn": thread.turn}:
        raise ThreadExists(thread.id)
    return True


async def _parts(file: ThreadFile) -> AsyncIterator[list[Stored]]:
    """The objects in parts that are not too large, each after what it refers to."""
    part: list[Stored] = []
    size = 0
    for hash in file.hashes:
        stored = await file.get(hash)
        part.append(stored)
        size += len(stored.data)
        if len(part) >= _BATCH_OBJECTS or size >= _BATCH_BYTES:
            yield part
            part, size = [], 0
    yield part


async def _commit_refs(store: Store, threads: list[ThreadRefs], entries: list[Entry]) -> None:
    """Make the refs that lead to the threads.

    Raises:
        RefConflict: somebody else has imported one of them.
    """
    moves = [
        RefMove(thread_ref(thread.id, what), None, hash)
        for thread in threads
        for what, hash in thread.targets.items()
    ]
    names = {move.name for move in moves}
    found = [await key_move(store, thread.id, thread.head) for thread in threads]
    keys = {move.name: move for move in found if move is not None}
    while True:
        try:
            await store.commit(
                [], [*moves, *keys.values()], [each for each in entries if each.ref in names]
            )
            return
        except RefConflict as error:
            if error.name in names:
                raise
            del keys[error.name]  # somebody submits with its key at this moment
