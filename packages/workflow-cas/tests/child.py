"""Another process for the tests: `python child.py COMMAND ARGUMENT...`. It speaks in lines."""

from __future__ import annotations

import itertools
import json
import resource
import sqlite3
import sys
from pathlib import Path

import anyio

from workflow_cas import RefConflict, RefMove, StoreError, content, node, open_store
from workflow_protocol import Hash


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


async def commit_forever(path: str, name: str) -> None:
    """Say each step's number and hash once it is committed."""
    async with open_store(Path(path)) as store:
        head = await store.ref(name)
        first = (await store.get(head)).as_node().read(int) + 1 if head else 0
        say("ready")
        for number in itertools.count(first):
            text = content(f"{name} {number} " + "x" * (number * 37 % 9000))
            state = node("step", number, [text.hash, *([head] if head else [])])
            await store.commit([text, state], [RefMove(name, head, state.hash)])
            head = state.hash
            say(f"{number} {head}")


async def count(path: str, times: str) -> None:
    """Add 1 to a number that other processes count up too, so many times."""
    async with open_store(Path(path)) as store:
        say("ready")
        sys.stdin.readline()
        conflicts = 0
        for _ in range(int(times)):
            while True:
                head = await store.ref("count")
                number = (await store.get(head)).as_node().read(int) if head else 0
                bigger = node("count", number + 1, [head] if head else [])
                try:
                    await store.commit([bigger], [RefMove("count", head, bigger.hash)])
                    break
                except RefConflict:
                    conflicts += 1
        say(f"{conflicts}")


async def fill(path: str, max_bytes: str) -> None:
    """Commit until no file may grow any more; say each hash, then the error."""
    limit = int(max_bytes)
    async with open_store(Path(path)) as store:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        try:
            for number in itertools.count():
                stored = content(f"{number} " + "x" * 20_000)
                await store.commit([stored])
                say(stored.hash)
        except StoreError as error:
            say(type(error).__name__)


def lock(path: str) -> None:
    """Hold the write lock until told to go."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    say("locked")
    sys.stdin.readline()
    connection.execute("ROLLBACK")
    connection.close()
    say("free")


async def move(path: str, name: str, text: str) -> None:
    """Move a ref to a text."""
    async with open_store(Path(path)) as store:
        stored = content(text)
        await store.commit([stored], [RefMove(name, await store.ref(name), stored.hash)])


async def open_once(path: str) -> None:
    """Open a store that may not exist yet, at the same moment as others."""
    say("ready")
    sys.stdin.readline()
    async with open_store(Path(path)) as store:
        mine = content(path)
        await store.commit([mine])
        say("done")


def hashes() -> None:
    """Say the hash of each JSON value that comes in, by line."""
    for line in sys.stdin:
        say(node("value", json.loads(line), [Hash("0" * 64)]).hash)


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    match command:
        case "lock":
            lock(*arguments)
        case "hashes":
            hashes()
        case _:
            anyio.run(globals()[command], *arguments)
