"""Marking: which objects are reached from which."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from workflow_protocol import Hash


def reachable(roots: Iterable[Hash], links: Callable[[Hash], Sequence[Hash]]) -> set[Hash]:
    """Everything that `roots` lead to, themselves included. `links` is asked once an object."""
    found = set(roots)
    waiting = list(found)
    while waiting:
        for hash in links(waiting.pop()):
            if hash not in found:
                found.add(hash)
                waiting.append(hash)
    return found
