"""The graph of a workflow as the text of a Mermaid flowchart."""

from __future__ import annotations

import re
from collections.abc import Sequence

from workflow_protocol import END, LIMIT, START, Edge, WorkflowDescription
from workflow_register.describing._graph import (
    back_edges,
    is_only_transition,
    reading_order,
    shown_name,
    table_rows,
)

MAX_LABEL = 80
"""A longer label is cut: a graph of paragraphs can't be read."""

# What goes out as the number of the character, which Mermaid shows as it is: quotes, tags and
# entities (#35;) mean nothing in a label then, nor does Markdown, which Mermaid reads in each label
# ("1. x" and "- x" are lists, which it refuses; "_x_" is emphasis). "direction TB" is a statement
# for its lexer wherever it stands.
# https://mermaid.js.org/syntax/flowchart.html#entity-codes-to-escape-characters
_SPECIAL = re.compile(
    r"[^\w ,:/()=?!'.+-]|^[-+]|(?<=\d)[.)](?= |$)|(?<![^\W_])_|_(?![^\W_])|(?<=direction) "
)
# What is read when numbers have become characters: formulas ($$), line ends (\\n), icons
# (fa:fa-x).
_PAIRS = re.compile(r"(?<=\$)(?=\$)|(?<=\\)(?=n)|(?<=:)(?=fa-)")
_NOTHING = "\u200b"


def mermaid_graph(description: WorkflowDescription) -> str:
    """Draw who speaks after whom as a Mermaid flowchart, in the order of the table.

    A dotted arrow closes a loop, one with a cross at its end leads on from a failure. The label of
    an arrow is the condition's name and description.
    Names and descriptions may have any characters: they show as they are.
    """
    rows = table_rows(description)
    back = back_edges(rows)
    roles = [*reading_order(description)]
    limits = [LIMIT] if LIMIT in rows else []
    targets = (edge.target for edge in description.edges)
    names = dict.fromkeys([START, *limits, *roles, *targets, END])
    ids = {name: f"n{number}" for number, name in enumerate(names)}
    lines = ["flowchart TD"]
    lines += [f"    {ids[name]}{_node(name, description)}" for name in names]
    for source, row in {START: [], **rows}.items():
        ids.setdefault(source, f"n{len(ids)}")
        lines += [
            f"    {ids[source]} {_arrow(edge, row, is_back=(source, edge.target) in back)} "
            f"{ids[edge.target]}"
            for edge in row
        ]
    return "\n".join(lines) + "\n"


def _node(name: str, description: WorkflowDescription) -> str:
    if name in {START, END, LIMIT}:
        return f'(["{shown_name(name)}"])'
    role = description.roles.get(name)
    about = f"<br/>{_label(role.description)}" if role and role.description.strip() else ""
    return f'["{_label(name)}{about}"]'


def _arrow(edge: Edge, row: Sequence[Edge], *, is_back: bool) -> str:
    if edge.kind == "failure":
        return f'{"-.-x" if is_back else "--x"}|"when it fails"|'
    line = "-.->" if is_back else "-->"
    if edge.condition is None:
        return line if is_only_transition(edge, row) else f'{line}|"otherwise"|'
    about = edge.condition_description or ""
    text = _label(edge.condition) + (f"<br/>{_label(about)}" if about.strip() else "")
    return f'{line}|"{text}"|'


def _label(text: str) -> str:
    """A text that Mermaid shows as it is, on one line."""
    flat = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    flat = flat if len(flat) <= MAX_LABEL else f"{flat[: MAX_LABEL - 1].rstrip()}…"
    flat = _PAIRS.sub(_NOTHING, flat)
    return _SPECIAL.sub(lambda found: f"#{ord(found[0])};", flat)
