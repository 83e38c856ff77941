"""`workflow show|graph`: what a workflow is, without running any of its code here."""

from __future__ import annotations

import shutil
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from uwf._errors import UsageError
from uwf._store import open_existing
from uwf.commands._workflows import open_bundle, workflow_path
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output, age
from uwf.terminal._style import Styled
from workflow_cas import Store, StoreError
from workflow_protocol import END, LIMIT, START, Edge, Hash, RoleDescription, WorkflowDescription
from workflow_register import (
    BundleCorrupt,
    SchemaField,
    UnknownWorkflow,
    WorkflowRecord,
    back_edges,
    check_bundle,
    find_home,
    find_version,
    is_only_transition,
    lookup,
    mermaid_graph,
    read_bundle,
    reading_order,
    schema_fields,
    store_path,
    table_rows,
    tree_graph,
)

Line = list[str | Styled]

LEAST_WIDTH = 20
"""A text in less room is left to the terminal to break."""


class ShownWorkflow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that is shown of a workflow, and its form as JSON."""

    name: str
    bundle: Hash
    entry: str
    modules: list[str] | None
    """`None` where the archive can't be read."""
    workflow: WorkflowDescription
    version: int | None = None
    registered_at_ms: int | None = None


def show(output: Output, target: str, *, of_version: str | None) -> int:
    """Show a workflow's roles with their prompts and fields, its table and what it is made of."""
    found = find_workflow(target, of_version)
    lines: Line = []
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in _show_lines(found, width):
        lines += [*line, "\n"]
    output.data(found, lines[:-1])
    return 0


def graph(output: Output, target: str, *, of_version: str | None, mermaid: bool) -> int:
    """Draw who speaks after whom, as a tree or as the text of a Mermaid flowchart."""
    found = find_workflow(target, of_version)
    chart = mermaid_graph(found.workflow)
    text = chart.rstrip("\n") if mermaid else "\n".join(tree_graph(found.workflow))
    output.data({"name": found.name, "edges": found.workflow.edges, "mermaid": chart}, text)
    return 0


def find_workflow(target: str, version: str | None = None) -> ShownWorkflow:
    """The workflow of a registered name, an entry script or an archive.

    Raises:
        UsageError: a version of a file was asked for, which has none.
    """
    path = workflow_path(target)
    if path is None:
        return run_async(lambda: _registered(target, version))
    if version is not None:
        raise UsageError("--version goes with a registered name; a file has no versions")
    return run_async(lambda: _from_file(path))


async def _from_file(path: Path) -> ShownWorkflow:
    bundle = open_bundle(path)
    return ShownWorkflow(
        name=Path(bundle.manifest.entry).stem,
        bundle=bundle.hash,
        entry=bundle.manifest.entry,
        modules=list(bundle.manifest.modules),
        workflow=(await check_bundle(bundle)).workflow,
    )


async def _registered(name: str, version: str | None) -> ShownWorkflow:
    home = find_home()
    if not store_path(home).exists():
        raise UnknownWorkflow(name, [], [])
    async with open_existing(home) as store:
        record = await (find_version(store, name, version) if version else lookup(store, name))
        return ShownWorkflow(
            name=record.name,
            bundle=record.bundle,
            entry=record.entry,
            modules=await _modules(store, record),
            workflow=record.description,
            version=record.version,
            registered_at_ms=record.registered_at_ms,
        )


async def _modules(store: Store, record: WorkflowRecord) -> list[str] | None:
    try:
        stored = await store.get(record.content)
        return list(read_bundle(stored.data, expected=record.bundle).manifest.modules)
    except (StoreError, BundleCorrupt):
        return None


def _show_lines(found: ShownWorkflow, width: int | None) -> Iterator[Line]:
    """The lines for people; in a terminal of that width, long texts keep their indentation."""
    yield [Styled(found.name, "strong")]
    if about := found.workflow.description.strip():
        yield [about]
    yield []
    yield from _origin_lines(found)
    yield []
    yield [Styled("table", "dim")]
    yield from _table_lines(found.workflow)
    for name in reading_order(found.workflow):
        yield []
        yield from _role_lines(name, found.workflow.roles[name], width)


def _origin_lines(found: ShownWorkflow) -> Iterator[Line]:
    if found.version is not None and found.registered_at_ms is not None:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.registered_at_ms / 1000))
        ago = age(found.registered_at_ms, time.time_ns() // 1_000_000)
        yield [Styled("version   ", "dim"), f"{found.version}, registered {when} ({ago})"]
    yield [Styled("bundle    ", "dim"), found.bundle]
    yield [Styled("entry     ", "dim"), found.entry]
    modules = found.modules
    damaged: list[str | Styled] = [Styled("the archive can't be read; see `uwf cas verify`", "bad")]
    yield [Styled("modules   ", "dim"), *([", ".join(modules)] if modules is not None else damaged)]
    yield [Styled("complete  ", "dim"), found.workflow.complete]


def _table_lines(workflow: WorkflowDescription) -> Iterator[Line]:
    rows = table_rows(workflow)
    back = back_edges(rows)
    names = {START: "START", END: "END", LIMIT: "at a limit"}
    every = [*rows, *(edge.target for row in rows.values() for edge in row)]
    width = max((len(names.get(each, each)) for each in every), default=0)
    for source, row in rows.items():
        for number, edge in enumerate(row):
            first = names.get(source, source) if number == 0 else ""
            arrow = "✗" if edge.kind == "failure" else "→"
            arrow = "↺" if (source, edge.target) in back else arrow
            target = names.get(edge.target, edge.target)
            words = _when(edge, is_only=is_only_transition(edge, row))
            yield [
                f"  {first:<{width}}  {arrow} ",
                Styled(f"{target:<{width if words else 0}}", "name"),
                *words,
            ]


def _when(edge: Edge, *, is_only: bool) -> Line:
    if edge.kind == "failure":
        return [Styled("  when it fails", "bad")]
    if edge.condition is None:
        return [] if is_only else [Styled("  otherwise", "dim")]
    about = " ".join((edge.condition_description or "").split())
    return [f"  when {edge.condition}", *([Styled(f" ({about})", "dim")] if about else [])]


def _role_lines(name: str, role: RoleDescription, width: int | None) -> Iterator[Line]:
    about = " ".join(role.description.split())
    yield [Styled(name, "name"), *([f" — {about}"] if about else [])]
    yield [Styled("  prompt", "dim")]
    for line in role.system_prompt.strip().splitlines():
        for part in _wrap(line, width, 4):
            yield [f"    {part}".rstrip()]
    yield [Styled("  value", "dim")]
    fields = schema_fields(role.schema)
    paths = max((len(each.path) for each in fields), default=0)
    types = min(max((len(_kind(each)) for each in fields), default=0), 30)
    for each in fields:
        head = f"    {each.path:<{paths}}  {_kind(each):<{types}}  "
        more = "; ".join(part for part in (each.rules, each.description) if part)
        first, *rest = _wrap(more, width, len(head))
        yield [head, Styled(first, "dim")] if first else [head.rstrip()]
        yield from ([" " * len(head), Styled(part, "dim")] for part in rest)


def _kind(field: SchemaField) -> str:
    return field.type if field.required else f"{field.type}, optional"


def _wrap(text: str, width: int | None, indent: int) -> list[str]:
    """A text in lines that fit beside an indentation, one at least."""
    if width is None or width - indent < LEAST_WIDTH:
        return [text]
    return textwrap.wrap(text, width - indent) or [""]
