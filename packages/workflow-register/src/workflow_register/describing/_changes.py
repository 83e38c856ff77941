"""What one version of a workflow changed against the one before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import msgspec

from workflow_protocol import Edge, RoleDescription, WorkflowDescription
from workflow_register.describing._fields import SchemaField, schema_fields
from workflow_register.describing._graph import shown_name, table_rows


def describe_changes(before: WorkflowDescription, after: WorkflowDescription) -> list[str]:
    """Say what changed in roles, fields and transitions, one line for each change.

    The lines begin with `+`, `-` or `~` for what came, went or is another now.
    """
    return [
        *_value("description", before.description, after.description),
        *_role_changes(before.roles, after.roles),
        *_table_changes(before, after),
        *_value("complete", before.complete, after.complete),
    ]


def module_changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> list[str]:
    """Say which files of a bundle came, went or changed, as `describe_changes` does."""
    return [
        *(f"+ module {name}" for name in after if name not in before),
        *(f"- module {name}" for name in before if name not in after),
        *(f"~ module {name}" for name in after if name in before and after[name] != before[name]),
    ]


def _value(what: str, before: str, after: str) -> Iterator[str]:
    if before != after:
        yield f"~ {what}: {_flat(before)} → {_flat(after)}"


def _role_changes(
    before: Mapping[str, RoleDescription], after: Mapping[str, RoleDescription]
) -> Iterator[str]:
    yield from (f"+ role {name}" for name in after if name not in before)
    yield from (f"- role {name}" for name in before if name not in after)
    for name in after:
        if name in before:
            yield from _one_role(f"role {name}", before[name], after[name])


def _one_role(where: str, before: RoleDescription, after: RoleDescription) -> Iterator[str]:
    yield from _value(f"{where}: description", before.description, after.description)
    if before.system_prompt != after.system_prompt:
        old, new = (len(each.system_prompt) for each in (before, after))
        yield f"~ {where}: prompt ({old} → {new} characters)"
    if before.schema != after.schema:
        lines = list(
            _field_changes(where, schema_fields(before.schema), schema_fields(after.schema))
        )
        yield from lines or [f"~ {where}: schema"]


def _field_changes(
    where: str, before: list[SchemaField], after: list[SchemaField]
) -> Iterator[str]:
    old, new = ({each.path: each for each in fields} for fields in (before, after))
    yield from (f"+ {where}: field {path or 'value'}" for path in new if path not in old)
    yield from (f"- {where}: field {path or 'value'}" for path in old if path not in new)
    for path, field in new.items():
        if path in old and field != old[path]:
            yield f"~ {where}: field {path or 'value'}: {_differing(old[path], field)}"


def _differing(before: SchemaField, after: SchemaField) -> str:
    return ", ".join(
        f"{name} {_flat(str(old)) or 'none'} → {_flat(str(new)) or 'none'}"
        for name in msgspec.structs.asdict(after)
        if (old := getattr(before, name)) != (new := getattr(after, name))
    )


def _table_changes(before: WorkflowDescription, after: WorkflowDescription) -> Iterator[str]:
    old, new = ([_edge(each) for each in side.edges] for side in (before, after))
    came, went = Counter(new) - Counter(old), Counter(old) - Counter(new)
    yield from (f"+ {each}" for each in came.elements())
    yield from (f"- {each}" for each in went.elements())
    rows_before, rows_after = table_rows(before), table_rows(after)
    for source, row in rows_after.items():
        now, then = ([_edge(each) for each in side] for side in (row, rows_before.get(source, [])))
        if now != then and sorted(now) == sorted(then):
            yield f"~ {shown_name(source)}: the order of its transitions"


def _edge(edge: Edge) -> str:
    about = f" ({_flat(edge.condition_description)})" if edge.condition_description else ""
    when = f" when {edge.condition}{about}" if edge.condition is not None else ""
    failed = " when it fails" if edge.kind == "failure" else ""
    return f"{shown_name(edge.source)} → {shown_name(edge.target)}{when}{failed}"


def _flat(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= 80 else f"{flat[:79].rstrip()}…"
