from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflow_cas import MemoryStore, content
from workflow_execute import (
    Engine,
    create_workflow,
    run_workflow,
    workflow_adapter,
)
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    DirectJournal,
    RoleDefinition,
    StartStep,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
)
from workflow_reactor import create_llm_fn
from workflow_reactor.testing import ScriptedLlm, call, loopback_server
from workflow_util_agent import agent_to_adapter


@dataclass
class Count:
    n: int


@dataclass
class Keys(DirectJournal):
    keys: list[str] = field(default_factory=list[str])

    async def run(self, key: str, perform: Any, **options: Any) -> Any:
        self.keys.append(key)
        return await perform()


async def agent(ctx: ThreadContext, prompt: str) -> str:
    """Does one thing of its own, through its journal."""

    async def work() -> int:
        return 3

    found = await ctx.journal.run("work/0", work, type=int)
    return f"{prompt} I counted {found}. " + "And so on. " * 5_000


async def test_an_agents_words_become_a_value_and_the_steps_content() -> None:
    llm = ScriptedLlm([call("resolve", n=3)])
    role = RoleDefinition(name="counter", system_prompt="Count!", schema=Count)
    workflow = create_workflow(
        WorkflowDefinition(
            table={START: role, role: END},
        ),
        AdapterBinding(agent_to_adapter(agent, llm)),
    )
    result = await run_workflow(workflow, "How many?")

    assert result.value == Count(3)
    assert result.steps[0].content.startswith("Count! I counted 3. ")
    assert llm.requests[0]["messages"][1]["content"] == result.steps[0].content
    assert len(llm.requests) == 1


async def test_agent_and_extract_have_journal_keys_of_their_own() -> None:
    journal = Keys()
    ctx = ThreadContext(
        thread_id=ThreadId("T"),
        start=StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=0),
        journal=journal,
    )
    async with loopback_server([call("resolve", n=1), call("resolve", n=2)]) as server:
        by_provider = agent_to_adapter(agent, server.provider())
        by_source = agent_to_adapter(agent, create_llm_fn(server.provider()))
        assert await by_provider("Count!", Count)(ctx) == Count(1)
        assert await by_source("Count!", Count)(ctx) == Count(2)

    assert journal.keys == ["agent/work/0", "extract/llm/0"] * 2


async def test_the_extracting_model_reads_what_the_agent_names_by_its_hash_once() -> None:
    """Also in a child thread, and a replay has what was read without a store to read from."""
    store = MemoryStore()
    table = content("n is 7\n" * 4_000)
    await store.commit([table])
    llm = ScriptedLlm([call("cas_get", hash=table.hash[:12]), call("resolve", n=7)])

    async def teller(ctx: ThreadContext, prompt: str) -> str:
        return f"See {table.hash[:12]}."

    role = RoleDefinition(name="counter", system_prompt="Count!", schema=Count)
    inner = create_workflow(
        WorkflowDefinition(table={START: role, role: END}),
        AdapterBinding(agent_to_adapter(teller, llm)),
    )
    outer = create_workflow(
        WorkflowDefinition(table={START: role, role: END}),
        AdapterBinding(workflow_adapter("inner", inner)),
    )
    engine = Engine(store)
    result = await engine.start(outer, "How many?")

    assert result.value == Count(7)
    read = llm.requests[1]["messages"][-1]["content"]
    assert read.startswith("n is 7\n")
    assert read.endswith("[12000 more characters: read on with offset=16000]")
    [child] = result.steps[0].child_threads
    replayed = await engine.replay(inner, child)
    assert (replayed.steps, replayed.requests) == (1, 2)
    assert len(llm.requests) == 2
