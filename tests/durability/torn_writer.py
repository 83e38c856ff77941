"""Writes a thread, says what each commit was, and kills itself: `python torn_writer.py STORE`.

Each line of its output is JSON: the size of SQLite's log after a commit, the hashes of the objects
that it brought, and the refs that it moved.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import anyio

from workflow_cas import Entry, RefMove, Store, Stored, open_store
from workflow_execute import Engine, Workflow
from workflow_execute.testing import in_turn
from workflow_protocol import Effect, ThreadContext

ROUNDS = 6
TEXT = "Zwölf Boxkämpfer 🥊 jagen 拳击手"


def writing(ledger: list[str]) -> Workflow:
    """Two turns of six rounds with two tools that write."""

    async def turn(ctx: ThreadContext) -> str:
        said = ""
        for number in range(ROUNDS):

            async def reply(number: int = number) -> str:
                return f"{number} {TEXT}"

            async def write(number: int = number) -> str:
                ledger.append(f"{len(ctx.steps)}/{number}")
                return f"written {number}"

            body = said.encode()
            said += await ctx.journal.run(
                f"llm/{number}", reply, type=str, request=lambda b=body: b
            )
            for effect in (Effect.UNSAFE, Effect.REPEATABLE):
                key = f"tool/{number}/{effect}"
                said += await ctx.journal.run(key, write, type=str, effect=effect)
        return said

    return in_turn(turn, turn, schema=str)


class _Telling:
    """A store that says each commit once it is done."""

    def __init__(self, store: Store, log: Path) -> None:
        self._store = store
        self._log = log

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        await self._store.commit(objects, moves, entries)
        line = {
            "size": self._log.stat().st_size,
            "objects": [each.hash for each in objects],
            "moves": [(move.name, move.new) for move in moves],
        }
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


async def main(path: Path) -> None:
    """Write the thread, and die with the store open."""
    async with open_store(path) as store:
        telling = cast("Store", _Telling(store, path.with_name(path.name + "-wal")))
        await Engine(telling).start(writing([]), "p")
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
