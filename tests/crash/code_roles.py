"""Kills functions as roles, children by a registered name, and artifacts, as `driver` does turns.

    python code_roles.py FOLDER PART PARTS [--twice]

The name that the children go by is registered anew before each run, so that it means something
else after each death.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import uuid4

from driver import Case, run
from scenario import VERSIONED, Deadly, DeadlyStore, Traces

from workflow_agent_react import ReactAdapterConfig, create_react_adapter, tool
from workflow_cas import Store, open_store
from workflow_execute import (
    Asking,
    ChildTask,
    Engine,
    Workflow,
    create_workflow,
    function_adapter,
    list_threads,
    read_thread,
    read_turn,
    run_children,
    workflow_adapter,
)
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Answer,
    Effect,
    RoleDefinition,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
    describe,
)
from workflow_reactor.testing import ScriptedLlm, function, say
from workflow_register import Bundle, build_bundle, load_workflow, read_stored_bundle, register

HELP = """
from uuid import uuid4

from workflow_execute import create_workflow, function_adapter
from workflow_protocol import END, START, AdapterBinding, Effect, RoleDefinition
from workflow_protocol import WorkflowDefinition

helper = RoleDefinition(name="helper", schema=str)


def help(ctx):
    found = f"{version}-{{uuid4()}}"
    with (ctx.start.workspace / "children").open("a") as file:
        file.write(f"{{ctx.thread_id}}\\n")
    ctx.publish("found", found)
    return found


run = create_workflow(
    WorkflowDefinition(table={{START: helper, helper: END}}, result=helper),
    AdapterBinding(function_adapter(helper, help, effect=Effect.REPEATABLE)),
)
"""
booker = RoleDefinition(name="booker", schema=str)
helped = RoleDefinition(name="helped", system_prompt="Help.", schema=str)
gatherer = RoleDefinition(name="gatherer", schema=list[str])
refunder = RoleDefinition(name="refunder", system_prompt="Refund.", schema=str)
reporter = RoleDefinition(name="reporter", schema=dict[str, str])
ARTIFACTS = {"book_id", "found", "stamp", "left", "right", "draw_id", "refund_id"}


def bundles() -> list[Bundle]:
    """What the name `help` means, at first and later."""
    made: list[Bundle] = []
    with tempfile.TemporaryDirectory() as folder:
        for version in range(3):
            entry = Path(folder) / f"help_{version}.py"
            entry.write_text(HELP.format(version=version), encoding="utf-8")
            made.append(build_bundle(entry))
    return made


VERSIONS = bundles()


def found_in(traces: Traces, what: str) -> str | None:
    """The id under which the world has something already."""
    found = [line.split()[1] for line in traces.lines("ledger") if line.startswith(f"{what} ")]
    return found[0] if found else None


class Model(ScriptedLlm):
    """Draws, pays, looks after a payment that it doesn't know of, and uses both numbers."""

    def __init__(self, traces: Traces) -> None:
        super().__init__([])
        self._traces = traces

    def answer(self, request: dict[str, Any]) -> bytes:
        messages: list[dict[str, Any]] = request["messages"]
        asked = [each for each in messages if each["role"] == "assistant"]
        latest = messages[-1]["content"]
        self._traces.add("requests", f"llm/{len(asked)}")
        called = asked[-1]["tool_calls"][0]["function"]["name"] if asked else ""
        known = "never recorded" not in latest and latest != "absent"
        after = {
            "": "draw", "draw": "pay", "pay": "use" if known else "find",
            "find": "use" if known else "pay", "use": "resolve",
        }[called]  # fmt: skip
        return say(None, function(after, **({"value": "done"} if after == "resolve" else {})))


def workflow(traces: Traces, deadly: Deadly) -> Workflow:
    """A function, a child, two at once, a role with tools that publish, and a report of it all."""

    def book(ctx: ThreadContext) -> str:
        deadly.boundary()
        traces.add("booked", "called")
        known = found_in(traces, "book")
        book_id = known or str(uuid4())
        ctx.publish("book_id", book_id)
        if known is None:
            traces.add("ledger", f"book {book_id}")
        deadly.boundary()
        return book_id

    async def stamp() -> str:
        deadly.boundary()
        return str(uuid4())

    async def gather(ctx: ThreadContext) -> list[str]:
        stamped = await ctx.journal.run("stamp", stamp, type=str)
        ctx.publish("stamp", stamped)
        tasks = [ChildTask(input=side, name="help", key=side) for side in ("left", "right")]
        sides = await run_children(ctx, tasks)
        deadly.boundary()
        for task, side in zip(tasks, sides, strict=True):
            ctx.publish(task.key, side.artifacts["found"].read(str))
        return [side.read(str) for side in sides]

    @tool(effect=Effect.REPEATABLE)
    async def draw(ctx: ThreadContext) -> str:
        """Draw a number, another one each time."""
        deadly.boundary()
        ctx.publish("draw_id", str(uuid4()))
        deadly.boundary()
        return "drawn"

    @tool(effect=Effect.UNSAFE)
    async def pay(ctx: ThreadContext) -> str:
        """Pay back."""
        deadly.boundary()
        refund_id = str(uuid4())
        traces.add("ledger", f"pay {refund_id}")
        deadly.boundary()
        ctx.publish("refund_id", refund_id)
        return "paid"

    @tool(effect=Effect.READ)
    async def find(ctx: ThreadContext) -> str:
        """Look whether it was paid back."""
        known = found_in(traces, "pay")
        if known is None:
            return "absent"
        ctx.publish("refund_id", known)
        return "present"

    @tool(effect=Effect.REPEATABLE)
    async def use(ctx: ThreadContext) -> str:
        """Use both numbers."""
        traces.add("used", f"{ctx.artifact('draw_id', str)} {ctx.artifact('refund_id', str)}")
        return "used"

    def report(ctx: ThreadContext) -> dict[str, str]:
        return {name: ctx.artifact(name, str) for name in ctx.artifacts}

    react = ReactAdapterConfig(llm=Model(traces), toolset=[draw, pay, find, use], max_rounds=12)
    return create_workflow(
        WorkflowDefinition(
            table={
                START: booker,
                booker: helped,
                helped: gatherer,
                gatherer: refunder,
                refunder: reporter,
                reporter: END,
            },
            result=reporter,
        ),
        AdapterBinding(
            create_react_adapter(react),
            overrides={
                booker: function_adapter(booker, book),
                helped: workflow_adapter("help"),
                gatherer: function_adapter(gatherer, gather, effect=Effect.READ),
                reporter: function_adapter(reporter, report, effect=Effect.READ),
            },
        ),
    )


def engine(store: Store, traces: Traces, deadly: Deadly) -> Engine:
    """An engine whose person has looked, and says that the function may be called again."""

    async def asker(asking: Asking) -> Answer:
        deadly.boundary()
        traces.add("asked", asking.key)
        return Answer(approved=True)

    return Engine(
        DeadlyStore(store, deadly), locks=traces.folder / "locks", asker=asker, versions=VERSIONED
    )


async def go(traces: Traces, deadly: Deadly) -> None:
    """Give the name another meaning, then run the thread, or take it up where it is."""
    async with open_store(traces.store, durability="normal") as store:
        traces.add("runs", "one more")
        bundle = VERSIONS[len(traces.lines("runs")) - 1]
        await register(store, "help", bundle, describe(load_workflow(bundle).definition))
        runs, at_work = workflow(traces, deadly), engine(store, traces, deadly)
        tops = await tops_of(store)
        if not tops:
            done = await at_work.start(runs, "Refund it.", workspace=traces.folder)
        elif (await read_thread(store, tops[0])).status.state == "completed":
            return  # it died after the end
        else:
            done = await at_work.resume(runs, tops[0])
        if done.state != "completed":
            raise RuntimeError(f"the thread is {done.state}: {done.summary}") from done.error


async def tops_of(store: Store) -> list[ThreadId]:
    """The threads that are nobody's children."""
    known = await list_threads(store)
    return [each for each in known if (await read_thread(store, each)).parent is None]


async def recorded(store: Store) -> dict[str, int]:
    """What the store knows of all threads: each record, with its result and what was published."""
    found: dict[str, int] = {}
    for thread_id in await list_threads(store):
        thread = await read_thread(store, thread_id)
        for number, last in enumerate([*(step.turn for step in thread.steps), thread.turn]):
            for entry in await read_turn(store, last):
                record = entry.record
                if record.kind not in {"result", "answer"}:
                    continue
                place = f"{'' if thread.parent is None else thread_id}{number}/{record.key}"
                published = [(each.name, each.json) for each in record.artifacts]
                found[place] = 1
                found[f"{place} = {entry.data!r}, {published}"] = 1
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
        tops = await tops_of(store)
        if len(tops) != 1:
            return [*wrong, f"threads: {tops}"]
        thread = await read_thread(store, tops[0])
        if missing := before.keys() - (await recorded(store)).keys():
            wrong.append(f"lost or changed records: {missing}")
        replay = await engine(store, traces, Deadly()).replay(
            workflow(traces, Deadly()), thread.thread_id
        )
        if replay.steps != 5:
            wrong.append(f"replay: {replay}")
        wrong += await _faults_of_children(store, traces, thread.thread_id)
    published = {
        each.name: json.loads(each.json) for step in thread.steps for each in step.record.artifacts
    }
    values = [json.loads(step.value) for step in thread.steps]
    if published.keys() != ARTIFACTS or values[-1] != published:
        wrong.append(f"artifacts: {published}, reported {values[-1]}")
    if values[1] != published["found"] or values[2] != [published["left"], published["right"]]:
        wrong.append(f"children's values: {values}, {published}")
    ledger = {f"book {published['book_id']}": 1, f"pay {published['refund_id']}": 1}
    if Counter(traces.lines("ledger")) != ledger:
        wrong.append(f"ledger: {traces.lines('ledger')}, {published}")
    if set(traces.lines("used")) != {f"{published['draw_id']} {published['refund_id']}"}:
        wrong.append(f"other values were used: {traces.lines('used')}, {published}")
    if len(traces.lines("booked")) > 1 + len(traces.lines("asked")):
        wrong.append("the function was called again, and nobody was asked")
    for key, count in Counter(traces.lines("requests")).items():
        if count > asked_before[key] + (0 if f"3/{key}" in before else 1):
            wrong.append(f"{key} was requested {count} times")
    return wrong


async def _faults_of_children(store: Store, traces: Traces, top: ThreadId) -> list[str]:
    """Three children, each of the bundle that its parent's turn has on record."""
    wrong: list[str] = []
    ids = [each for each in await list_threads(store) if each != top]
    if len(ids) != 3 or set(traces.lines("children")) != set(ids):
        return [f"children: {ids}, {traces.lines('children')}"]
    for each in ids:
        child = await read_thread(store, each)
        value = json.loads(child.steps[0].value)
        assert child.start.bundle is not None
        entry = (await read_stored_bundle(store, child.start.bundle))[0].manifest.entry
        if entry != f"help_{value.partition('-')[0]}.py":
            wrong.append(f"child {each} gave {value}, but has the bundle of {entry}")
    return wrong


if __name__ == "__main__":
    run(Case(go=go, known_before=known_before, faults=faults, boundaries=110))
