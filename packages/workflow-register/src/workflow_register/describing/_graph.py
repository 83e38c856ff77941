"""The table of a workflow as a graph: its rows in their order, and which transitions lead back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from workflow_protocol import END, LIMIT, START, Edge, WorkflowDescription

Rows = Mapping[str, Sequence[Edge]]


def shown_name(name: str) -> str:
    """The name of a role as graphs have it. `START`, `END` and `LIMIT` are no names of roles."""
    return {START: "START", END: "END", LIMIT: "at a limit"}.get(name, name)


def table_rows(description: WorkflowDescription) -> dict[str, list[Edge]]:
    """The transitions by the role that they leave, both in the order of the table.

    After a role's transitions stands where its failure leads; where a limit leads is under `LIMIT`.
    """
    rows: dict[str, list[Edge]] = {}
    for edge in description.edges:
        rows.setdefault(edge.source, []).append(edge)
    return rows


def reading_order(description: WorkflowDescription) -> list[str]:
    """The roles in the order in which a reader of the table meets them, then all others."""
    met = [each for edge in _from_start(table_rows(description)) for each in edge]
    return [name for name in dict.fromkeys([*met, *description.roles]) if name in description.roles]


def back_edges(rows: Rows) -> set[tuple[str, str]]:
    """The transitions that close a loop: from a role to itself or to one that led to it.

    They are found in depth, in the order of the table, so that the same table gives the same ones.
    """
    back: set[tuple[str, str]] = set()
    done: set[str] = set()
    for root in [START, *rows]:
        path: dict[str, Iterator[Edge]] = {} if root in done else {root: iter(rows.get(root, ()))}
        while path:
            name = next(reversed(path))
            edge = next(path[name], None)
            if edge is None:
                del path[name]
                done.add(name)
            elif edge.target in path:
                back.add((name, edge.target))
            elif edge.target not in done:
                path[edge.target] = iter(rows.get(edge.target, ()))
    return back


def is_only_transition(edge: Edge, row: Sequence[Edge]) -> bool:
    """Whether the table has no other transition in that row."""
    return edge.kind != "failure" and sum(each.kind != "failure" for each in row) == 1


def _from_start(rows: Rows) -> Iterator[tuple[str, str]]:
    waiting = [START, *({LIMIT} & set(rows))]
    seen = set(waiting)
    for name in waiting:
        for edge in rows.get(name, ()):
            yield edge.source, edge.target
            if edge.target not in seen:
                seen.add(edge.target)
                waiting.append(edge.target)
