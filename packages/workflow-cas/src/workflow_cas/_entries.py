"""Entries: what can be searched of the refs, without reading what they lead to."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from workflow_cas._objects import RefMove


class Entry(msgspec.Struct, frozen=True):
    """What is searched and shown of one ref, such as the summary of a thread.

    It is written by a commit that moves the ref, or checks where it is, and goes with the ref. So
    it can't say what is no longer so, and nobody writes it who hasn't seen the ref as it is.
    """

    ref: str
    """The name of the ref. Entries are sorted by it: put something that grows with time into it."""
    data: bytes
    """What the entry says, in whatever form. Objects that it names are not kept for its sake."""
    labels: tuple[str, ...] = ()
    """What it is found by, such as `state=failed`: short lines, their order doesn't matter."""


def check_entries(entries: Sequence[Entry], moves: Sequence[RefMove]) -> None:
    """Refuse entries without a move of their ref, two of one ref, and labels that aren't lines.

    Raises:
        ValueError: says which.
    """
    if not entries:
        return
    there = {move.name for move in moves if move.new is not None}
    for entry in entries:
        if entry.ref not in there:
            raise ValueError(
                f"an entry for {entry.ref!r} needs a move of this ref in the same commit; "
                "the same `old` and `new` will do"
            )
        for label in entry.labels:
            if not label or not label.isprintable():
                raise ValueError(f"{label!r} can't be a label: use one line of printable text")
            label.encode()
    if len({entry.ref for entry in entries}) != len(entries):
        raise ValueError("one commit has two entries for one ref")


def is_found(
    entry: Entry,
    *,
    labels: Sequence[str],
    any_of: Sequence[str] | None,
    first: str | None,
    before: str | None,
) -> bool:
    """Whether an entry is among those that `Store.entries` gives for these arguments."""
    return (
        set(labels).issubset(entry.labels)
        and (any_of is None or not set(any_of).isdisjoint(entry.labels))
        and (first is None or entry.ref >= first)
        and (before is None or entry.ref < before)
    )
