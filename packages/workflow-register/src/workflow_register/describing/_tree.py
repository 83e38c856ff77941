"""The graph of a workflow as lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from workflow_protocol import LIMIT, START, Edge, WorkflowDescription
from workflow_register.describing._graph import (
    Rows,
    back_edges,
    is_only_transition,
    shown_name,
    table_rows,
)


def tree_graph(description: WorkflowDescription) -> list[str]:
    """Draw who speaks after whom, from START on, each role where it is met first.

    `→` leads on and `↺` back to a role that led here, which makes a loop. A role that stands in
    another branch already is marked with `(above)`. `✗` leads on from a role that
    failed; where a limit leads stands at the end. Under a role stand its transitions in the order
    of the table; a single one goes straight on.
    """
    return list(_lines(description))


def edge_words(edge: Edge, *, is_only: bool) -> str:
    """When a transition is taken; empty for the only one of a role, which always is."""
    if edge.kind == "failure":
        return "when it fails"
    if edge.condition is None:
        return "" if is_only else "otherwise"
    about = f" ({edge.condition_description})" if edge.condition_description else ""
    return " ".join(f"when {edge.condition}{about}".split())


def _lines(description: WorkflowDescription) -> Iterator[str]:
    rows = table_rows(description)
    back = back_edges(rows)
    drawn = {START}
    for root in (START, LIMIT) if LIMIT in rows else (START,):
        yield shown_name(root)
        yield from _branches(rows, back, drawn, root)


def _branches(
    rows: Rows, back: Container[tuple[str, str]], drawn: set[str], root: str
) -> Iterator[str]:
    # Transitions that are still to be drawn: what stands before them, and whether it is the last.
    waiting = _below(rows.get(root, ()), "")
    while waiting:
        edge, indent, is_last, is_straight = waiting.pop()
        is_new = edge.target not in drawn
        drawn.add(edge.target)
        arrow = "✗" if edge.kind == "failure" else "→"
        arrow = "↺" if (edge.source, edge.target) in back else arrow
        is_elsewhere = not is_new and arrow != "↺" and edge.target in rows
        name = f"{arrow} {shown_name(edge.target)}{' (above)' if is_elsewhere else ''}"
        row = rows.get(edge.source, ())
        words = edge_words(edge, is_only=is_only_transition(edge, row))
        if is_straight and not words:
            yield f"{indent}{name}"
            below = indent
        else:
            yield f"{indent}{'└' if is_last else '├'}{name}{f' — {words}' if words else ''}"
            below = indent + ("  " if is_last else "│ ")
        if is_new:
            waiting += _below(rows.get(edge.target, ()), below)


def _below(row: Sequence[Edge], indent: str) -> list[tuple[Edge, str, bool, bool]]:
    last = len(row) - 1
    return [(edge, indent, index == last, last == 0) for index, edge in enumerate(row)][::-1]
