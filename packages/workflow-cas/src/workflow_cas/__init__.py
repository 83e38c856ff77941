"""Content-addressed objects, refs and an index of these in one SQLite file."""

from workflow_cas._entries import Entry
from workflow_cas._errors import (
    AmbiguousHash,
    ObjectMissing,
    RefConflict,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFormat,
    StoreFull,
    StoreReadOnly,
)
from workflow_cas._memory import MemoryStore
from workflow_cas._objects import Kind, Node, RefMove, Stored, content, node, restore
from workflow_cas._store import GcReport, Problem, ProblemKind, Store, VerifyReport
from workflow_cas.sqlite._database import Durability
from workflow_cas.sqlite._migrate import MakeEntries, MigrationReport, migrate_store
from workflow_cas.sqlite._sqlite import SqliteStore, open_store
from workflow_cas.sqlite._sqlite_errors import TOO_FEW_DESCRIPTORS

__all__ = [
    "TOO_FEW_DESCRIPTORS",
    "AmbiguousHash",
    "Durability",
    "Entry",
    "GcReport",
    "Kind",
    "MakeEntries",
    "MemoryStore",
    "MigrationReport",
    "Node",
    "ObjectMissing",
    "Problem",
    "ProblemKind",
    "RefConflict",
    "RefMove",
    "SqliteStore",
    "Store",
    "StoreBusy",
    "StoreCorrupt",
    "StoreError",
    "StoreFormat",
    "StoreFull",
    "StoreReadOnly",
    "Stored",
    "VerifyReport",
    "content",
    "migrate_store",
    "node",
    "open_store",
    "restore",
]
