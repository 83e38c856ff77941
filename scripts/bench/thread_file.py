"""Measure the export and the import of one large thread: seconds, and the most memory it took.

    uv run python scripts/bench/thread_file.py [--megabytes N]

Each part is a process of its own, so that its memory is its own.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from workflow_cas import open_store
from workflow_execute import Engine, export_thread, find_thread, import_thread
from workflow_execute.testing import in_turn
from workflow_protocol import ThreadContext

OBJECT_BYTES = 100_000
TURNS = 6


async def make(folder: Path, megabytes: int) -> None:
    """Write a thread whose tools gave so much that can't be deflated."""

    async def give() -> bytes:
        return os.urandom(OBJECT_BYTES)

    async def turn(ctx: ThreadContext) -> int:
        for number in range(megabytes * 1_000_000 // OBJECT_BYTES // TURNS):
            await ctx.journal.run(f"tool/{number}", give, type=bytes)
        return 1

    async with open_store(folder / "from.db") as store:
        await Engine(store).start(in_turn(*[turn] * TURNS), "p")


async def measure(what: str, folder: Path) -> None:
    """Do one of the two, and print what it took."""
    begun_s = time.perf_counter()
    if what == "export":
        async with open_store(folder / "from.db") as store:
            await export_thread(store, await find_thread(store, "latest"), folder / "x.uwf")
    else:
        async with open_store(folder / "to.db") as store:
            await import_thread(store, folder / "x.uwf")
    took_s = time.perf_counter() - begun_s
    most_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what}: {took_s:.1f} s, {most_mb:.0f} MB of memory in all")


def main() -> None:
    """Make a thread, then measure each part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--part", nargs=2, metavar=("WHAT", "FOLDER"))
    given = parser.parse_args()
    if given.part:
        anyio.run(measure, given.part[0], Path(given.part[1]))
        return
    print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}")
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(make, Path(folder), given.megabytes)
        for what in ("export", "import"):
            subprocess.run([sys.executable, __file__, "--part", what, folder], check=True)


if __name__ == "__main__":
    main()
