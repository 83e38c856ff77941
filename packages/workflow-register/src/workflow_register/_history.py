"""What a name has stood for: its versions, going back to one, and forgetting them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from workflow_cas import RefMove, Store, Stored
from workflow_protocol import Hash
from workflow_register._errors import UnknownVersion
from workflow_register._registry import (
    REF_PREFIX,
    DamagedRecord,
    Registration,
    WorkflowRecord,
    append_version,
    find_head,
    record_object,
    record_or_damaged,
    until_no_conflict,
)
from workflow_register.bundles._archive import read_bundle

MIN_HASH_DIGITS = 8
"""A shorter number is a version, a shorter word no hash."""


async def history(store: Store, name: str) -> list[WorkflowRecord | DamagedRecord]:
    """Return all that was ever registered under a name, newest first, as far as it can be read.

    Raises:
        UnknownWorkflow: nothing was.
    """
    hash: Hash | None = await find_head(store, name)
    records: list[WorkflowRecord | DamagedRecord] = []
    while hash is not None:
        record = await record_or_damaged(store, name, hash)
        records.append(record)
        hash = record.previous if isinstance(record, WorkflowRecord) else None
    return records


async def find_version(store: Store, name: str, version: str | None = None) -> WorkflowRecord:
    """Return a version of a name.

    Args:
        version: its number, or at least 8 digits of the bundle's hash. Without it: the newest one
            of another bundle than the name stands for now.

    Raises:
        UnknownWorkflow: nothing is registered under the name.
        UnknownVersion: there is no such version.
    """
    records = [each for each in await history(store, name) if isinstance(each, WorkflowRecord)]
    if version is None:
        found = [each for each in records if each.bundle != records[0].bundle][:1]
    elif version.isascii() and version.isdecimal() and len(version) < MIN_HASH_DIGITS:
        found = [each for each in records if each.version == int(version)]
    else:
        whole = len(version) >= MIN_HASH_DIGITS
        found = [each for each in records if whole and each.bundle.startswith(version.lower())]
    if len({each.bundle for each in found}) != 1:
        raise UnknownVersion(name, version or "", [each.version for each in records])
    return found[0]


async def rollback(store: Store, name: str, version: str | None = None) -> Registration:
    """Let a name stand for an earlier bundle again, as a new version on top of its history.

    Args:
        version: its number, or at least 8 digits of the bundle's hash. Without it: the newest one
            of another bundle than now, so that a second rollback takes the first one back.

    Raises:
        UnknownWorkflow: nothing is registered under the name.
        UnknownVersion: there is no such version, or none to go back to.
        BundleCorrupt: the stored bytes are no bundle of that version.
        RefConflict: others kept registering this name at the same time; try again.
    """
    target = await find_version(store, name, version)
    stored = await store.get(target.content)
    read_bundle(stored.data, expected=target.bundle)
    return await append_version(
        store,
        name,
        bundle=target.bundle,
        archive=target.content,
        entry=target.entry,
        description=target.description,
        environment=target.environment,
    )


async def unregister(store: Store, name: str) -> list[WorkflowRecord | DamagedRecord]:
    """Remove a name with its whole history, and return what it was, newest first.

    Threads keep the bundles that they began with. The rest is removed by the next garbage
    collection.

    Raises:
        UnknownWorkflow: nothing is registered under the name.
        RefConflict: others kept registering this name at the same time; try again.
    """

    async def once() -> list[WorkflowRecord | DamagedRecord]:
        head = await find_head(store, name)
        records = await history(store, name)
        await store.commit([], [RefMove(REF_PREFIX + name, head, None)])
        return records

    return await until_no_conflict(once)


async def prune_history(store: Store, name: str, *, keep: int) -> int:
    """Forget all versions of a name but the newest `keep`, and say how many were forgotten.

    The others keep their numbers. Bundles that no other version and no thread needs are removed by
    the next garbage collection.

    Raises:
        ValueError: `keep` is less than 1; `unregister` removes a name.
        UnknownWorkflow: nothing is registered under the name.
        RefConflict: others kept registering this name at the same time; try again.
    """
    if keep < 1:
        raise ValueError(f"keep is {keep}; keep at least the newest version, or unregister")

    async def once() -> int:
        head = await find_head(store, name)
        records = await history(store, name)
        kept = [each for each in records[:keep] if isinstance(each, WorkflowRecord)]
        if len(records) <= keep or not kept:
            return 0
        chain = _chain(kept)
        await store.commit(chain, [RefMove(REF_PREFIX + name, head, chain[-1].hash)])
        return len(records) - len(kept)

    return await until_no_conflict(once)


def _chain(records: Sequence[WorkflowRecord]) -> list[Stored]:
    """The objects of records that are newest first, the oldest with nothing before it."""
    chain: list[Stored] = []
    for record in reversed(records):
        previous = chain[-1].hash if chain else None
        chain.append(record_object(msgspec.structs.replace(record, previous=previous)))
    return chain
