"""`bundle`, `add` and `workflow …`: the workflows that can be run by name."""

from __future__ import annotations

import argparse
from pathlib import Path

from uwf.arguments._group import CommandGroup
from uwf.arguments._types import count


def add_workflow_commands(add: CommandGroup) -> None:
    """Add `bundle`, `add` and the group `workflow`."""
    sub = add(
        "bundle",
        "_workflows:bundle",
        "pack an entry script and its modules into one archive",
        example="greet.py",
    )
    sub.add_argument("entry", type=Path, help="a Python file with `run = create_workflow(…)`")
    sub.add_argument(
        "--output",
        dest="folder",
        type=Path,
        metavar="DIR",
        help="the folder for the archive (default: bundles/ in the folder of uwf)",
    )

    sub = add(
        "add",
        "_workflows:add",
        "register a bundle or an entry script under a name",
        example="greet greet.py",
    )
    sub.add_argument("name", help="the name: lower-case words, joined by -")
    sub.add_argument(
        "path", type=Path, metavar="bundle", help="an archive from `uwf bundle`, or an entry script"
    )

    _add_group(
        add.group(
            "workflow",
            "work with workflows: list, show, graph, history, rollback, prune, rm",
        )
    )


def _add_group(add: CommandGroup) -> None:
    add("list", "_workflows:list_all", "list the registered workflows", example="")

    show = add(
        "show", "_workflow_show:show", "show roles, prompts, fields and the table", example="greet"
    )
    graph = add(
        "graph", "_workflow_show:graph", "draw which role comes after which", example="greet"
    )
    for sub in (show, graph):
        sub.add_argument(
            "target",
            metavar="workflow",
            help="a registered name, or the path of an entry script or a bundle",
        )
        sub.add_argument(
            "--version",
            dest="of_version",
            metavar="VERSION",
            help="an earlier version of the name: its number, or the beginning of its hash",
        )
    graph.add_argument(
        "--mermaid", action="store_true", help="print the text of a Mermaid flowchart"
    )

    sub = add(
        "history", "_workflow_history:show_history", "list the versions of a name", example="greet"
    )
    _add_name(sub)

    sub = add(
        "rollback",
        "_workflow_history:roll_back",
        "let a name stand for an earlier version again",
        example="greet 3",
    )
    _add_name(sub)
    sub.add_argument(
        "to_version",
        nargs="?",
        metavar="version",
        help="its number, or the beginning of its hash (default: the bundle before this one)",
    )

    sub = add(
        "prune",
        "_workflow_history:prune",
        "forget the older versions of a name",
        example="greet --keep 10",
    )
    _add_name(sub)
    sub.add_argument(
        "--keep",
        type=count,
        required=True,
        metavar="N",
        help="keep the newest N versions, the present one included",
    )

    sub = add("rm", "_workflow_history:remove", "remove a name and its history", example="greet")
    _add_name(sub)
    sub.add_argument("--yes", dest="assume_yes", action="store_true", help="remove without asking")


def _add_name(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("name", help="the registered name")
