"""Runs eight threads in one process, or takes them up where an earlier process died.

python many.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import anyio
from scenario import Deadly, Traces, workflow

from workflow_cas import SqliteStore, open_store
from workflow_execute import Asking, Engine, list_threads, read_thread
from workflow_protocol import Answer, ThreadId

THREADS = 8


async def asker(asking: Asking) -> Answer:
    """Say yes."""
    return Answer(approved=True)


async def one(store: SqliteStore, folder: Path, number: int, known: ThreadId | None) -> None:
    """Run one thread to its end."""
    traces = Traces(folder / str(number))
    traces.folder.mkdir(exist_ok=True)
    engine = Engine(store, locks=folder / "locks", asker=asker)
    runs = workflow(traces, Deadly())
    if known is None:
        done = await engine.start(runs, "Leave traces.", workspace=folder, name=str(number))
    elif (await read_thread(store, known)).status.state == "completed":
        return
    else:
        done = await engine.resume(runs, known)
    if done.state != "completed":
        raise RuntimeError(f"the thread is {done.state}: {done.summary}") from done.error


async def main(folder: Path) -> None:
    """Run all of them at once."""
    async with open_store(folder / "store.sqlite3") as store:
        known: dict[str, ThreadId] = {}
        for thread_id in await list_threads(store):
            known[(await read_thread(store, thread_id)).start.workflow] = thread_id
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        async with anyio.create_task_group() as tasks:
            for number in range(THREADS):
                tasks.start_soon(one, store, folder, number, known.get(str(number)))


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
