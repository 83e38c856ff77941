"""Names of workflows: each is a ref to the newest of a chain of records."""

from __future__ import annotations

import re
import time

import msgspec

from workflow_cas import (
    ObjectMissing,
    RefConflict,
    RefMove,
    Store,
    StoreCorrupt,
    StoreFormat,
    content,
    node,
)
from workflow_protocol import Hash, WorkflowDescription
from workflow_register._errors import NameRejected, UnknownWorkflow
from workflow_register._nearest import nearest
from workflow_register.bundles._archive import Bundle, read_bundle
from workflow_register.bundles._load import HasDefinition, load_workflow

NODE_TYPE = "workflow"
REF_PREFIX = "workflow/"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
MAX_TRIES = 20


class WorkflowRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One registration of a bundle under a name, as it is stored."""

    name: str
    bundle: Hash
    """The bundle's hash: SHA-256 of the archive."""
    content: Hash
    """The object that holds the archive."""
    entry: str
    """The file name of the entry script."""
    description: WorkflowDescription
    registered_at_ms: int
    previous: Hash | None = None
    """The record before this one under the same name."""


class DamagedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What stands in a list where a record can't be read, so that the others are still seen."""

    name: str
    hash: Hash
    """The object that can't be read."""
    reason: str


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """What `register` did. `is_new` is false if the name had this very bundle already."""

    record: WorkflowRecord
    hash: Hash
    """The record's own object."""
    is_new: bool


def check_name(name: str) -> str:
    """Return a name that a workflow may have.

    Raises:
        NameRejected: it isn't lower-case words joined by '-'.
    """
    if len(name) > 100 or not NAME.fullmatch(name):
        raise NameRejected(name)
    return name


async def register(
    store: Store, name: str, bundle: Bundle, description: WorkflowDescription
) -> Registration:
    """Give a bundle a name. What had the name before stays in its history.

    May be repeated: the bundle that has the name already is not registered again.

    Raises:
        NameRejected: the name isn't lower-case words joined by '-'.
        RefConflict: others kept registering this name at the same time; try again.
    """
    ref = REF_PREFIX + check_name(name)
    archive = content(bundle.data)
    for attempt in range(1, MAX_TRIES + 1):
        head = await store.ref(ref)
        if head is not None:
            current = await _record_or_damaged(store, name, head)
            if isinstance(current, WorkflowRecord) and current.bundle == bundle.hash:
                return Registration(record=current, hash=head, is_new=False)
        record = WorkflowRecord(
            name=name,
            bundle=bundle.hash,
            content=archive.hash,
            entry=bundle.manifest.entry,
            description=description,
            registered_at_ms=time.time_ns() // 1_000_000,
            previous=head,
        )
        stored = node(NODE_TYPE, record, [archive.hash, *([head] if head else [])])
        try:
            await store.commit([archive, stored], [RefMove(ref, head, stored.hash)])
        except RefConflict:
            if attempt == MAX_TRIES:
                raise
        else:
            return Registration(record=record, hash=stored.hash, is_new=True)
    raise AssertionError("unreachable")


async def lookup(store: Store, name: str) -> WorkflowRecord:
    """Return what is registered under a name now.

    Raises:
        UnknownWorkflow: nothing is; it says what is called alike.
        StoreError: the record can't be read; register the workflow again.
    """
    return await _read_record(store, await _head(store, name))


async def list_workflows(store: Store) -> list[WorkflowRecord | DamagedRecord]:
    """Return what is registered under each name now, sorted by name."""
    heads = await store.refs(REF_PREFIX)
    return [
        await _record_or_damaged(store, ref.removeprefix(REF_PREFIX), head)
        for ref, head in heads.items()
    ]


async def history(store: Store, name: str) -> list[WorkflowRecord | DamagedRecord]:
    """Return all that was ever registered under a name, newest first, as far as it can be read.

    Raises:
        UnknownWorkflow: nothing was.
    """
    hash: Hash | None = await _head(store, name)
    records: list[WorkflowRecord | DamagedRecord] = []
    while hash is not None:
        record = await _record_or_damaged(store, name, hash)
        records.append(record)
        hash = record.previous if isinstance(record, WorkflowRecord) else None
    return records


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


async def _head(store: Store, name: str) -> Hash:
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


async def _record_or_damaged(store: Store, name: str, hash: Hash) -> WorkflowRecord | DamagedRecord:
    try:
        return await _read_record(store, hash)
    except (ObjectMissing, StoreCorrupt, StoreFormat) as error:
        return DamagedRecord(name=name, hash=hash, reason=str(error))
