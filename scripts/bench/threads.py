"""Measure the list of threads and the reading of one: milliseconds, warm, on a SQLite store.

    uv run python scripts/bench/threads.py [--threads N] [--steps N] [--repeats N]

The list is made of copies of the entry of one real thread: every thousandth failed, every tenth is
a child.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio

from workflow_cas import Entry, RefMove, Store, content, open_store
from workflow_execute import Engine, Limits, ShownState, read_attempts, read_summaries, read_thread
from workflow_execute.testing import in_turn
from workflow_protocol import ThreadContext, ThreadId


async def journalled(ctx: ThreadContext) -> int:
    """A turn of 100 recorded rounds."""

    async def ask() -> str:
        return "x" * 300

    for number in range(100):
        await ctx.journal.run(f"llm/{number}", ask, type=str, request=lambda: b"ask")
    return 1


async def plain(ctx: ThreadContext) -> int:
    """A turn of which nothing is recorded but the value."""
    return 1


async def fill(store: Store, count: int) -> None:
    """Put the entries of so many threads beside refs."""
    engine = Engine(store)
    thread_id = (
        await engine.start(in_turn(plain), "Check the links. " * 10, name="flow")
    ).thread_id
    (made,) = await store.entries()
    await engine.delete(thread_id)
    one = content("1")
    await store.commit([one])
    for start in range(0, count, 1000):
        moves, entries = list[RefMove](), list[Entry]()
        for number in range(start, min(start + 1000, count)):
            name = f"01M{number:023}"
            state = "failed" if number % 1000 == 500 else "completed"
            parent = f"01M{number - 1:023}" if number % 10 == 9 else ""
            above = f"parent={parent}" if parent else "top"
            ref = f"thread/{name}/head"
            data = made.data.replace(thread_id.encode(), name.encode())
            data = data.replace(b'"completed"', f'"{state}"'.encode())
            if parent:
                data = data[:-1] + f',"parent":"{parent}"}}'.encode()
            labels = (f"state={state}", f"workflow=flow-{number % 7}", above)
            moves.append(RefMove(ref, None, one.hash))
            entries.append(Entry(ref, data, labels))
        await store.commit([], moves, entries)


async def times_ms(work: Callable[[], Awaitable[object]], repeats: int) -> str:
    """Median and range, after one time that isn't counted."""
    await work()
    taken: list[float] = []
    for _ in range(repeats):
        began = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - began) * 1000)
    return f"{statistics.median(taken):7.1f} ms   ({min(taken):.1f} .. {max(taken):.1f})"


async def list_threads(store: Store, repeats: int) -> None:
    """Print how long the first page takes, by what is looked for."""

    def page(
        state: ShownState | None = None, workflow: str | None = None, *, top: bool = True
    ) -> Callable[[], Awaitable[object]]:
        return lambda: read_summaries(store, state=state, workflow=workflow, top=top, limit=50)

    wanted = {
        "all": page(top=False),
        "at the top": page(),
        "failed": page("failed"),
        "of a workflow, completed": page("completed", "flow-3"),
        "of a workflow, suspended: none": page("suspended", "flow-3"),
    }
    for what, work in wanted.items():
        print(f"first 50, {what:32} {await times_ms(work, repeats)}")


async def main(threads: int, steps: int, repeats: int) -> None:
    """Print all numbers."""
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; Python {platform.python_version()}"
    )
    with tempfile.TemporaryDirectory() as folder:
        async with open_store(Path(folder) / "list.db", durability="normal") as store:
            await fill(store, threads)
            print(f"{threads} threads")
            await list_threads(store, repeats)
        async with open_store(Path(folder) / "read.db", durability="normal") as store:
            engine = Engine(store, limits=Limits(max_steps=None))
            long = ThreadId((await engine.start(in_turn(*[plain] * steps), "p")).thread_id)
            deep = (await engine.start(in_turn(journalled), "p")).thread_id
            (step,) = (await read_thread(store, deep)).steps
            print(
                f"read_thread, {steps} steps"
                f"{await times_ms(lambda: read_thread(store, long), repeats):>40}"
            )
            print(
                "read_attempts, 100 rounds"
                f"{await times_ms(lambda: read_attempts(store, step.turn), repeats):>38}"
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--threads", type=int, default=10_000)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--repeats", type=int, default=9)
    arguments = parser.parse_args()
    anyio.run(main, arguments.threads, arguments.steps, arguments.repeats)
