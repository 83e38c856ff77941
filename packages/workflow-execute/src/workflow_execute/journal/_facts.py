"""Facts of the long-term memory, as they are stored: one ref a fact."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from workflow_cas import RefConflict, RefMove, Store, Stored, node
from workflow_protocol import Fact

FACT = "fact"


def fact_objects(carried: Mapping[str, object]) -> dict[str, Stored | None]:
    """What an effect keeps, by its ref; `None` for what it forgets."""
    return {ref: None if fact is None else node(FACT, fact) for ref, fact in carried.items()}


async def fact_moves(store: Store, facts: Mapping[str, Stored | None]) -> list[RefMove]:
    """Where the refs of facts go, from wherever they are now."""
    moves = [
        RefMove(ref, await store.ref(ref), None if stored is None else stored.hash)
        for ref, stored in facts.items()
    ]
    return [move for move in moves if move.old != move.new]


async def write_facts(store: Store, facts: Mapping[str, Fact | None]) -> None:
    """Keep facts in the name of a person, and forget those that are `None`.

    Raises:
        StoreError: they could not be written, and are not.
    """
    stored = fact_objects(facts)
    kept = [each for each in stored.values() if each is not None]
    while True:
        with contextlib.suppress(RefConflict):  # a thread remembers under one of these keys
            await store.commit(kept, await fact_moves(store, stored))
            return


async def read_fact(store: Store, ref: str) -> Fact | None:
    """The fact of a ref, if there is one."""
    hash = await store.ref(ref)
    return None if hash is None else (await store.get(hash)).as_node().read(Fact)


async def read_facts(store: Store, prefix: str, limit: int | None = None) -> dict[str, Fact]:
    """The facts whose refs begin so, by ref, the first ones."""
    refs = list((await store.refs(prefix)).items())[:limit]
    found = await store.get_many([hash for _, hash in refs]) if refs else []
    return {ref: stored.as_node().read(Fact) for (ref, _), stored in zip(refs, found, strict=True)}
