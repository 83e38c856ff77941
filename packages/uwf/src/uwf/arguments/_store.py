"""`store …` and `cas …`: the store itself."""

from __future__ import annotations

from uwf.arguments._group import CommandGroup
from uwf.arguments._types import hours


def add_store_commands(above: CommandGroup) -> None:
    """Add `store` and `cas` with their commands."""
    store = above.group(
        "store", "work with the file that everything is stored in: migrate, reindex"
    )
    sub = store(
        "migrate",
        "_migrate:migrate",
        "carry the store of an older version over, and keep the old file",
        example="--dry-run",
    )
    sub.add_argument(
        "--dry-run", action="store_true", help="change nothing, only try whether it works"
    )
    store(
        "reindex",
        "_migrate:reindex",
        "mend the index of threads where `cas verify` says that it is wrong",
        example="",
    )
    add = above.group("cas", "read, check and clean the store: ls, get, verify, gc")
    sub = add("ls", "_cas_read:ls", "list the refs, and the object of each", example="thread/")
    sub.add_argument("prefix", nargs="?", default="", help="how the refs begin (default: all)")
    sub = add(
        "get",
        "_cas_read:get",
        "print an object: a content as its bytes, a node as JSON",
        example="workflow/greet",
    )
    sub.add_argument(
        "name", metavar="hash", help="a hash, its first characters (4 or more), or a ref"
    )
    add(
        "verify", "_cas:verify", "read everything in the store and list what is damaged", example=""
    )
    sub = add(
        "gc",
        "_cas:gc",
        "delete the objects that no thread and no workflow uses",
        example="--dry-run",
    )
    sub.add_argument(
        "--dry-run", action="store_true", help="delete nothing, only print how much it would be"
    )
    sub.add_argument(
        "--older-than",
        dest="older_than_h",
        type=hours,
        default=1.0,
        metavar="HOURS",
        help="keep objects that are newer than this (default: 1)",
    )
