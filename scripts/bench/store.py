"""Measure the SQLite store: commits a second, bytes a step, and how long looking at it all takes.

    uv run python scripts/bench/store.py [--directory DIR] [--repeats N]

A step is what a thread commits: 1 kB of content that doesn't compress, a `state` node that refers
to it and to the step before, and the move of the thread's head. The directory decides a lot: the
numbers are those of its disk.
"""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio

from workflow_cas import Durability, RefMove, Store, Stored, content, node, open_store

STEP_BYTES = 1024
ALONE = 300
THREADS, STEPS_EACH = 50, 60
SIZES = (20, 50, 100, 200, 500, 2000)


def step(number: int, parent: Stored | None) -> tuple[Stored, Stored]:
    """The two objects of one step."""
    text = content(os.urandom(STEP_BYTES // 2).hex())
    payload = {"role": "coder", "step": number, "timestamp_ms": 1767225600000 + number}
    return text, node("state", payload, [text.hash, *([parent.hash] if parent else [])])


async def run_thread(store: Store, name: str, steps: int) -> None:
    """Commit the steps of one thread, one after the other."""
    head: Stored | None = None
    for number in range(steps):
        text, state = step(number, head)
        move = RefMove(f"thread/{name}/head", head.hash if head else None, state.hash)
        await store.commit([text, state], [move])
        head = state


async def commits_per_s(directory: Path, threads: int, steps: int, durability: Durability) -> float:
    """The rate with `threads` tasks that commit at once, on a fresh store."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        async with open_store(Path(folder) / "store.db", durability=durability) as store:
            await run_thread(store, "warm-up", 5)
            began = time.perf_counter()
            async with anyio.create_task_group() as tasks:
                for index in range(threads):
                    tasks.start_soon(run_thread, store, str(index), steps)
            return threads * steps / (time.perf_counter() - began)


async def file_bytes(directory: Path, steps: int) -> int:
    """The size of the file after so many steps, once the store is closed and the log is in it."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        path = Path(folder) / "store.db"
        async with open_store(path, durability="normal") as store:
            await run_thread(store, "one", steps)
        return (await anyio.Path(path).stat()).st_size


async def whole_store_s(directory: Path, threads: int, steps: int) -> tuple[float, float, float]:
    """Seconds for a verification, a dry and a real garbage collection of threads x steps."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        async with open_store(Path(folder) / "store.db", durability="normal") as store:
            async with anyio.create_task_group() as tasks:
                for index in range(threads):
                    tasks.start_soon(run_thread, store, str(index), steps)
            heads = await store.refs()
            await store.commit([], [RefMove(name, heads[name], None) for name in list(heads)[::2]])
            times = [time.perf_counter()]
            assert (await store.verify()).ok
            times.append(time.perf_counter())
            for dry_run in (True, False):
                await store.collect_garbage(keep_newer_than_s=0, dry_run=dry_run)
                times.append(time.perf_counter())
            return times[1] - times[0], times[2] - times[1], times[3] - times[2]


def fsync_per_s(directory: Path) -> float:
    """What the disk can do: 4 kB appended and synced, one after the other."""
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        began = time.perf_counter()
        for _ in range(ALONE):
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
        return ALONE / (time.perf_counter() - began)


def spread(values: Sequence[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):8,.0f}   ({min(values):,.0f} .. {max(values):,.0f})"


async def main(directory: Path, repeats: int) -> None:
    """Print all numbers."""
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}; Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}; {repeats} repeats: median (min .. max)"
    )
    print(
        f"fsync/s of the disk           {spread([fsync_per_s(directory) for _ in range(repeats)])}"
    )
    durabilities: tuple[Durability, ...] = ("full", "normal")
    for durability in durabilities:
        for threads, steps in ((1, ALONE), (THREADS, STEPS_EACH)):
            rates = [
                await commits_per_s(directory, threads, steps, durability) for _ in range(repeats)
            ]
            print(f"commits/s, {threads:2} at once, {durability:6} {spread(rates)}")
    sizes = {steps: await file_bytes(directory, steps) for steps in SIZES}
    for steps, size in sizes.items():
        print(f"{steps:5} steps of 1 kB: {size:9,} bytes, {size / steps:6,.0f} a step")
    for first, last in ((20, 200), (200, 2000)):
        growth = (sizes[last] - sizes[first]) / (last - first)
        print(f"bytes a step from {first} to {last}: {growth:,.0f}")
    verify_s, dry_s, collect_s = await whole_store_s(directory, 50, 200)
    print(
        f"10,000 steps (20,000 objects): verify {verify_s:.2f} s, dry garbage collection "
        f"{dry_s:.2f} s, real one that removes half {collect_s:.2f} s"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    anyio.run(main, arguments.directory, arguments.repeats)
