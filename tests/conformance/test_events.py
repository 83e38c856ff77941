"""Events name what they are about: parallel calls, children and resumes can be told apart."""

from __future__ import annotations

import anyio

from workflow_agent_react import ReactAdapterConfig, Toolset, create_react_adapter, tool
from workflow_cas import MemoryStore
from workflow_execute import Engine, create_workflow, workflow_adapter
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Effect,
    Event,
    ModelFailed,
    ModelReplied,
    RoleDefinition,
    RoleFinished,
    RoleStarted,
    RoundStarted,
    ThreadEnded,
    ThreadStarted,
    ToolFinished,
    ToolStarted,
    WorkflowDefinition,
)
from workflow_reactor.testing import ScriptedLlm, Wire, call, function, http, loopback_server, say

READER = RoleDefinition(name="reader", system_prompt="Read.", schema=int)
ONE_ROLE = WorkflowDefinition(
    table={START: READER, READER: END},
)


REFUSED = Wire(data=http(401, b'{"error": {"message": "bad key"}}'))


async def test_parallel_calls_begin_and_end_under_keys_of_their_own() -> None:
    both = anyio.Event()
    waiting: list[str] = []

    @tool(effect=Effect.READ)
    async def read(path: str) -> str:
        """Read a file."""
        waiting.append(path)
        if len(waiting) == 2:
            both.set()
        with anyio.fail_after(5):
            await both.wait()
        return path

    llm = ScriptedLlm(
        [
            say(None, function("read", path="a", id="x"), function("read", path="b", id="y")),
            call("resolve", value=1),
        ]
    )
    heard: list[Event] = []
    adapter = create_react_adapter(ReactAdapterConfig(llm=llm, toolset=Toolset.combine(read)))
    engine = Engine(MemoryStore(), observer=heard.append)

    result = await engine.start(create_workflow(ONE_ROLE, AdapterBinding(adapter)), "p")

    assert result.state == "completed", result.error
    begun = {each.key: each for each in heard if isinstance(each, ToolStarted)}
    ended = {each.key: each for each in heard if isinstance(each, ToolFinished)}
    assert begun.keys() == ended.keys() >= {"tool/0/0", "tool/0/1"}
    assert [begun[key].arguments for key in ("tool/0/0", "tool/0/1")] == [
        '{"path": "a"}',
        '{"path": "b"}',
    ]
    assert [ended[key].call_id for key in ("tool/0/0", "tool/0/1")] == ["x", "y"]
    assert {each.thread for each in heard} == {result.thread_id}
    inside = [each for each in heard if not isinstance(each, ThreadStarted | ThreadEnded)]
    assert {(each.role, each.step, each.parents) for each in inside} == {("reader", 0, ())}
    replies = [each for each in heard if isinstance(each, ModelReplied)]
    assert [(each.key, each.finish) for each in replies] == [
        ("llm/0", "tool_calls"),
        ("llm/1", "tool_calls"),
    ]


async def test_what_a_resume_tells_again_is_marked() -> None:
    @tool(effect=Effect.READ)
    async def look() -> str:
        """Look."""
        return "seen"

    heard: list[Event] = []
    engine = Engine(MemoryStore(), observer=heard.append)
    script = [call("look"), REFUSED, call("look"), call("resolve", value=1)]
    async with loopback_server(script) as server:
        config = ReactAdapterConfig(provider=server.provider(), toolset=Toolset.combine(look))
        run = create_workflow(ONE_ROLE, AdapterBinding(create_react_adapter(config)))
        failed = await engine.start(run, "p")
        assert failed.state == "failed"
        assert not [each for each in heard if each.recorded]
        heard.clear()

        resumed = await engine.resume(run, failed.thread_id)

    assert resumed.state == "completed", resumed.error
    assert [(type(each), each.key) for each in heard if each.recorded] == [
        (ThreadStarted, ""),
        (RoleStarted, ""),
        (RoundStarted, "llm/0"),
        (ModelReplied, "llm/0"),
        (ToolStarted, "tool/0/0"),
        (ToolFinished, "tool/0/0"),
    ]
    new = [each.key for each in heard if isinstance(each, ModelReplied) and not each.recorded]
    assert new == ["llm/1", "llm/2"]


async def test_a_child_s_events_name_the_threads_above_it() -> None:
    child = create_workflow(
        ONE_ROLE,
        AdapterBinding(
            create_react_adapter(ReactAdapterConfig(llm=ScriptedLlm([call("resolve", value=1)])))
        ),
    )
    heard: list[Event] = []
    engine = Engine(MemoryStore(), observer=heard.append)

    result = await engine.start(
        create_workflow(ONE_ROLE, AdapterBinding(workflow_adapter("below", child))),
        "p",
        name="above",
    )

    began = {each.workflow: each for each in heard if isinstance(each, ThreadStarted)}
    assert began["above"].parents == ()
    assert began["below"].parents == (result.thread_id,)
    of_child = [each for each in heard if each.thread == began["below"].thread]
    assert {each.parents for each in of_child} == {(result.thread_id,)}
    finished = [each for each in heard if isinstance(each, RoleFinished)]
    assert [each.thread for each in finished] == [began["below"].thread, result.thread_id]


async def test_a_model_that_can_t_be_asked_is_told() -> None:
    heard: list[Event] = []
    async with loopback_server([REFUSED]) as server:
        adapter = create_react_adapter(ReactAdapterConfig(provider=server.provider()))
        run = create_workflow(ONE_ROLE, AdapterBinding(adapter))
        result = await Engine(MemoryStore(), observer=heard.append).start(run, "p")

    assert result.state == "failed"
    (told,) = [each for each in heard if isinstance(each, ModelFailed)]
    assert (told.key, told.error, told.thread) == ("llm/0", "ProviderRefused", result.thread_id)
    assert "bad key" in told.message
