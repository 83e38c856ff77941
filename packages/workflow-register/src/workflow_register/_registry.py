"""Names of workflows: each is a ref to the newest of a chain of records."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TypeVar

import msgspec

from workflow_cas import (
    ObjectMissing,
    RefConflict,
    RefMove,
    Store,
    StoreCorrupt,
    Stored,
    StoreFormat,
    content,
    node,
)
from workflow_protocol import Hash, WorkflowDescription
from workflow_register._errors import UnknownWorkflow
from workflow_register._names import NAME, check_name
from workflow_register._nearest import nearest
from workflow_register.bundles._archive import Bundle, read_bundle
from workflow_register.bundles._environment import Environment
from workflow_register.bundles._load import HasDefinition, load_workflow

NODE_TYPE = "workflow"
REF_PREFIX = "workflow/"
MAX_TRIES = 20

T = TypeVar("T")


class WorkflowRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One registration of a bundle under a name, as it is stored."""

    name: str
    """What it is called."""
    version: int = 1
    """Counts the registrations of the name, from 1; pruning the history renumbers nothing."""
    bundle: Hash
    """The bundle's hash: SHA-256 of the archive."""
    content: Hash
    """The object that holds the archive."""
    entry: str
    """The file name of the entry script."""
    description: WorkflowDescription
    """What it says of itself."""
    registered_at_ms: int
    """When, in ms since 1970."""
    environment: Environment | None = None
    """The versions that it was checked under."""
    previous: Hash | None = None
    """The record before this one under the same name."""


class DamagedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in a list where a record can't be read, so that the others are still seen."""

    name: str
    """What is registered under it."""
    hash: Hash
    """The object that can't be read."""
    reason: str
    """Why it can't be read."""


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """What `register` did. `is_new` is false if the name had this very bundle already."""

    record: WorkflowRecord
    """What stands under the name now."""
    hash: Hash
    """The record's own object."""
    is_new: bool
    """Whether anything was written."""


async def register(
    store: Store,
    name: str,
    bundle: Bundle,
    description: WorkflowDescription,
    *,
    environment: Environment | None = None,
) -> Registration:
    """Give a bundle a name. What had the name before stays in its history.

    May be repeated: the bundle that has the name already is not registered again.

    Raises:
        NameRejected: the name isn't lower-case words joined by '-'.
        RefConflict: others kept registering this name at the same time; try again.
    """
    archive = content(bundle.data)
    return await append_version(
        store,
        check_name(name),
        bundle=bundle.hash,
        archive=archive.hash,
        entry=bundle.manifest.entry,
        description=description,
        environment=environment,
        objects=[archive],
    )


async def append_version(
    store: Store,
    name: str,
    *,
    bundle: Hash,
    archive: Hash,
    entry: str,
    description: WorkflowDescription,
    environment: Environment | None = None,
    objects: Sequence[Stored] = (),
) -> Registration:
    """Put a record on top of a name's history, unless the name has this bundle already.

    Args:
        objects: what the record needs and the store may not have yet.

    Raises:
        RefConflict: others kept registering this name at the same time; try again.
    """

    async def once() -> Registration:
        head = await store.ref(REF_PREFIX + name)
        current = await record_or_damaged(store, name, head) if head is not None else None
        version = 1
        if isinstance(current, WorkflowRecord):
            assert head is not None
            if current.bundle == bundle:
                return Registration(record=current, hash=head, is_new=False)
            version = current.version + 1
        record = WorkflowRecord(
            name=name,
            version=version,
            bundle=bundle,
            content=archive,
            entry=entry,
            description=description,
            environment=environment,
            registered_at_ms=time.time_ns() // 1_000_000,
            previous=head,
        )
        stored = record_object(record)
        await store.commit([*objects, stored], [RefMove(REF_PREFIX + name, head, stored.hash)])
        return Registration(record=record, hash=stored.hash, is_new=True)

    return await until_no_conflict(once)


async def until_no_conflict(once: Callable[[], Awaitable[T]]) -> T:
    """Read a name and move it, again where others have moved it in between.

    Raises:
        RefConflict: they did so each time; try again.
    """
    for _ in range(MAX_TRIES - 1):
        with suppress(RefConflict):
            return await once()
    return await once()


def record_object(record: WorkflowRecord) -> Stored:
    """The object of a record. Roles and fields keep their order, which canonical JSON would sort.

    Its first refs are the archive and the record before.
    """
    payload = {
        **msgspec.structs.asdict(record),
        "description": msgspec.Raw(msgspec.json.encode(record.description)),
    }
    before = [record.previous] if record.previous else []
    return node(NODE_TYPE, payload, [record.content, *before])


async def lookup(store: Store, name: str) -> WorkflowRecord:
    """Return what is registered under a name now.

    Raises:
        UnknownWorkflow: nothing is; it says what is called alike.
        StoreError: the record can't be read; register the workflow again.
    """
    return await _read_record(store, await find_head(store, name))


async def list_workflows(store: Store) -> list[WorkflowRecord | DamagedRecord]:
    """Return what is registered under each name now, sorted by name."""
    heads = await store.refs(REF_PREFIX)
    return [
        await record_or_damaged(store, ref.removeprefix(REF_PREFIX), head)
        for ref, head in heads.items()
    ]


async def read_registered(store: Store, name: str) -> Bundle:
    """Return the bundle that a name stands for now, proved to be whole.

    Raises:
        UnknownWorkflow: nothing is registered under the name.
        BundleCorrupt: the stored bytes are no bundle of this version.
    """
    record = await lookup(store, name)
    stored = await store.get(record.content)
    return read_bundle(stored.data, expected=record.bundle)


async def load_registered(store: Store, name: str) -> HasDefinition:
    """Import the workflow that a name stands for now.

    Raises:
        UnknownWorkflow: nothing is registered under the name.
        BundleCorrupt: the stored bytes are no bundle of this version.
        EntryError: it can't be imported here, at which file and line.
    """
    return load_workflow(await read_registered(store, name))


async def find_head(store: Store, name: str) -> Hash:
    """The newest record of a name.

    Raises:
        UnknownWorkflow: nothing is registered under it.
    """
    head = await store.ref(REF_PREFIX + name) if NAME.fullmatch(name) else None
    if head is None:
        known = [ref.removeprefix(REF_PREFIX) for ref in await store.refs(REF_PREFIX)]
        raise UnknownWorkflow(name, known, nearest(name, known))
    return head


async def _read_record(store: Store, hash: Hash) -> WorkflowRecord:
    found = (await store.get(hash)).as_node()
    if found.type != NODE_TYPE:
        raise StoreFormat(f"object {hash} is a {found.type!r}, not a workflow; register it again")
    return found.read(WorkflowRecord)


async def record_or_damaged(store: Store, name: str, hash: Hash) -> WorkflowRecord | DamagedRecord:
    """Read a record; what can't be read is told in its place."""
    try:
        return await _read_record(store, hash)
    except (ObjectMissing, StoreCorrupt, StoreFormat) as error:
        return DamagedRecord(name=name, hash=hash, reason=str(error))
