"""Commits that a cancelled task carries through."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from workflow_cas import RefMove, Store, Stored


async def commit_whole(
    store: Store, objects: Sequence[Stored], moves: Sequence[RefMove]
) -> BaseException | None:
    """Commit, whatever is cancelled meanwhile, so that memory and store agree.

    asyncio's own cancellation (Ctrl-C, `asyncio.timeout`) gets through a shield. Then the first of
    `moves` tells whether this was written; if not it is written now.

    Returns:
        The cancellation that arrived meanwhile, for the caller to raise when memory is right too.

    Raises:
        StoreError: it could not be written, and is not.
    """
    cut_off: BaseException | None = None
    with anyio.CancelScope(shield=True):
        while True:
            try:
                if cut_off is None or await store.ref(moves[0].name) != moves[0].new:
                    await store.commit(objects, moves)
                return cut_off
            except anyio.get_cancelled_exc_class() as error:
                cut_off = error
