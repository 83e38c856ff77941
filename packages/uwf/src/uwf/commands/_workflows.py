"""`bundle`, `add` and `workflow list`: from entry scripts to registered names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from uwf._store import open_existing
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output
from uwf.terminal._style import Styled, Words
from uwf.terminal._table import Column
from workflow_cas import Store, open_store
from workflow_protocol import WorkflowDescription
from workflow_register import (
    Bundle,
    DamagedRecord,
    UnknownWorkflow,
    WorkflowRecord,
    build_bundle,
    bundles_path,
    check_bundle,
    check_name,
    find_home,
    list_workflows,
    lookup,
    read_bundle,
    register,
    store_path,
    unlike_lock,
    write_bundle,
)


def bundle(output: Output, entry: Path, folder: Path | None) -> int:
    """Build an archive of an entry, check that it imports, and write it."""
    made = build_bundle(entry)
    checked = run_async(lambda: check_bundle(made))
    _tell_unlocked(output, made)
    path = write_bundle(made, folder or bundles_path(find_home()))
    output.data(
        {
            "path": str(path),
            "hash": made.hash,
            "entry": made.manifest.entry,
            "modules": made.manifest.modules,
            "files": made.manifest.files,
            "roles": list(checked.workflow.roles),
            "requires": made.manifest.requires,
            "children": list(checked.children),
            "environment": checked.environment,
        },
        str(path),
    )
    modules = _count(len(made.manifest.modules), "module")
    files = f" and {_count(len(made.files), 'file')}" if made.files else ""
    children = f"; runs by name: {', '.join(checked.children)}" if checked.children else ""
    output.say(f"bundled {modules}{files}; roles: {_roles(checked.workflow)}{children}")
    return 0


def open_bundle(path: Path) -> Bundle:
    """Read what `uwf bundle` made, or make a bundle of an entry script."""
    return read_bundle(path) if path.suffix == ".zip" else build_bundle(path)


def workflow_path(workflow: str) -> Path | None:
    """The path that a workflow is given by; `None` for a registered name, which has no dot."""
    path = Path(workflow)
    return path if path.suffix or path.name != workflow else None


def add(output: Output, name: str, path: Path) -> int:
    """Register a bundle under a name."""
    check_name(name)
    made = open_bundle(path)

    async def main() -> WorkflowRecord:
        checked = await check_bundle(made)
        _tell_unlocked(output, made)
        async with open_store(store_path(find_home())) as store:
            done = await register(
                store, name, made, checked.workflow, environment=checked.environment
            )
            await _tell_missing(output, store, checked.children)
        words = "is registered as" if done.is_new else "was registered already as"
        output.say(f"{name} {words} {made.hash[:12]}")
        return done.record

    record = run_async(main)
    output.data({"name": name, "hash": record.bundle}, name)
    return 0


def list_all(output: Output) -> int:
    """List the registered workflows; a damaged one does not hide the others."""

    async def main() -> int:
        home, found = find_home(), list[WorkflowRecord | DamagedRecord]()
        if store_path(home).exists():
            async with open_existing(home) as store:
                found = await list_workflows(store)
        output.table(_COLUMNS, (_row(each) for each in found if isinstance(each, WorkflowRecord)))
        for each in found:
            if isinstance(each, DamagedRecord):
                output.say([Styled(each.name, "bad"), f": {each.reason}"])
        if not found:
            output.say("no workflow is registered yet; start with `uwf add NAME ENTRY.py`")
        return 0

    return run_async(main)


_COLUMNS = (Column("name"), Column("bundle"), Column("roles", folds=True))


def _row(record: WorkflowRecord) -> tuple[object, list[Words]]:
    return (
        {"name": record.name, "hash": record.bundle, "roles": list(record.description.roles)},
        [Styled(record.name, "name"), Styled(record.bundle[:12], "dim"),
         _roles(record.description)],
    )  # fmt: skip


def _tell_unlocked(output: Output, bundle: Bundle) -> None:
    """Warn of packages that are installed in another version than the author has locked."""
    if others := unlike_lock(bundle):
        output.say(f"uwf: warning: other versions than in the lock file: {', '.join(others)}")


async def _tell_missing(output: Output, store: Store, children: Mapping[str, str]) -> None:
    """Warn of names that nothing is registered under yet: each may be added in any order."""
    for name, role in children.items():
        try:
            await lookup(store, name)
        except UnknownWorkflow as error:
            output.say(f"uwf: warning: {role} runs the workflow {name!r}, and {error}")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"


def _roles(description: WorkflowDescription) -> str:
    return " → ".join(description.roles)
