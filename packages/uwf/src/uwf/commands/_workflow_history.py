"""`workflow history|rollback|prune|rm`: the versions of a name, and the name itself."""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from uwf._errors import Failed, UsageError
from uwf._store import open_existing
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output, age
from uwf.terminal._prompt import ask_yes
from uwf.terminal._style import Styled, Words
from uwf.terminal._table import Column
from workflow_cas import Store, StoreError, open_store
from workflow_register import (
    BundleCorrupt,
    DamagedRecord,
    UnknownWorkflow,
    WorkflowRecord,
    describe_changes,
    find_home,
    history,
    module_changes,
    prune_history,
    read_bundle,
    rollback,
    store_path,
    unregister,
)

T = TypeVar("T")


def show_history(output: Output, name: str) -> int:
    """List the versions of a name, newest first, each with what it changed."""
    records, changes = _with_store(name, lambda store: _read_history(store, name), read_only=True)
    now_ms = time.time_ns() // 1_000_000
    rows = [
        _row(record, changed, now_ms, is_current=number == 0)
        for number, (record, changed) in enumerate(zip(records, changes, strict=True))
        if isinstance(record, WorkflowRecord)
    ]
    output.table(_COLUMNS, rows)
    for record in records:
        if isinstance(record, DamagedRecord):
            output.say([Styled("what was before can't be read", "bad"), f": {record.reason}"])
    return 0


def roll_back(output: Output, name: str, to_version: str | None) -> int:
    """Let a name stand for an earlier bundle again."""
    done = _with_store(name, lambda store: rollback(store, name, to_version))
    record = done.record
    output.data(
        {"name": name, "hash": record.bundle, "version": record.version, "changed": done.is_new},
        name,
    )
    words = "stands now for" if done.is_new else "stands already for"
    output.say(f"{name} {words} {record.bundle[:12]} (version {record.version})")
    return 0


def prune(output: Output, name: str, *, keep: int) -> int:
    """Forget the older versions of a name."""
    forgotten = _with_store(name, lambda store: prune_history(store, name, keep=keep))
    output.data({"name": name, "forgotten": forgotten}, f"{forgotten} versions are forgotten")
    if forgotten:
        output.say("To free the space: `uwf cas gc`")
    return 0


def remove(output: Output, name: str, *, assume_yes: bool) -> int:
    """Unregister a name, if the person wants that."""
    records = _with_store(name, lambda store: history(store, name), read_only=True)
    if not assume_yes:
        _confirm(output, name, records)
    gone = _with_store(name, lambda store: unregister(store, name))
    bundles = [each.bundle for each in gone if isinstance(each, WorkflowRecord)]
    output.data({"name": name, "versions": len(gone), "bundles": bundles}, f"{name} is removed")
    output.say(
        "Its threads can still be resumed: each keeps its bundle. To free the space of the rest: "
        "`uwf cas gc`"
    )
    return 0


def _confirm(output: Output, name: str, records: Sequence[object]) -> None:
    """Ask whether a name shall be removed.

    Raises:
        UsageError: there is nobody to ask.
        Failed: it shall not.
    """
    if output.json or sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"{name} and its history would be removed for good; "
            "add --yes to remove them without asking"
        )
    count = len(records)
    versions = f"{count} version{'s' * (count != 1)}"
    if not ask_yes(f"Remove {name} with its history of {versions} for good?", default=False):
        raise Failed(1, "nothing was removed")


_COLUMNS = (
    Column("version", align="right"),
    Column("bundle"),
    Column("registered"),
    Column("changes", folds=True),
)


def _row(
    record: WorkflowRecord, changes: list[str], now_ms: int, *, is_current: bool
) -> tuple[object, list[Words]]:
    value = {
        "version": record.version,
        "hash": record.bundle,
        "registered_at_ms": record.registered_at_ms,
        "current": is_current,
        "entry": record.entry,
        "changes": changes,
    }
    return value, [
        Styled(str(record.version), "strong" if is_current else "dim"),
        Styled(record.bundle[:12], "name"),
        age(record.registered_at_ms, now_ms),
        "; ".join(changes),
    ]


async def _read_history(
    store: Store, name: str
) -> tuple[list[WorkflowRecord | DamagedRecord], list[list[str]]]:
    records = await history(store, name)
    changes = [await _changes(store, records, old, new) for new, old in pairwise(records)]
    oldest = records[-1]
    is_first = isinstance(oldest, WorkflowRecord) and oldest.version == 1
    return records, [*changes, ["first version" if is_first else "earlier versions are pruned"]]


async def _changes(
    store: Store,
    records: Sequence[WorkflowRecord | DamagedRecord],
    before: WorkflowRecord | DamagedRecord,
    after: WorkflowRecord | DamagedRecord,
) -> list[str]:
    if not (isinstance(before, WorkflowRecord) and isinstance(after, WorkflowRecord)):
        return []
    same = [
        each.version
        for each in records
        if isinstance(each, WorkflowRecord)
        and each.version < after.version
        and each.bundle == after.bundle
    ]
    if same:
        return [f"back to version {same[0]}"]
    changes = describe_changes(before.description, after.description)
    if before.entry != after.entry:
        changes.append(f"~ entry: {before.entry} → {after.entry}")
    try:
        old, new = [
            read_bundle((await store.get(each.content)).data, expected=each.bundle)
            for each in (before, after)
        ]
    except (StoreError, BundleCorrupt) as error:
        return [*changes, f"the modules can't be compared: {error}"]
    return [*changes, *module_changes(old.sources, new.sources)]


def _with_store(name: str, work: Callable[[Store], Awaitable[T]], *, read_only: bool = False) -> T:
    home = find_home()
    if not store_path(home).exists():
        raise UnknownWorkflow(name, [], [])

    async def main() -> T:
        async with open_existing(home) if read_only else open_store(store_path(home)) as store:
            return await work(store)

    return run_async(main)
