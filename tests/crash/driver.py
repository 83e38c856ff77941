"""Kills a child at each boundary, resumes in another, and looks at what they left.

    python driver.py FOLDER PART PARTS [--twice]

Children are forked from this process, which has imported everything and runs no loop itself.
Writes one JSON line: the number of points, and what was wrong at which of them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import anyio
from scenario import CHARGES, FINAL, PLANS, PUTS, ROUNDS, Deadly, Traces, engine, workflow

from workflow_cas import Store, open_store
from workflow_execute import check_summaries, list_threads, read_thread, read_turn
from workflow_protocol import ThreadId


@dataclass(frozen=True)
class Case:
    """What is killed, and how to look at what it left."""

    go: Callable[[Traces, Deadly], Awaitable[None]]
    """Run the threads, or take them up where they are."""
    known_before: Callable[[Traces], Awaitable[dict[str, int]]]
    """Look at the store that a dead process left: 1 for each recorded reply or answer."""
    faults: Callable[[Traces, dict[str, int], Counter[str]], Awaitable[list[str]]]
    """Everything that isn't as it should be, given what was known and asked at the last death."""
    boundaries: int
    """About how many a run has, for pairs of them."""


async def go(traces: Traces, deadly: Deadly) -> None:
    """Run the thread, or take it up where it is."""
    async with open_store(traces.store, durability="normal") as store:
        runs = workflow(traces, deadly)
        known = await list_threads(store)
        if known and (await read_thread(store, known[0])).status.state == "completed":
            return  # it died after the end
        if known:
            done = await engine(store, traces, deadly).resume(runs, known[0])
        else:
            done = await engine(store, traces, deadly).start(
                runs, "Leave traces.", workspace=traces.folder
            )
        if done.state != "completed":
            raise RuntimeError(f"the thread is {done.state}: {done.summary}") from done.error


async def recorded(store: Store, thread_id: ThreadId) -> dict[str, int]:
    """What the store knew when the process died: 1 for each recorded reply or answer."""
    thread = await read_thread(store, thread_id)
    names = list(PLANS)
    turns = [(step.record.role, step.turn) for step in thread.steps]
    if thread.turn is not None:
        turns.append((names[len(turns)], thread.turn))
    found: dict[str, int] = {}
    for role, last in turns:
        for entry in await read_turn(store, last):
            if entry.record.kind in {"result", "answer"}:
                found[f"{role}/{entry.record.key}"] = 1
    return found


async def known_before(traces: Traces) -> dict[str, int]:
    """Look at the store that a dead process left."""
    if not traces.store.exists():
        return {}
    async with open_store(traces.store, durability="normal") as store:
        known = await list_threads(store)
        return await recorded(store, known[0]) if known else {}


async def faults(traces: Traces, before: dict[str, int], asked_before: Counter[str]) -> list[str]:
    """Everything that isn't as it should be after the thread is done."""
    wrong: list[str] = []
    async with open_store(traces.store, durability="normal") as store:
        report = await store.verify()
        if not report.ok:
            wrong.append(f"verify: {report.problems}")
        threads = await list_threads(store)
        thread = await read_thread(store, threads[0])
        if len(threads) != 1 or thread.status.state != "completed":
            wrong.append(f"threads: {threads}, {thread.status}")
        values = [json.loads(step.value) for step in thread.steps]
        if values != FINAL:
            wrong.append(f"values: {values}")
        replay = await engine(store, traces, Deadly()).replay(
            workflow(traces, Deadly()), threads[0]
        )
        if replay.requests < ROUNDS:
            wrong.append(f"replay: {replay}")
        after = await recorded(store, threads[0])
        if missing := before.keys() - after.keys():
            wrong.append(f"lost records: {missing}")
    ledger = Counter(traces.lines("ledger"))
    charges = {f"charge {n}": 1 for n in CHARGES}
    if {line: count for line, count in ledger.items() if line.startswith("charge")} != charges:
        wrong.append(f"ledger: {ledger}")
    puts = sorted(line.split()[1] for line in ledger if line.startswith("put"))
    if puts != [str(n) for n in PUTS]:  # by distinct line, so with one key each
        wrong.append(f"repeatable effects: {ledger}")
    requests = Counter(traces.lines("requests"))
    for key, count in requests.items():
        if count > asked_before[key] + (0 if key in before else 1):
            wrong.append(f"{key} was requested {count} times, recorded before: {key in before}")
    if "checker/go" in before and len(traces.lines("asked")) > asked_before["asked"]:
        wrong.append("a person was asked again")
    return wrong


async def index_faults(traces: Traces) -> list[str]:
    """Where the index of threads differs from the threads."""
    if not traces.store.exists():
        return []
    async with open_store(traces.store, durability="normal") as store:
        return [f"{thread}: {fault}" for thread, fault in await check_summaries(store)]


def in_child(work: object) -> int:
    """Run an async function in a fork; give its wait status."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    _exit(work)


def _exit(work: object) -> NoReturn:
    code = 1
    try:
        anyio.run(work)  # type: ignore[arg-type]
        code = 0
    except BaseException:  # noqa: BLE001 - a fork must not go on as its parent would
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def try_point(case: Case, folder: Path, *deaths: int) -> tuple[bool, list[str]]:
    """Die at these boundaries, one a run, then go on to the end. Whether the last was reached."""
    traces = Traces(folder)
    folder.mkdir()
    died = False
    before: dict[str, int] = {}
    asked: Counter[str] = Counter()
    report = folder / "report.json"
    for at in deaths:
        status = in_child(lambda at=at: case.go(traces, Deadly(at)))
        died = os.WIFSIGNALED(status)
        if not died and os.WEXITSTATUS(status):
            return True, [f"the run failed with {status}"]
        if not died:
            break

        async def look() -> None:
            if different := await index_faults(traces):
                raise RuntimeError(f"the index is not what is stored: {different}")
            report.write_text(json.dumps(await case.known_before(traces)), encoding="utf-8")

        if in_child(look):
            return True, ["the store can't be read after the kill"]
        before = json.loads(report.read_text(encoding="utf-8"))
        asked = Counter(traces.lines("requests"))
        asked["asked"] = len(traces.lines("asked"))
    if died and in_child(lambda: case.go(traces, Deadly())):
        return True, ["the resumed run failed"]

    async def judge() -> None:
        wrong = await case.faults(traces, before if died else {}, asked if died else Counter())
        wrong += await index_faults(traces)
        report.write_text(json.dumps(wrong), encoding="utf-8")

    if in_child(judge):
        return died, ["what it left can't be read"]
    wrong = json.loads(report.read_text(encoding="utf-8"))
    if not wrong:
        shutil.rmtree(folder)
    return died, wrong


def main(case: Case, root: Path, part: int, parts: int, *, twice: bool) -> None:
    """Try this part of all points; with `twice`, seeded pairs of them."""
    wrong: dict[str, list[str]] = {}
    points = 0
    at = 1 + part
    dice = random.Random(part)
    while True:
        most = case.boundaries
        deaths = (dice.randint(1, most), dice.randint(1, most * 2 // 5)) if twice else (at,)
        died, found = try_point(case, root / f"{part}-{points}", *deaths)
        if found:
            wrong[str(deaths)] = found
        points += 1
        if twice and points == 20:
            break
        if not twice and not died:
            points -= 1
            break
        at += parts
    sys.stdout.write(json.dumps({"points": points, "wrong": wrong}))


def run(case: Case) -> None:
    """Do what the command line says."""
    main(case, Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), twice="--twice" in sys.argv)


if __name__ == "__main__":
    run(Case(go=go, known_before=known_before, faults=faults, boundaries=150))
