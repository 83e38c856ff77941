"""Facts of the long-term memory, as they are stored: one ref a fact."""

from __future__ import annotations

from collections.abc import Mapping

from workflow_cas import Store, Stored, node
from workflow_protocol import Fact

FACT = "fact"


def fact_objects(carried: Mapping[str, object]) -> dict[str, Stored | None]:
    """What an effect keeps, by its ref; `None` for what it forgets."""
    return {ref: None if fact is None else node(FACT, fact) for ref, fact in carried.items()}


async def read_fact(store: Store, ref: str) -> Fact | None:
    """The fact of a ref, if there is one."""
    hash = await store.ref(ref)
    return None if hash is None else (await store.get(hash)).as_node().read(Fact)


async def read_facts(store: Store, prefix: str, limit: int | None = None) -> dict[str, Fact]:
    """The facts whose refs begin so, by ref, the first ones."""
    refs = list((await store.refs(prefix)).items())[:limit]
    found = await store.get_many([hash for _, hash in refs]) if refs else []
    return {ref: stored.as_node().read(Fact) for (ref, _), stored in zip(refs, found, strict=True)}
