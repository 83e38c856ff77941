"""Keys: the names under which a caller submits a thread once, however often it asks."""

from __future__ import annotations

from workflow_cas import ObjectMissing, RefMove, Store
from workflow_execute._errors import KeyConflict
from workflow_execute._records import StartRecord
from workflow_protocol import Hash

MAX_KEY_CHARS = 200


def key_ref(key: str) -> str:
    """The name of the ref from a key to the start of its thread."""
    return f"key/{key}"


def check_key(key: str) -> None:
    """Refuse what can't be a key.

    Raises:
        ValueError: it is empty, too long, or not one line of printable text.
    """
    if not 0 < len(key) <= MAX_KEY_CHARS or not key.isprintable():
        raise ValueError(
            f"{key[:100]!r} can't be a key; use 1 to {MAX_KEY_CHARS} printable characters"
        )


async def find_keyed(store: Store, key: str) -> StartRecord | None:
    """How the thread of a key began; `None` where the key has begun none that still exists."""
    found = await store.ref(key_ref(key))
    if found is None:
        return None
    try:
        return (await store.get(found)).as_node().read(StartRecord)
    except ObjectMissing:  # deleted and collected meanwhile
        return None


async def key_move(store: Store, thread_id: str, head: Hash) -> RefMove | None:
    """The move that gives a key back to its thread, which comes from another store.

    `None` where the thread has no key of its own, or where another thread has it here.
    """
    start = (await store.chain(head, lambda node: node.type not in {"state", "branch"}))[-1]
    record = start.read(StartRecord)
    if not record.key or record.thread_id != thread_id:
        return None
    taken = await store.ref(key_ref(record.key)) is not None
    return None if taken else RefMove(key_ref(record.key), None, start.hash)


def check_same_task(start: StartRecord, *, workflow: str, prompt: Hash) -> None:
    """Make sure that a key is used again for the same task.

    Raises:
        KeyConflict: the workflow's name or the input is another; says which.
    """
    differs: dict[str, str] = {}
    if start.workflow != workflow:
        differs["workflow"] = f" ({start.workflow!r} then, {workflow!r} now)"
    if start.prompt != prompt:
        differs["input"] = ""
    if differs:
        raise KeyConflict(start.key, start.thread_id, differs)
