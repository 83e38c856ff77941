"""`bundle`, `add` and `list`: the workflows that can be run by name."""

from __future__ import annotations

from pathlib import Path

from uwf.arguments._group import CommandGroup


def add_workflow_commands(add: CommandGroup) -> None:
    """Add `bundle`, `add` and `list`."""
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

    add("list", "_workflows:list_all", "list the registered workflows", example="")
