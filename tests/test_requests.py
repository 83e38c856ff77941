"""How many requests a workflow costs: counted at a real server, none of them beside the rounds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from workflow_agent_llm import create_llm_adapter
from workflow_agent_react import (
    Allow,
    Ask,
    Decision,
    ProposedCall,
    ReactAdapterConfig,
    create_react_adapter,
    create_react_agent,
    tool,
)
from workflow_cas import open_store
from workflow_execute import Engine, Workflow, create_workflow
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    AdapterFn,
    Effect,
    RoleDefinition,
    ThreadContext,
    WorkflowDefinition,
)
from workflow_reactor import LlmProvider, Secret
from workflow_reactor.testing import LoopbackServer, Reply, call, loopback_server, say
from workflow_util_agent import agent_to_adapter


@dataclass
class Count:
    n: int


@tool(effect=Effect.READ)
def look(place: str) -> str:
    """Look somewhere."""
    return f"nothing in {place}"


def react(provider: LlmProvider) -> AdapterFn:
    return create_react_adapter(ReactAdapterConfig(provider=provider, toolset=look, max_rounds=8))


def agent(provider: LlmProvider) -> AdapterFn:
    config = ReactAdapterConfig(provider=provider, toolset=look, max_rounds=8)
    return agent_to_adapter(create_react_agent(config), provider)


REACT = [call("look", place="a"), say("hm"), call("look", place="b"), call("resolve", n=2)]
AGENT = [call("look", place="a"), say("I counted 2."), call("resolve"), call("resolve", n=2)]
LLM = [say('{"n": 2}')]
REPAIRED = [say("two"), say('{"n": 2}')]


def workflow(*adapters: AdapterFn) -> Workflow:
    """One role after the other, each with its adapter."""
    roles = [
        RoleDefinition(name=f"role{i}", description="d", system_prompt="Count.", schema=Count)
        for i in range(len(adapters))
    ]
    table = {role: [after] for role, after in zip(roles, [*roles[1:], END], strict=True)}
    return create_workflow(
        WorkflowDefinition(description="d", table={START: roles[0], **table}),
        AdapterBinding(
            adapters[0],
            overrides={role.name: each for role, each in zip(roles, adapters, strict=True)},
        ),
    )


async def completed(
    folder: Path, server: LoopbackServer, replies: Sequence[Reply], made: Workflow
) -> None:
    """Run a workflow to its end; every reply is used, and there was no other request."""
    async with open_store(folder / "store.sqlite3") as store:
        done = await Engine(store).start(made, "How many?", workspace=folder)
    assert (done.state, done.value) == ("completed", Count(2))
    assert len(server.requests) == len(replies)
    assert sum(step.usage.calls for step in done.steps) == len(replies)


async def test_a_react_role_costs_its_rounds(tmp_path: Path) -> None:
    async with loopback_server(REACT, strict=True) as server:
        await completed(tmp_path, server, REACT, workflow(react(server.provider())))


async def test_an_agent_costs_its_rounds_and_those_of_the_extract(tmp_path: Path) -> None:
    async with loopback_server(AGENT, strict=True) as server:
        await completed(tmp_path, server, AGENT, workflow(agent(server.provider())))


@pytest.mark.parametrize("replies", [LLM, REPAIRED], ids=["at once", "with a repair"])
async def test_an_llm_role_costs_one_request_and_one_for_a_repair(
    tmp_path: Path, replies: Sequence[Reply]
) -> None:
    async with loopback_server(replies, strict=True) as server:
        made = workflow(create_llm_adapter(server.provider()))
        await completed(tmp_path, server, replies, made)


async def test_a_workflow_costs_what_its_roles_cost(tmp_path: Path) -> None:
    replies = [*REACT, *LLM]
    async with loopback_server(replies, strict=True) as server:
        made = workflow(react(server.provider()), create_llm_adapter(server.provider()))
        await completed(tmp_path, server, replies, made)


def unreachable(provider: LlmProvider) -> LlmProvider:
    """The same model, whose key can't be had."""

    def find_key() -> str:
        raise AssertionError("nothing is sent, so no key is needed")

    return LlmProvider(base_url=provider.base_url, model=provider.model, api_key=Secret(find_key))


async def test_a_replay_needs_no_key_no_provider_and_no_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store)
        async with loopback_server([*REACT, *AGENT, *LLM]) as server:
            there = server.provider()
            made = workflow(react(there), agent(there), create_llm_adapter(there))
            done = await engine.start(made, "How many?", workspace=tmp_path)
            assert done.state == "completed"

        monkeypatch.setenv("http_proxy", "no://proxy")  # opening a transport fails
        gone = unreachable(there)
        again = workflow(react(gone), agent(gone), create_llm_adapter(gone))
        replayed = await engine.replay(again, done.thread_id)
        assert (replayed.steps, replayed.requests) == (3, len([*REACT, *AGENT, *LLM]))


async def test_a_turn_that_still_waits_for_a_person_needs_no_key_to_say_so(tmp_path: Path) -> None:
    def ask(call: ProposedCall, ctx: ThreadContext) -> Decision:
        return Ask("Look?") if call.name == "look" else Allow()

    def guarded(provider: LlmProvider) -> Workflow:
        config = ReactAdapterConfig(provider=provider, toolset=look, guards=[ask])
        return workflow(create_react_adapter(config))

    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store)
        async with loopback_server(REACT) as server:
            there = server.provider()
            waiting = await engine.start(guarded(there), "How many?", workspace=tmp_path)
        again = await engine.resume(guarded(unreachable(there)), waiting.thread_id)

    assert [(each.state, each.cause) for each in (waiting, again)] == [
        ("suspended", "question")
    ] * 2
