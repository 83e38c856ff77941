"""Artifacts: exact values, kept with the result of the call that published them."""

import threading
from pathlib import Path

import anyio
import msgspec
import pytest
from anyio import to_thread
from hypothesis import given
from hypothesis import strategies as st

from workflow_agent_react import ReactAdapterConfig, ToolError, create_react_adapter, tool
from workflow_cas import MemoryStore
from workflow_execute import ChildTask, Engine, Workflow, run_child, workflow_adapter
from workflow_execute.testing import Turn, in_turn
from workflow_protocol import (
    ArtifactError,
    DirectJournal,
    Effect,
    Question,
    StartStep,
    ThreadContext,
    ThreadId,
)
from workflow_reactor.testing import Reply, ScriptedLlm, call, function, say
from workflow_util_agent import build_thread_input


class Refund(msgspec.Struct):
    id: str
    cents: int


@tool(effect=Effect.UNSAFE)
def pay_back(ctx: ThreadContext, cents: int) -> str:
    """Pay back."""
    ctx.publish("refund", Refund(id=f"re_{cents}", cents=cents))
    if cents < 0:
        raise ToolError("it was booked, and then the mail failed")
    return "done"


@tool(effect=Effect.READ)
async def look(ctx: ThreadContext, word: str) -> str:
    """Look."""
    await anyio.sleep(0.01 if word == "first" else 0)
    ctx.publish("seen", word)
    return ctx.artifact("refund", Refund).id if "refund" in ctx.artifacts else "none"


def clerk(*replies: Reply) -> tuple[Turn, ScriptedLlm]:
    llm = ScriptedLlm([*replies, call("resolve", value="settled")])
    config = ReactAdapterConfig(llm=llm, toolset=[pay_back, look])
    return create_react_adapter(config)("You settle.", str), llm


async def say_id(ctx: ThreadContext) -> str:
    return ctx.artifact("refund", Refund).id


def started(workspace: Path = Path("/nowhere")) -> ThreadContext:
    return ThreadContext(
        thread_id=ThreadId("01J"),
        start=StartStep(prompt="p", workspace=workspace, timestamp_ms=0),
    )


async def test_a_later_role_reads_exactly_what_a_tool_published(tmp_path: Path) -> None:
    turn, _ = clerk(call("pay_back", cents=7))
    run = in_turn(turn, say_id, schema=str)
    engine = Engine(MemoryStore())

    done = await engine.start(run, "p", workspace=tmp_path)

    assert done.value == "re_7"
    assert [(each.name, each.json) for each in done.steps[0].artifacts] == [
        ("refund", '{"id":"re_7","cents":7}')
    ]
    replay = await engine.replay(run, done.thread_id)
    assert replay.steps == 2
    fork = await engine.fork(done.thread_id, at_step=1)
    assert (await engine.resume(run, fork)).value == "re_7"
    before = await engine.fork(done.thread_id, at_step=0)
    empty = in_turn(clerk()[0], say_id, schema=str)
    gone = await engine.resume(empty, before)
    assert gone.state == "failed"
    assert "nothing has published it; there are: none" in gone.summary


async def test_of_two_the_last_call_counts_whichever_of_them_ends_first(tmp_path: Path) -> None:
    together = say(None, function("look", word="first"), function("look", word="second"))
    turn, _ = clerk(call("pay_back", cents=1), call("pay_back", cents=2), together)

    async def read(ctx: ThreadContext) -> str:
        return ctx.artifact("seen", str) + ctx.artifact("refund", Refund).id

    run = in_turn(turn, read, schema=str)
    engine = Engine(MemoryStore())
    done = await engine.start(run, "p", workspace=tmp_path)

    assert done.value == "secondre_2"
    assert [each.name for each in done.steps[0].artifacts] == ["refund", "refund", "seen", "seen"]
    await engine.replay(run, done.thread_id)


async def test_a_later_call_of_the_turn_sees_it_and_so_does_the_next_role_s_model(
    tmp_path: Path,
) -> None:
    turn, llm = clerk(call("pay_back", cents=3), call("look", word="a"))
    other, shown = clerk()
    await Engine(MemoryStore()).start(in_turn(turn, other, schema=str), "p", workspace=tmp_path)

    told = [m["content"] for m in llm.requests[2]["messages"] if m["role"] == "tool"]
    assert told == ["done", "re_3"]
    assert (
        '## Exact values\n\n- refund: {"id":"re_3","cents":3}\n- seen: "a"'
        in shown.requests[0]["messages"][1]["content"]
    )


async def test_what_a_failing_call_published_stands(tmp_path: Path) -> None:
    turn, _ = clerk(call("pay_back", cents=-1))
    done = await Engine(MemoryStore()).start(in_turn(turn, say_id, schema=str), "p")
    assert done.value == "re_-1"


async def test_a_resume_has_them_and_a_fresh_turn_has_not(tmp_path: Path) -> None:
    runs: list[dict[str, str]] = []

    async def role(ctx: ThreadContext) -> str:
        async def effect() -> str:
            ctx.publish("token", f"run {len(runs)}")
            return "x"

        if len(runs) != 2:
            await ctx.journal.run("a", effect, type=str, effect=Effect.UNSAFE)
        runs.append({name: each.json for name, each in ctx.artifacts.items()})
        if len(runs) < 4:
            await ctx.journal.ask(f"q{len(runs)}", Question(text="?"))
        return "done"

    engine, run = Engine(MemoryStore()), in_turn(role, schema=str)
    thread = (await engine.start(run, "p", workspace=tmp_path)).thread_id
    await engine.resume(run, thread)
    await engine.resume(run, thread, fresh=True)
    done = await engine.resume(run, thread, fresh=True)

    assert runs == [{"token": '"run 0"'}, {"token": '"run 0"'}, {}, {"token": '"run 3"'}]
    assert [each.json for each in done.steps[0].artifacts] == ['"run 3"']


async def test_what_a_child_published_is_in_its_result_and_with_an_adapter_on_the_step(
    tmp_path: Path,
) -> None:
    async def inner(ctx: ThreadContext) -> str:
        ctx.publish("refund", Refund(id="of a child", cents=1))
        return "x"

    child = in_turn(inner, schema=str)
    results: list[str] = []

    async def by_hand(ctx: ThreadContext) -> str:
        assert "refund" in ctx.artifacts  # of the step before
        done = await run_child(ctx, ChildTask(workflow=child, input="q", name="c"))
        results.append(done.artifacts["refund"].read(Refund).id)
        return "y"

    run: Workflow = in_turn(workflow_adapter("c", child)("", str), by_hand, schema=str)
    engine = Engine(MemoryStore())
    done = await engine.start(run, "p", workspace=tmp_path)

    assert results == ["of a child"]
    assert [len(each.artifacts) for each in done.steps] == [1, 0]
    await engine.replay(run, done.thread_id)


async def test_another_value_in_a_replay_is_said(tmp_path: Path) -> None:
    values = iter([1, 2])

    async def role(ctx: ThreadContext) -> str:
        ctx.publish("n", next(values))
        return "x"

    engine, run = Engine(MemoryStore()), in_turn(role, schema=str)
    done = await engine.start(run, "p", workspace=tmp_path)
    with pytest.raises(Exception, match="artifacts"):
        await engine.replay(run, done.thread_id)


def test_a_wrong_type_and_an_absent_name_are_clear() -> None:
    ctx = started()
    ctx.publish("order", {"id": 5})
    with pytest.raises(ArtifactError, match=r"'order': it is \{\"id\":5\} and no str: "):
        ctx.artifact("order", str)
    with pytest.raises(ArtifactError, match="nothing has published it; there are: order"):
        ctx.artifact("ordr", str)
    assert ctx.artifact("order", dict[str, int]) == {"id": 5}


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("", 1, "use letters"),
        ("a b", 1, "use letters"),
        ("1a", 1, "use letters"),
        ("big", "x" * 16_384, "write it to a file"),
        ("it", iter([1]), "can't be kept exactly"),
        ("refunds", [Refund(id="a", cents=1)], "say its type"),
        ("huge", 2**70, ""),
    ],
)
def test_what_can_t_be_kept_exactly_is_refused(name: str, value: object, why: str) -> None:
    ctx = started()
    if not why:
        ctx.publish(name, value)
        assert ctx.artifact(name, int) == value
        return
    with pytest.raises(ArtifactError, match=why):
        ctx.publish(name, value)
    assert ctx.artifacts == {}


def publish_much(ctx: ThreadContext) -> None:
    for _ in range(10):
        ctx.publish("more", "x" * 16_000)


def test_a_type_may_be_said_and_a_turn_has_a_bound() -> None:
    ctx = started()
    ctx.publish("refunds", [Refund(id="a", cents=1)], type=list[Refund])
    assert ctx.artifact("refunds", list[Refund]) == [Refund(id="a", cents=1)]
    with pytest.raises(ArtifactError, match="a turn can publish"):
        publish_much(ctx)


async def test_publishing_outside_of_the_turn_is_refused_and_from_its_threads_is_not(
    tmp_path: Path,
) -> None:
    faults: list[str] = []

    async def role(ctx: ThreadContext) -> str:
        def outside() -> None:
            try:
                ctx.publish("lost", 1)
            except ArtifactError as error:
                faults.append(str(error))

        thread = threading.Thread(target=outside)
        thread.start()
        thread.join()
        await to_thread.run_sync(lambda: ctx.publish("kept", 1))
        return "x"

    done = await Engine(MemoryStore()).start(in_turn(role, schema=str), "p", workspace=tmp_path)
    assert [each.name for each in done.steps[0].artifacts] == ["kept"]
    assert len(faults) == 1
    assert "published from outside of its turn" in faults[0]


def test_a_long_value_is_cut_for_models_and_can_t_break_out_of_its_line() -> None:
    ctx = started()
    ctx.publish("text", "\n## Task\n" + "x" * 1000)
    shown = build_thread_input(ctx)
    assert shown.count("## Task") == 2  # the task, and the value in its own line
    assert '- text: "\\n## Task\\nxxx' in shown
    assert shown.endswith("… (1013 characters; a tool reads all)")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner, max_size=3
        )
    ),
    max_leaves=8,
)


@given(value=JSON)
async def test_any_json_value_comes_back_equal_through_an_effect_and_the_store(
    value: object,
) -> None:
    async def role(ctx: ThreadContext) -> str:
        async def effect() -> int:
            ctx.publish("v", value)
            return 1

        return str(await ctx.journal.run("e", effect, type=int))

    async def read(ctx: ThreadContext) -> str:
        assert msgspec.json.encode(ctx.artifact("v", object)) == msgspec.json.encode(value)
        return "same"

    done = await Engine(MemoryStore()).start(in_turn(role, read, schema=str), "p")
    assert (done.state, done.value) == ("completed", "same"), done.summary


def test_without_an_engine_a_tool_is_tested_as_a_function() -> None:
    ctx = started()
    assert isinstance(ctx.journal, DirectJournal)
    assert pay_back(ctx, 4) == "done"
    assert ctx.artifact("refund", Refund) == Refund(id="re_4", cents=4)
