"""`memory …`: the facts that threads remembered."""

from __future__ import annotations

from uwf.arguments._group import CommandGroup


def add_memory_commands(above: CommandGroup) -> None:
    """Add `memory` with its commands."""
    add = above.group("memory", "read and change what threads remembered: list, show, set, forget")
    sub = add("list", "_memory:list_", "list facts with who wrote them", example="customers/42")
    sub.add_argument("namespace", nargs="?", help="of one namespace (default: of all)")
    sub = add("show", "_memory:show", "print one fact", example="customers/42 language")
    sub.add_argument("namespace")
    sub.add_argument("key")
    sub = add("set", "_memory:set_", "keep a fact", example="customers/42 language French")
    sub.add_argument("namespace")
    sub.add_argument("key")
    sub.add_argument("value")
    sub = add("forget", "_memory:forget", "forget a fact, or a namespace", example="customers/42")
    sub.add_argument("namespace")
    sub.add_argument("key", nargs="?", help="one fact (default: all of the namespace)")
