"""Measure what durability costs: bytes and CPU a round, commits a second, bytes a step.

    uv run python scripts/bench/durable.py [--directory DIR] [--rounds N] [--repeats N]

A round is what an agent's turn is made of: a model call whose request grows by the reply and by the
tool result of the round before, and a read tool. Model and tool answer at once, so all that is
measured is the engine's own. The directory decides a lot: the numbers are those of its disk.
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
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import msgspec

from workflow_cas import Durability, SqliteStore, open_store
from workflow_execute import Engine, Limits, Workflow, read_thread
from workflow_execute.testing import in_turn
from workflow_protocol import ThreadContext
from workflow_reactor import Conversation, Frame, assistant, system, user

MAX_OVERHEAD = 512
STEP_BYTES = 1024


@dataclass
class Rounds:
    """A turn of many rounds, and what it measured."""

    path: Path
    rounds: int
    reply_bytes: int
    result_bytes: int
    cpu_s: list[float] = field(default_factory=list[float])
    file_bytes: list[int] = field(default_factory=list[int])

    async def turn(self, ctx: ThreadContext) -> int:
        """Ask, read, and so on."""
        frame = Frame(b'{"model":"m","messages":[', b'],"tool_choice":"auto"}')
        conversation = Conversation([system("Read on."), user(ctx.start.prompt)])
        for number in range(self.rounds):
            began_s = time.process_time()
            reply = msgspec.json.encode({"content": os.urandom(self.reply_bytes // 2).hex()})
            result = os.urandom(self.result_bytes // 2).hex()

            async def ask(reply: bytes = reply) -> bytes:
                return reply

            async def read(result: str = result) -> tuple[bool, str]:
                return True, result

            await ctx.journal.run(
                f"llm/{number}",
                ask,
                type=bytes,
                digest=conversation.digest(frame),
                request=lambda: conversation.body(frame),
            )
            await ctx.journal.run(f"tool/{number}/0", read, type=tuple[bool, str])
            conversation.append(assistant(reply.decode()))
            conversation.append(user(result))
            self.cpu_s.append(time.process_time() - began_s)
            self.file_bytes.append(file_size(self.path))
        return self.rounds


def file_size(path: Path) -> int:
    """The pages that SQLite uses, of which the newest may still be in its log."""
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        pages, size = (
            connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "page_size")
        )
    finally:
        connection.close()
    return pages * size


async def run_rounds(directory: Path, rounds: int, reply_bytes: int, result_bytes: int) -> Rounds:
    """Run one long turn on a fresh store."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        path = Path(folder) / "store.sqlite3"
        measured = Rounds(path, rounds, reply_bytes, result_bytes)
        async with open_store(path, durability="normal") as store:
            result = await Engine(store).start(in_turn(measured.turn), "p")
            assert result.state == "completed", result.summary
        return measured


async def text(ctx: ThreadContext) -> str:
    """A step of 1 kB."""
    return os.urandom(STEP_BYTES // 2).hex()


async def one_thread(store: SqliteStore, workflow: Workflow) -> None:
    """A thread whose steps are 1 kB of text each, without a journal."""
    result = await Engine(store, limits=Limits(max_steps=None)).start(workflow, "p")
    assert result.state == "completed"


async def steps_per_s(directory: Path, threads: int, steps: int, durability: Durability) -> float:
    """The rate of committed steps, over all threads."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        workflow = in_turn(*[text] * steps, schema=str)
        async with open_store(Path(folder) / "store.sqlite3", durability=durability) as store:
            began_s = time.perf_counter()
            async with anyio.create_task_group() as tasks:
                for _ in range(threads):
                    tasks.start_soon(one_thread, store, workflow)
            return threads * steps / (time.perf_counter() - began_s)


async def step_bytes(directory: Path, steps: int) -> int:
    """The size of the file after a thread of so many steps."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        path = Path(folder) / "store.sqlite3"
        async with open_store(path, durability="normal") as store:
            await one_thread(store, in_turn(*[text] * steps, schema=str))
        return (await anyio.Path(path).stat()).st_size


async def resume_s(directory: Path, rounds: int) -> float:
    """Seconds to take a turn of so many rounds up again."""
    with tempfile.TemporaryDirectory(dir=directory) as folder:
        path = Path(folder) / "store.sqlite3"
        fail = True

        async def turn(ctx: ThreadContext) -> int:
            async def perform() -> str:
                return "x" * 200

            for number in range(rounds):
                await ctx.journal.run(f"llm/{number}", perform, type=str)
            if fail:
                raise RuntimeError
            return rounds

        async with open_store(path, durability="normal") as store:
            first = await Engine(store).start(in_turn(turn), "p")
            fail = False
            began_s = time.perf_counter()
            await Engine(store).resume(in_turn(turn), first.thread_id)
            took_s = time.perf_counter() - began_s
            assert (await read_thread(store, first.thread_id)).status.state == "completed"
        return took_s


def spread(values: Sequence[float]) -> str:
    """Median and range."""
    return f"{statistics.median(values):8,.0f}   ({min(values):,.0f} .. {max(values):,.0f})"


async def main(directory: Path, rounds: int, repeats: int) -> None:
    """Print all numbers."""
    print(
        f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f}; Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}; {repeats} repeats: median (min .. max)"
    )
    print(
        f"\nbytes beside the new ones a round (promised: at most {MAX_OVERHEAD}), over 300 rounds"
    )
    for reply_bytes, result_bytes in ((100, 100), (300, 1000), (300, 3000), (1000, 10_000)):
        run = await run_rounds(directory, 300, reply_bytes, result_bytes)
        new = reply_bytes + len('{"content":""}') + result_bytes + len('[true,""]')
        each = (run.file_bytes[-1] - run.file_bytes[49]) / (len(run.file_bytes) - 50)
        print(f"  reply {reply_bytes:5,}, result {result_bytes:6,}: {each - new:6,.0f}")
    print(f"\nfrom round 1 to {rounds}, reply 300 and result 1,000 bytes")
    run = await run_rounds(directory, rounds, 300, 1000)
    for first in (0, rounds // 4, rounds // 2, rounds - 100):
        part = run.cpu_s[first : first + 100]
        grown = run.file_bytes[first + 99] - run.file_bytes[first]
        print(
            f"  rounds {first + 1:5}-{first + 100:5}: {statistics.median(part) * 1e3:6.2f} ms CPU, "
            f"{grown / 99:6,.0f} bytes a round"
        )
    print(f"\na turn of 1,000 records is taken up again in {await resume_s(directory, 1000):.2f} s")
    print("\nsteps of 1 kB a second")
    durabilities: tuple[Durability, ...] = ("full", "normal")
    for durability in durabilities:
        for threads, steps in ((1, 300), (50, 40)):
            rates = [
                await steps_per_s(directory, threads, steps, durability) for _ in range(repeats)
            ]
            print(f"  {threads:2} at once, {durability:6} {spread(rates)}")
    sizes = {steps: await step_bytes(directory, steps) for steps in (20, 200, 1000)}
    for first, last in ((20, 200), (200, 1000)):
        growth = (sizes[last] - sizes[first]) / (last - first)
        print(f"  bytes a step from {first} to {last}: {growth:,.0f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    anyio.run(main, arguments.directory, arguments.rounds, arguments.repeats)
