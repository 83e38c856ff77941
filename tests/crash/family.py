"""Kills a thread with children, a grandchild and two children at once, as `driver` does one.

python family.py FOLDER PART PARTS [--twice]
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

from driver import Case, run
from scenario import Deadly, DeadlyJournal, Traces, engine

from workflow_cas import Store, open_store
from workflow_execute import (
    ChildTask,
    Workflow,
    list_threads,
    read_thread,
    read_tree,
    read_turn,
    run_children,
    workflow_adapter,
)
from workflow_execute.testing import Turn, in_turn
from workflow_protocol import Effect, OutcomeUnknown, Question, RoleFn, ThreadContext, ThreadId

THREADS = ["top", "middle", "deep", "left", "right"]
FINAL = {"top": [1, 3, 2, 4], "middle": [1, 3], "deep": [1, 3], "left": [1], "right": [1]}
CHARGES = ["top/0", "middle/0", "deep/0"]


class Family:
    """Five threads, told apart by their prompts."""

    def __init__(self, traces: Traces, deadly: Deadly) -> None:
        self._traces = traces
        self._deadly = deadly

    def top(self) -> Workflow:
        """A turn of its own, a child, two children at once, and a turn of its own."""
        return in_turn(
            self._turn(self._spend),
            self._child("middle", self.middle()),
            self._turn(self._both),
            self._turn(self._answer),
        )

    def middle(self) -> Workflow:
        """A turn of its own, and a child."""
        return in_turn(self._turn(self._spend), self._child("deep", self.deep()))

    def deep(self) -> Workflow:
        """A turn of its own, and one that asks a person."""
        return in_turn(self._turn(self._spend), self._turn(self._ask))

    def side(self) -> Workflow:
        """Two requests."""
        return in_turn(self._turn(self._look))

    def _turn(self, turn: Turn) -> Turn:
        async def mortal(ctx: ThreadContext) -> int:
            return await turn(replace(ctx, journal=DeadlyJournal(ctx.journal, self._deadly)))

        return mortal

    def _child(self, name: str, workflow: Workflow) -> Turn:
        role: RoleFn[int] = workflow_adapter(name, workflow, input=lambda role, ctx: name)("", int)
        return self._turn(role)

    async def _request(self, ctx: ThreadContext, key: str) -> int:
        async def perform() -> int:
            self._traces.add("requests", f"{ctx.start.prompt}/{len(ctx.steps)}/{key}")
            return 1

        return await ctx.journal.run(key, perform, type=int, request=key.encode)

    async def _look(self, ctx: ThreadContext) -> int:
        await self._request(ctx, "llm/0")
        return await self._request(ctx, "llm/1")

    async def _spend(self, ctx: ThreadContext) -> int:
        await self._request(ctx, "llm/0")
        name = f"{ctx.start.prompt}/{len(ctx.steps)}"

        async def charge() -> bool:
            self._traces.add("ledger", name)
            return True

        async def look() -> bool:
            return name in self._traces.lines("ledger")

        try:
            await ctx.journal.run("charge", charge, type=bool, effect=Effect.UNSAFE)
        except OutcomeUnknown:
            if not await ctx.journal.run("look", look, type=bool, request=lambda: b"look"):
                await ctx.journal.run("again", charge, type=bool, effect=Effect.UNSAFE)
        return await self._request(ctx, "llm/1")

    async def _ask(self, ctx: ThreadContext) -> int:
        await ctx.journal.ask("go", Question(text="Go on?"))
        return 2 + await self._request(ctx, "llm/0")

    async def _both(self, ctx: ThreadContext) -> int:
        tasks = [
            ChildTask(workflow=self.side(), input=name, name=name, key=name)
            for name in ("left", "right")
        ]
        return sum(result.read(int) for result in await run_children(ctx, tasks))

    async def _answer(self, ctx: ThreadContext) -> int:
        return 3 + await self._request(ctx, "llm/0")

    def of(self, name: str) -> Workflow:
        """What a thread runs."""
        known = {"top": self.top, "middle": self.middle, "deep": self.deep}
        return known.get(name, self.side)()


async def go(traces: Traces, deadly: Deadly) -> None:
    """Run the topmost thread, or take it up where it is."""
    async with open_store(traces.store, durability="normal") as store:
        family = Family(traces, deadly)
        known = await list_threads(store)
        if known and (await read_thread(store, known[0])).status.state == "completed":
            return  # it died after the end
        if known:
            done = await engine(store, traces, deadly).resume(family.top(), known[0])
        else:
            done = await engine(store, traces, deadly).start(
                family.top(), "top", workspace=traces.folder
            )
        if done.state != "completed":
            raise RuntimeError(f"the thread is {done.state}: {done.summary}") from done.error


async def recorded(store: Store) -> dict[str, int]:
    """What the store knows of all threads."""
    found: dict[str, int] = {}
    for thread_id in await list_threads(store):
        thread = await read_thread(store, thread_id)
        turns = [*(step.turn for step in thread.steps), thread.turn]
        for number, last in enumerate(turns):
            for entry in await read_turn(store, last):
                if entry.record.kind in {"result", "answer"}:
                    found[f"{thread.prompt}/{number}/{entry.record.key}"] = 1
    return found


async def known_before(traces: Traces) -> dict[str, int]:
    """Look at the store that a dead process left."""
    if not traces.store.exists():
        return {}
    async with open_store(traces.store, durability="normal") as store:
        return await recorded(store)


async def faults(traces: Traces, before: dict[str, int], asked_before: Counter[str]) -> list[str]:
    """Everything that isn't as it should be after the thread is done."""
    wrong: list[str] = []
    async with open_store(traces.store, durability="normal") as store:
        report = await store.verify()
        if not report.ok:
            wrong.append(f"verify: {report.problems}")
        ids = await list_threads(store)
        threads = {(await read_thread(store, each)).prompt: each for each in ids}
        if len(ids) != len(THREADS) or set(threads) != set(THREADS):
            return [*wrong, f"threads: {threads}"]
        for name, thread_id in threads.items():
            wrong += await _faults_of(store, traces, name, thread_id)
        tree = await read_tree(store, threads["top"])
        if [each.thread.prompt for each in tree.walk()][:3] != THREADS[:3]:
            wrong.append("the tree has another shape")
        if missing := before.keys() - (await recorded(store)).keys():
            wrong.append(f"lost records: {missing}")
    if sorted(traces.lines("ledger")) != sorted(CHARGES):
        wrong.append(f"ledger: {traces.lines('ledger')}")
    for key, count in Counter(traces.lines("requests")).items():
        if count > asked_before[key] + (0 if key in before else 1):
            wrong.append(f"{key} was requested {count} times, recorded before: {key in before}")
    if "deep/1/go" in before and len(traces.lines("asked")) > asked_before["asked"]:
        wrong.append("a person was asked again")
    return wrong


async def _faults_of(store: Store, traces: Traces, name: str, thread_id: ThreadId) -> list[str]:
    """What is wrong with one of the threads."""
    wrong: list[str] = []
    thread = await read_thread(store, thread_id)
    values = [json.loads(step.value) for step in thread.steps]
    if thread.status.state != "completed" or values != FINAL[name]:
        wrong.append(f"{name}: {thread.status}, {values}")
    replay = await engine(store, traces, Deadly()).replay(
        Family(traces, Deadly()).of(name), thread_id
    )
    if replay.steps != len(values):
        wrong.append(f"{name}: {replay}")
    for step in thread.steps:
        for child_id in step.record.child_threads:
            child = await read_thread(store, ThreadId(child_id))
            if child.head not in (await store.get(step.hash)).refs or child.parent != thread_id:
                wrong.append(f"{name} and {child.prompt} have lost each other")
    return wrong


if __name__ == "__main__":
    run(Case(go=go, known_before=known_before, faults=faults, boundaries=150))
