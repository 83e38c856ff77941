"""Measure what `shell_exec` adds to a command: its supervisor, with and without the sandbox.

    uv run python scripts/bench/shell.py [--repeats N]

The command is `true`. What is printed are the wall and the children's CPU milliseconds of a call,
beside what the parts take alone: the command, an interpreter, and bubblewrap.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio

from workflow_agent_react import workspace_tools
from workflow_protocol import StartStep, ThreadContext, ThreadId
from workflow_reactor import make_call

BWRAP = [
    "bwrap",
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "true",
]


async def main(repeats: int) -> None:
    """Print all of it, interleaved, so that a busy machine is unfair to all alike."""
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, true, ms:")
    with tempfile.TemporaryDirectory() as folder:
        start = StartStep(prompt="", workspace=Path(folder), timestamp_ms=0)
        ctx = ThreadContext(thread_id=ThreadId("T"), start=start)
        call = make_call("shell_exec", {"command": "true"}, round=0, index=0)
        runs: dict[str, Callable[[], Awaitable[object]]] = {
            "true": partial(anyio.run_process, ["true"]),
            "python -I -S": partial(anyio.run_process, [sys.executable, "-I", "-S", "-c", ""]),
            "bwrap": partial(anyio.run_process, BWRAP),
            "shell_exec": partial(workspace_tools(sandbox="off").handler, call, ctx),
            "shell_exec, sandbox": partial(workspace_tools(sandbox="require").handler, call, ctx),
        }
        wall: dict[str, list[float]] = {name: [] for name in runs}
        cpu: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(repeats):
            for name, run in runs.items():
                began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
                await run()
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                wall[name].append((time.perf_counter() - began) * 1000)
                seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
                cpu[name].append(seconds * 1000)
    for name in runs:
        print(f"  {name:22}wall {spread(wall[name])}   CPU {spread(cpu[name])}")


def spread(times: list[float]) -> str:
    """Median with the quartiles."""
    low, middle, high = statistics.quantiles(times, n=4)
    return f"{middle:6.1f}  ({low:.1f} … {high:.1f})"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=50)
    anyio.run(main, parser.parse_args().repeats)
