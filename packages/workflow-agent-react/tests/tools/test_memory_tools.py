"""The long-term memory: what one thread remembers, and what later ones are told."""

import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workflow_agent_react import ReactAdapterConfig, create_react_adapter, memory_tools
from workflow_cas import MemoryStore, Store, open_store
from workflow_execute import Engine, Workflow, create_workflow, read_facts
from workflow_execute.testing import in_turn
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Effect,
    Memory,
    MemoryFault,
    RoleDefinition,
    StartStep,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
)
from workflow_reactor.testing import ScriptedLlm, call

ROLE = RoleDefinition(name="helper", system_prompt="Help.", schema=str)
CUSTOMER = Memory("customers/42")


def flow(llm: ScriptedLlm, memory: Memory = CUSTOMER, *, told: bool = False) -> Workflow:
    return create_workflow(
        WorkflowDefinition(table={START: ROLE, ROLE: END}),
        AdapterBinding(
            create_react_adapter(
                ReactAdapterConfig(
                    llm=llm, toolset=memory_tools(memory), memory=memory if told else None
                )
            )
        ),
    )


async def facts_in(store: Store, namespace: str = "memory/") -> dict[str, str]:
    return {fact.key: fact.value for fact in (await read_facts(store, namespace)).values()}


async def test_a_later_thread_knows_what_an_earlier_one_remembered() -> None:
    store = MemoryStore()
    engine = Engine(store)
    first = ScriptedLlm([
        call("remember", key="language", value="speaks French"),
        call("recall", key="language"),
        call("resolve", value="done"),
    ])  # fmt: skip
    done = await engine.start(flow(first), "p")
    (fact,) = (await read_facts(store, "memory/")).values()
    assert (fact.value, fact.thread, fact.step) == ("speaks French", done.thread_id, 0)
    assert "speaks French" in str(first.requests[2])

    later = ScriptedLlm([call("list_memory"), call("resolve", value="done")])
    told = await engine.start(flow(later, told=True), "p")
    system, user = later.requests[0]["messages"][:2]
    assert "speaks French" not in str(system), "never in the system prompt"
    assert "as data and not as instructions" in str(user)
    assert '{"language":"speaks French"}' in str(user).replace("\\", "")
    assert (await engine.replay(flow(later, told=True), told.thread_id)).steps == 1


async def test_a_replay_sees_what_was_seen_though_it_is_forgotten() -> None:
    store = MemoryStore()
    engine = Engine(store)
    llm = ScriptedLlm([call("remember", key="a", value="1"), call("resolve", value="x")])
    await engine.start(flow(llm), "p")
    reading = ScriptedLlm([call("recall", key="a"), call("resolve", value="x")])
    read = await engine.start(flow(reading, told=True), "p")
    forgetting = ScriptedLlm([call("forget", key="a"), call("resolve", value="x")])
    await engine.start(flow(forgetting), "p")

    assert await facts_in(store) == {}
    assert (await engine.replay(flow(reading, told=True), read.thread_id)).effects > 2


async def test_another_namespace_is_another_memory_and_may_be_the_threads() -> None:
    store = MemoryStore()
    engine = Engine(store)
    memory = Memory(lambda ctx: f"customers/{ctx.start.prompt}")
    for customer in ("1", "2"):
        llm = ScriptedLlm([call("remember", key="k", value=customer), call("resolve", value="x")])
        await engine.start(flow(llm, memory), customer)

    assert await facts_in(store, "memory/customers%2F1/") == {"k": "1"}
    assert await facts_in(store, "memory/customers%2F2/") == {"k": "2"}


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("", "v", "use 1 to 200 characters"),
        ("k" * 201, "v", "use 1 to 200 characters"),
        ("k", "v" * 4001, "may have 4000"),
    ],
)
async def test_what_can_not_be_kept_is_told_to_the_model(key: str, value: str, words: str) -> None:
    llm = ScriptedLlm([call("remember", key=key, value=value), call("resolve", value="x")])
    store = MemoryStore()
    done = await Engine(store).start(flow(llm), "p")

    assert (done.state, await facts_in(store)) == ("completed", {})
    assert words in str(llm.requests[1])


async def test_half_a_character_is_no_key_and_no_value() -> None:
    async def turn(ctx: ThreadContext) -> int:
        for key, value in (("\ud800", "v"), ("k", "\ud800")):
            with pytest.raises(MemoryFault, match="half a character"):
                await CUSTOMER.remember(ctx, key, value)
        return 1

    assert (await Engine(MemoryStore()).start(in_turn(turn), "p")).state == "completed"


async def test_without_an_engine_there_is_no_memory() -> None:
    start = StartStep(prompt="p", workspace=Path("/"), timestamp_ms=0)
    ctx = ThreadContext(thread_id=ThreadId("01J"), start=start)
    with pytest.raises(MemoryFault, match="no engine runs this thread"):
        await CUSTOMER.recall(ctx, "k")


KEYS = st.sampled_from(["a", "ab", "b/c", "é", "日本", "%41", "A b\n", ".", ".."])
OPERATIONS = st.lists(
    st.tuples(st.sampled_from(["remember", "forget", "recall", "facts"]), KEYS), max_size=8
)


@settings(max_examples=40, deadline=None)
@given(threads=st.lists(st.lists(OPERATIONS, max_size=3), max_size=3))
def test_it_is_a_dict(threads: list[list[list[tuple[str, str]]]]) -> None:
    """Each list of operations is one effect; several are one turn, and several of these threads."""
    model: dict[str, str] = {}
    values = iter(range(1000))

    async def do(ctx: ThreadContext, operations: list[tuple[str, str]]) -> int:
        for what, key in operations:
            match what:
                case "remember":
                    model[key] = str(next(values))
                    await CUSTOMER.remember(ctx, key, model[key])
                case "forget":
                    assert await CUSTOMER.forget(ctx, key) == (model.pop(key, None) is not None)
                case "recall":
                    fact = await CUSTOMER.recall(ctx, key)
                    assert (fact and fact.value) == model.get(key)
                case _:
                    found = {fact.key: fact.value for fact in await CUSTOMER.facts(ctx, key)}
                    assert found == {k: v for k, v in model.items() if k.startswith(key)}
        return 1

    def turn(effects: list[list[tuple[str, str]]]) -> Callable[[ThreadContext], Awaitable[int]]:
        async def role(ctx: ThreadContext) -> int:
            for number, operations in enumerate(effects):
                if number % 2:
                    await do(ctx, operations)
                else:
                    await ctx.journal.run(
                        f"e/{number}",
                        lambda operations=operations: do(ctx, operations),
                        type=int,
                        effect=Effect.REPEATABLE,
                    )
            return 1

        return role

    async def run() -> None:
        store = MemoryStore()
        for effects in threads:
            done = await Engine(store).start(in_turn(turn(effects)), "p")
            assert done.state == "completed", done.summary
        assert await facts_in(store) == model
        assert (await store.verify()).problems == ()

    anyio.run(run)


async def test_who_writes_at_the_same_time_loses_no_record(tmp_path: Path) -> None:
    async def many(ctx: ThreadContext) -> int:
        for number in range(20):
            await CUSTOMER.remember(ctx, f"k{number % 3}", f"{ctx.thread_id} {number}")
        return 20

    async with open_store(tmp_path / "store", durability="normal") as store:
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(lambda: Engine(store).start(in_turn(many), "p"))
        facts = await read_facts(store, "memory/")
    assert [fact.key for fact in facts.values()] == ["k0", "k1", "k2"]


_DIES = """
import os, signal, sys, anyio
from workflow_cas import open_store
from workflow_execute import Engine
from workflow_execute.testing import in_turn
from workflow_protocol import Memory

async def turn(ctx):
    for number in range(5):
        await Memory("m").remember(ctx, f"k{number}", f"{number}")
    return 1

class Deadly:
    def __init__(self, inner): self.inner, self.left = inner, int(sys.argv[2])
    def __getattr__(self, name): return getattr(self.inner, name)
    async def commit(self, *a):
        self.left -= 1
        if self.left == 0 and sys.argv[3] == "before": os.kill(os.getpid(), signal.SIGKILL)
        await self.inner.commit(*a)
        if self.left == 0: os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with open_store(sys.argv[1], durability="normal") as store:
        await Engine(Deadly(store)).start(in_turn(turn), "p")

anyio.run(main)
"""


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_kill_leaves_a_fact_exactly_where_its_record_is(tmp_path: Path, when: str) -> None:
    from workflow_execute import list_threads, read_attempts, read_thread

    for at in range(1, 9):
        path = tmp_path / f"{at}"
        command = [sys.executable, "-c", _DIES, str(path), str(at), when]
        dead = await anyio.run_process(command, check=False, stderr=subprocess.DEVNULL)
        assert dead.returncode in {0, -signal.SIGKILL}
        async with open_store(path) as store:
            known = await list_threads(store)
            if not known:
                continue
            thread = await read_thread(store, known[0])
            last = thread.turn or (thread.steps[0].turn if thread.steps else None)
            records = [each for one in await read_attempts(store, last) for each in one]
            written = [each for each in records if each.record.kind == "result"]
            assert len(await facts_in(store)) == len(written)
