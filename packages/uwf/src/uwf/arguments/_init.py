"""`init`: a workflow of one's own to begin with."""

from __future__ import annotations

from pathlib import Path

from uwf.arguments._group import CommandGroup


def add_init_command(add: CommandGroup) -> None:
    """Add `init`."""
    sub = add(
        "init",
        "_init:init",
        "write an entry script and a test for it, from a template",
        example="mend-it --template develop",
    )
    sub.add_argument("name", help="the workflow's name: lower-case words, joined by -")
    sub.add_argument(
        "--template",
        default="minimal",
        choices=["minimal", "develop", "solve-issue"],
        help="what the workflow does (default: minimal)",
    )
    sub.add_argument(
        "--output",
        dest="folder",
        type=Path,
        metavar="DIR",
        help="the folder for the two files (default: the name, in the current folder)",
    )
