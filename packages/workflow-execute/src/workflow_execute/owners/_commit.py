"""Commits that a cancelled task carries through."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from workflow_cas import Entry, RefMove, Store, Stored


async def commit_shielded(
    store: Store,
    objects: Sequence[Stored],
    moves: Sequence[RefMove],
    entries: Sequence[Entry] = (),
) -> BaseException | None:
    """Commit even if this is cancelled meanwhile, so that memory and store agree.

    asyncio's own cancellation (Ctrl-C, `asyncio.timeout`) gets through a shield. Then the first of
    `moves` tells whether this was written; if not it is written now.

    Returns:
        The cancellation that arrived meanwhile, for the caller to raise when memory is right too.

    Raises:
        StoreError: it could not be written, and is not.
    """
    cancelled: BaseException | None = None
    with anyio.CancelScope(shield=True):
        while True:
            try:
                if cancelled is None or await store.ref(moves[0].name) != moves[0].new:
                    await store.commit(objects, moves, entries)
                return cancelled
            except anyio.get_cancelled_exc_class() as error:
                cancelled = error
