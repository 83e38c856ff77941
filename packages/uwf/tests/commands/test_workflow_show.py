"""`uwf workflow show` and `graph`."""

import pytest

from ..cli import Cli, example

TABLE = """table
  START     → reader
  reader    → reviewer
  reviewer  → END       when approved (The reviewer approves.)
            → END       when tried_enough (The reader had its tries.)
            ↺ reader    otherwise
"""


@pytest.mark.slow
async def test_a_registered_name_an_entry_and_an_archive_show_the_same(uwf: Cli) -> None:
    entry = example("repo_facts")
    bundled = (await uwf("bundle", entry)).out.strip()
    await uwf("add", "repo-facts", entry)

    shown = [await uwf("workflow", "show", each) for each in ("repo-facts", entry, bundled)]

    registered = shown[0].out
    assert registered.startswith("repo-facts\nFind out what a repository is, with evidence")
    assert "version   1, registered 20" in registered
    assert TABLE in registered
    assert "reader — Reads the repository and states facts\n  prompt\n    You find" in registered
    assert (
        "    evidence      list of string  1 to 6 items; paths of the files that say so"
        in registered
    )
    assert "complete  conclude\n" in registered
    without_origin = [each.out.partition("bundle ")[2] for each in shown]
    assert without_origin[0] == without_origin[1] == without_origin[2]
    assert "repo_facts.py" in without_origin[0]


async def test_as_json_it_has_all_that_is_known(uwf: Cli) -> None:
    await uwf("add", "greet", example("greet"))
    (value,) = (await uwf("workflow", "show", "greet", "--json")).lines

    assert value["workflow"]["edges"] == [
        {"source": "__start__", "target": "greeter"},
        {"source": "greeter", "target": "__end__"},
    ]
    schema = value["workflow"]["roles"]["greeter"]["schema"]
    assert list(schema["properties"]) == ["greeting", "language"]
    assert (value["name"], value["version"]) == ("greet", 1)
    assert (value["entry"], value["modules"]) == ("greet.py", ["greet.py"])
    assert {"bundle", "registered_at_ms"} <= set(value)


async def test_an_earlier_version_can_be_shown(uwf: Cli) -> None:
    await uwf("add", "flow", example("greet"))
    await uwf("add", "flow", example("repo_facts"))

    old = await uwf("workflow", "show", "flow", "--version", "1")
    assert "greeter" in old.out
    graph = await uwf("workflow", "graph", "flow", "--version", "1")
    assert graph.out == "START\n→ greeter\n→ END\n"
    missing = await uwf("workflow", "show", "flow", "--version", "3")
    assert (missing.code, missing.err) == (
        1,
        "uwf: the workflow 'flow' has no version '3'; `uwf workflow history flow` lists its "
        "versions\n",
    )
    of_file = await uwf("workflow", "show", example("greet"), "--version", "1")
    assert of_file.code == 2
    assert "a file has no versions" in of_file.err


async def test_a_graph_is_a_tree_or_the_text_of_a_flowchart(uwf: Cli) -> None:
    tree = await uwf("workflow", "graph", example("repo_facts"))
    assert tree.out.splitlines() == [
        "START",
        "→ reader",
        "→ reviewer",
        "├→ END — when approved (The reviewer approves.)",
        "├→ END — when tried_enough (The reader had its tries.)",
        "└↺ reader — otherwise",
    ]
    chart = await uwf("workflow", "graph", example("repo_facts"), "--mermaid")
    assert chart.out.startswith("flowchart TD\n")
    assert '    n2 -.->|"otherwise"| n1\n' in chart.out
    (value,) = (await uwf("workflow", "graph", example("repo_facts"), "--json")).lines
    assert value["mermaid"] == chart.out


async def test_a_name_that_is_not_there_is_one_line(uwf: Cli) -> None:
    commands = ["show", "graph", "history", "rollback", "rm"]
    without_store = [await uwf("workflow", command, "great") for command in commands]
    await uwf("add", "greet", example("greet"))
    with_store = [await uwf("workflow", command, "great") for command in commands]
    for done in [*without_store, *with_store]:
        assert (done.code, done.out) == (1, "")
        assert len(done.err.splitlines()) == 1
        assert "no workflow is registered as 'great'" in done.err
    assert all("did you mean 'greet'?" in done.err for done in with_store)


async def test_on_a_terminal_long_texts_are_broken_between_words(uwf: Cli) -> None:
    drawn = await uwf.converse("workflow", "show", example("repo_facts"), turns=[], COLUMNS="60")
    assert "    You find out facts about the repository in the\n    workspace. List" in drawn
    assert max(map(len, drawn.partition("reader —")[2].splitlines())) <= 60


HOSTILE = """
from workflow_execute import create_workflow
from workflow_protocol import (
    END, START, AdapterBinding, Condition, RoleDefinition, WorkflowDefinition, when,
)

EVIL = "\\x1b[2J\\x07<script>\\n- `x`\\u202e"
role = RoleDefinition(name="end", description=EVIL, system_prompt=EVIL, schema=str)
odd = Condition(name=EVIL, description=EVIL, check=lambda ctx: True)
run = create_workflow(
    WorkflowDefinition(
        description=EVIL,
        table={START: role, role: [when(odd, END), role]},
    ),
    AdapterBinding(lambda prompt, schema: None),
)
"""


async def test_texts_that_steer_a_terminal_are_escaped(uwf: Cli) -> None:
    entry = uwf.write("hostile.py", HOSTILE)
    for words in (["show"], ["graph"], ["graph", "--mermaid"]):
        done = await uwf("workflow", words[0], entry, *words[1:])
        assert done.code == 0, done.err
        assert not {"\x1b", "\x07", "\u202e"} & set(done.out)
    assert "<script>" not in done.out
