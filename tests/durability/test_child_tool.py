"""A tool of a ReAct role that starts child threads: waiting, resuming and replaying with them."""

from pathlib import Path

import msgspec

from workflow_agent_react import ReactAdapterConfig, Toolset, create_react_adapter
from workflow_cas import open_store
from workflow_execute import ChildTask, Engine, list_threads, read_tree, run_child
from workflow_execute.testing import in_turn
from workflow_protocol import Answer, Effect, Question, ThreadContext
from workflow_reactor import ToolCall, ToolDefinition
from workflow_reactor.testing import ScriptedLlm, function, say

DELEGATE = ToolDefinition(
    name="delegate",
    description="Let somebody else do it.",
    parameters={
        "type": "object",
        "properties": {"what": {"type": "string"}},
        "required": ["what"],
        "additionalProperties": False,
    },
    effect=Effect.REPEATABLE,
)


async def work(ctx: ThreadContext) -> str:
    """Ask first, or fail."""
    if ctx.start.prompt == "break it":
        raise RuntimeError("it is broken")
    answer = await ctx.journal.ask("go", Question(text=f"May I {ctx.start.prompt}?"))
    return f"{ctx.start.prompt}: {answer.text}"


async def delegate(call: ToolCall, ctx: ThreadContext) -> str:
    """Start a child for the call."""
    what = msgspec.json.decode(call.arguments, type=dict[str, str])["what"]
    task = ChildTask(workflow=in_turn(work, schema=str), input=what, name="work", key=call.id)
    return (await run_child(ctx, task)).read(str)


async def test_a_tool_starts_children_and_the_model_reads_what_they_came_to(tmp_path: Path) -> None:
    llm = ScriptedLlm(
        [
            say(
                None,
                function("delegate", what="paint", id="k0"),
                function("delegate", what="break it", id="k1"),
            ),
            say(None, function("resolve", value="done", id="k2")),
        ]
    )
    adapter = create_react_adapter(
        ReactAdapterConfig(llm=llm, toolset=Toolset((DELEGATE,), delegate), max_rounds=5)
    )
    parent = in_turn(adapter("You delegate.", str), schema=str)
    async with open_store(tmp_path / "store.sqlite3") as store:
        engine = Engine(store, locks=tmp_path / "locks")
        waiting = await engine.start(parent, "p", workspace=tmp_path)
        assert (waiting.state, waiting.cause) == ("suspended", "question")
        (child_id,) = waiting.waits_for
        await engine.answer(child_id, None, Answer(approved=True, text="blue"))

        done = await engine.resume(parent, waiting.thread_id)
        assert (done.state, done.value, len(llm.requests)) == ("completed", "done", 2)
        told = [m["content"] for m in llm.requests[1]["messages"] if m["role"] == "tool"]
        assert told[0] == "paint: blue"
        assert "(work) failed: RuntimeError: it is broken" in told[1]
        assert done.steps[0].child_threads == tuple((await list_threads(store))[1:])
        tree = await read_tree(store, done.thread_id)
        assert [each.thread.status.state for each in tree.walk()] == [
            "completed", "completed", "failed",
        ]  # fmt: skip

        replay = await engine.replay(parent, done.thread_id)
        assert (replay.steps, replay.requests, len(llm.requests)) == (1, 2, 2)
