"""A bundle as a thread refers to it: the archive, and what it ran under."""

from __future__ import annotations

import msgspec

from workflow_cas import Store, Stored, StoreFormat, content, node
from workflow_protocol import Hash
from workflow_register.bundles._archive import Bundle, read_bundle
from workflow_register.bundles._environment import Environment

NODE_TYPE = "bundle"


class StoredBundle(msgspec.Struct, frozen=True, kw_only=True):
    """What is stored of a bundle that a thread is run with."""

    bundle: Hash
    """The bundle's hash: SHA-256 of the archive."""
    content: Hash
    """The object that holds the archive."""
    environment: Environment
    """The versions that it was first run under."""


def bundle_objects(bundle: Bundle, environment: Environment) -> tuple[Stored, Stored]:
    """The objects to store for a thread: the archive, and the record that leads to it.

    The thread's `bundle` is the hash of the second. The same bundle under the same versions is the
    same objects.
    """
    archive = content(bundle.data)
    record = StoredBundle(bundle=bundle.hash, content=archive.hash, environment=environment)
    return archive, node(NODE_TYPE, record, [archive.hash])


async def read_stored_bundle(store: Store, hash: Hash) -> tuple[Bundle, Environment | None]:
    """Read what a thread refers to as its bundle, and what it ran under, where that is recorded.

    Raises:
        StoreError: it can't be read, or is something else.
        BundleCorrupt: the stored bytes are no bundle of this version.
    """
    found = await store.get(hash)
    if found.kind == "content":  # the archive alone
        return read_bundle(found.data), None
    as_node = found.as_node()
    if as_node.type != NODE_TYPE:
        raise StoreFormat(f"object {hash} is a {as_node.type!r}, not a bundle")
    record = as_node.read(StoredBundle)
    archive = await store.get(record.content)
    return read_bundle(archive.data, expected=record.bundle), record.environment
