"""The graph of a table: as a tree, as Mermaid, and what leads back."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_protocol import (
    END,
    START,
    Edge,
    RoleDefinition,
    RoleDescription,
    WorkflowDefinition,
    WorkflowDescription,
    describe,
)
from workflow_register import (
    back_edges,
    mermaid_graph,
    reading_order,
    table_rows,
    tree_graph,
)

Row = tuple[str, str, str | None]


def described(*rows: Row, about: str = "") -> WorkflowDescription:
    edges = [
        Edge(source=a, target=b, condition=c, condition_description=c and (about or f"it is {c}"))
        for a, b, c in rows
    ]
    names = dict.fromkeys(each for edge in edges for each in (edge.source, edge.target))
    roles = {
        name: RoleDescription(description=f"the {name}", system_prompt="p", schema={})
        for name in names
        if name not in {START, END}
    }
    return WorkflowDescription(description="d", roles=roles, edges=edges)


DEVELOP = described(
    (START, "planner", None),
    ("planner", "coder", None),
    ("coder", "reviewer", "done"),
    ("coder", "coder", None),
    ("reviewer", "committer", "approved"),
    ("reviewer", "coder", "fixable"),
    ("reviewer", END, None),
    ("committer", END, None),
)


def test_a_tree_has_the_order_of_the_table_and_marks_loops() -> None:
    assert "\n".join(tree_graph(DEVELOP)) == "\n".join(
        [
            "START",
            "→ planner",
            "→ coder",
            "├→ reviewer — when done (it is done)",
            "│ ├→ committer — when approved (it is approved)",
            "│ │ → END",
            "│ ├↺ coder — when fixable (it is fixable)",
            "│ └→ END — otherwise",
            "└↺ coder — otherwise",
        ]
    )


def test_a_role_that_two_branches_lead_to_is_drawn_once() -> None:
    rows = [(START, "a", "x"), (START, "b", None), ("a", "c", None), ("b", "c", None)]
    lines = tree_graph(described(*rows, ("c", END, None)))
    assert lines == [
        "START",
        "├→ a — when x (it is x)",
        "│ → c",
        "│ → END",
        "└→ b — otherwise",
        "  → c (above)",
    ]


def test_a_flowchart_has_the_same_order_and_dotted_arrows_for_loops() -> None:
    assert mermaid_graph(DEVELOP) == (
        "flowchart TD\n"
        '    n0(["START"])\n'
        '    n1["planner<br/>the planner"]\n'
        '    n2["coder<br/>the coder"]\n'
        '    n3["reviewer<br/>the reviewer"]\n'
        '    n4["committer<br/>the committer"]\n'
        '    n5(["END"])\n'
        "    n0 --> n1\n"
        "    n1 --> n2\n"
        '    n2 -->|"done<br/>it is done"| n3\n'
        '    n2 -.->|"otherwise"| n2\n'
        '    n3 -->|"approved<br/>it is approved"| n4\n'
        '    n3 -.->|"fixable<br/>it is fixable"| n2\n'
        '    n3 -->|"otherwise"| n5\n'
        "    n4 --> n5\n"
    )


HOSTILE = [
    ('say "hi"', "say #34;hi#34;"),
    ("<b>x</b>", "#60;b#62;x#60;/b#62;"),
    ("1. first", "1#46; first"),
    ("- item", "#45; item"),
    ("#35; &amp;", "#35;35#59; #38;amp#59;"),
    ("`code` | [x] {y}", "#96;code#96; #124; #91;x#93; #123;y#125;"),
    ("_x_ a_b", "#95;x#95; a_b"),
    ("direction TB", "direction#32;TB"),
    ("$$x$$", "#36;#8203;#36;x#36;#8203;#36;"),
    ("two\nlines\x1b[0m", "two lines #91;0m"),
    ("日本 é", "日本 é"),
    ("x" * 200, f"{'x' * 79}#8230;"),
]


@pytest.mark.parametrize(("text", "label"), HOSTILE)
def test_what_means_something_to_mermaid_goes_out_as_a_number(text: str, label: str) -> None:
    chart = mermaid_graph(described((START, text, text), (text, END, None), about=text))
    assert f'["{label}<br/>' in chart
    assert f'|"{label}<br/>{label}"|' in chart


NODE = r"""n\d+(\(\["[A-Z]+"\]\)|\["[^"]*"\])"""
ARROW = r"""n\d+ (-->|-\.->)(\|"[^"]*"\|)? n\d+"""
LINE = re.compile(f"    ({NODE}|{ARROW})")


@given(st.lists(st.tuples(st.text(), st.text(), st.none() | st.text()), max_size=8))
def test_any_table_gives_a_graph_of_whole_lines(rows: list[Row]) -> None:
    description = described((START, "a", None), *rows)
    first, *lines = mermaid_graph(description).removesuffix("\n").split("\n")
    assert first == "flowchart TD"
    for line in lines:
        assert LINE.fullmatch(line), line
    assert len(lines) >= len(description.edges)
    assert tree_graph(description)[0] == "START"


NAMES = st.sampled_from(["a", "b", "c", "d", "e", END])


@given(st.lists(st.tuples(NAMES.filter(lambda each: each != END), NAMES, st.none()), max_size=14))
def test_without_its_back_edges_a_graph_has_no_loop(rows: list[Row]) -> None:
    description = described((START, "a", None), *rows)
    table = table_rows(description)
    back = back_edges(table)
    left = {
        source: [edge.target for edge in row if (source, edge.target) not in back]
        for source, row in table.items()
    }
    while ends := [name for name in left if not any(each in left for each in left[name])]:
        for name in ends:
            del left[name]
    assert not left
    assert set(reading_order(description)) == set(description.roles)


def test_a_chain_of_thousands_of_roles_is_drawn() -> None:
    names = [START, *(f"r{number}" for number in range(3_000)), END]
    pairs = pairwise(names)
    description = described(*((a, b, None) for a, b in pairs))
    assert tree_graph(description)[-1] == "→ END"
    assert len(mermaid_graph(description).splitlines()) == 1 + 3_002 + 3_001


def test_ways_from_failures_and_limits_are_edges_of_their_own_kind() -> None:
    writer, critic, helper, boss = (
        RoleDefinition(name=name, system_prompt="Do.", schema=str)
        for name in ("writer", "critic", "helper", "boss")
    )
    described = describe(
        WorkflowDefinition(
            table={START: writer, writer: critic, critic: END, helper: critic, boss: END},
            on_failure={writer: helper, critic: writer},
            at_limit=boss,
        )
    )

    assert tree_graph(described) == [
        "START",
        "→ writer",
        "├→ critic",
        "│ ├→ END",
        "│ └↺ writer — when it fails",
        "└✗ helper — when it fails",
        "  → critic (above)",
        "at a limit",
        "→ boss",
        "→ END",
    ]
    chart = mermaid_graph(described).splitlines()
    assert '    n1(["at a limit"])' in chart
    assert '    n2 --x|"when it fails"| n5' in chart
    assert '    n4 -.-x|"when it fails"| n2' in chart
    assert "    n1 --> n3" in chart
