"""Deleting a thread: the names that lead to it go, all of them or none."""

from __future__ import annotations

from collections.abc import Container

from workflow_cas import RefConflict, RefMove, Store
from workflow_execute._errors import ThreadNotDeletable, ThreadNotFound
from workflow_execute.owners._signals import signal_ref
from workflow_execute.threads._key import find_keyed, key_ref
from workflow_execute.threads._read import list_threads, read_attempts, read_thread
from workflow_execute.threads._summary import thread_ref
from workflow_execute.threads._tree import ThreadTree, children_of_thread, read_tree
from workflow_protocol import Hash, ThreadId


async def delete_thread(store: Store, thread_id: ThreadId) -> list[ThreadId]:
    """Delete a thread that the caller owns, and what it started. See `Engine.delete`."""
    while True:
        tree = await read_tree(store, thread_id)
        needed = await _children_started_elsewhere(store, tree)
        if thread_id in needed:
            raise ThreadNotDeletable(thread_id, needed[thread_id])
        ids = _ids_to_delete(tree, needed)
        found = {name: old for each in ids for name, old in (await _refs(store, each)).items()}
        found |= await _key_refs(store, tree)
        try:
            await store.commit([], [RefMove(name, old, None) for name, old in found.items()])
        except RefConflict:  # somebody signals at this moment
            continue
        return ids


async def _refs(store: Store, thread_id: ThreadId) -> dict[str, Hash]:
    own = await store.refs(thread_ref(thread_id, ""))
    return {**own, **await store.refs(signal_ref(thread_id))}


async def _key_refs(store: Store, tree: ThreadTree) -> dict[str, Hash]:
    """The key of a thread, which is free again when the thread is gone. Children have none."""
    thread = tree.thread
    found = await store.ref(key_ref(thread.start.key)) if thread.start.key else None
    keyed = await find_keyed(store, thread.start.key) if found is not None else None
    if found is None or keyed is None or keyed.thread_id != thread.thread_id:
        return {}
    return {key_ref(thread.start.key): found}


async def _children_started_elsewhere(store: Store, tree: ThreadTree) -> dict[ThreadId, ThreadId]:
    """Children of threads outside the tree, which a fork shares, and who has each."""
    inside = {part.thread.thread_id for part in tree.walk()}
    concerned = tree.children or tree.thread.parent is not None
    found: dict[ThreadId, ThreadId] = {}
    for each in await list_threads(store) if concerned else ():
        if each not in inside:
            try:
                thread = await read_thread(store, each)
            except ThreadNotFound:  # deleted meanwhile
                continue
            attempts = await read_attempts(store, thread.turn)
            found.update(dict.fromkeys(children_of_thread(thread, attempts), each))
    return found


def _ids_to_delete(tree: ThreadTree, shared: Container[ThreadId]) -> list[ThreadId]:
    below = [c for c in tree.children if c.thread.thread_id not in shared]
    return [tree.thread.thread_id, *(each for c in below for each in _ids_to_delete(c, shared))]
