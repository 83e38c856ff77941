"""The spans of a run: which there are, below which, and how each ends."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind

from workflow_agent_react import Allow, Ask, Deny, ProposedCall, Toolset, tool
from workflow_cas import Entry, MemoryStore, RefMove, Stored, StoreError
from workflow_execute import (
    ChildTask,
    Engine,
    Limits,
    create_supervisor,
    create_workflow,
    run_child,
    run_children,
)
from workflow_otel import SEMCONV_SCHEMA_URL, OtelObserver
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Answer,
    Effect,
    Question,
    RoleDefinition,
    ThreadContext,
    WorkflowDefinition,
)
from workflow_reactor.testing import (
    ScriptedLlm,
    Wire,
    call,
    function,
    http,
    loopback_server,
    say,
    turn,
)

from .traced import (
    READER,
    Traced,
    doing,
    events,
    has_error,
    one_role,
    parent_id,
    react,
    span_id,
    trace_id,
)

REFUSED = Wire(data=http(401, b'{"error": {"message": "bad key"}}'))
BUSY = Wire(data=http(503, b"", {"Retry-After": "0"}))


@tool(effect=Effect.READ)
async def look(place: str = "") -> str:
    """Look."""
    return f"seen {place}"


LOOK = Toolset.combine(look)


def scripted(*replies: bytes) -> ScriptedLlm:
    return ScriptedLlm(list(replies))


async def test_a_run_is_a_tree_of_workflow_agent_chat_and_tool() -> None:
    traced = Traced()
    workflow = react(LOOK, llm=scripted(call("look", place="a"), call("resolve", value=1)))

    result = await Engine(MemoryStore(), observer=traced.observer).start(
        workflow, "p", name="reading"
    )

    assert result.state == "completed", result.error
    assert traced.tree() == [
        (
            "invoke_workflow reading",
            [("invoke_agent reader", ["chat scripted", "execute_tool look", "chat scripted"])],
        )
    ]
    thread = result.thread_id
    run, role, chat, called, _ = [dict(each.attributes or {}) for each in traced.spans]
    assert run == {
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "reading",
        "gen_ai.conversation.id": thread,
        "uwf.resumed": False,
        "uwf.state": "completed",
        "uwf.return_code": 0,
    }
    assert role == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "reader",
        "gen_ai.conversation.id": thread,
        "uwf.step": 0,
        "uwf.resumed": False,
    }
    assert (
        chat.items()
        >= {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "scripted",
            "gen_ai.request.model": "scripted",
            "gen_ai.response.model": "scripted",
            "gen_ai.response.finish_reasons": ("tool_calls",),
            "gen_ai.usage.input_tokens": 10,
            "gen_ai.usage.output_tokens": 5,
            "gen_ai.conversation.id": thread,
            "gen_ai.agent.name": "reader",
            "uwf.key": "llm/0",
        }.items()
    )
    assert (
        called.items()
        >= {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "look",
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": "k1",
            "uwf.key": "tool/0/0",
        }.items()
    )
    kinds = {each.name: each.kind for each in traced.spans}
    assert kinds.pop("chat scripted") is SpanKind.CLIENT
    assert set(kinds.values()) == {SpanKind.INTERNAL}
    scopes = {each.instrumentation_scope for each in traced.spans}
    assert {scope.schema_url for scope in scopes if scope} == {SEMCONV_SCHEMA_URL}
    assert {has_error(each) for each in traced.spans} == {(False, None)}


async def test_parallel_tools_lie_side_by_side_and_hold_the_spans_that_they_make() -> None:
    traced = Traced()
    own = trace.get_tracer("own", tracer_provider=traced.provider)
    both = anyio.Event()
    began: list[str] = []

    @tool(effect=Effect.READ)
    async def fetch(place: str) -> str:
        """Fetch."""
        began.append(place)
        if len(began) == 2:
            both.set()
        with anyio.fail_after(5):
            await both.wait()
        with own.start_as_current_span(f"GET {place}"):
            await anyio.to_thread.run_sync(own.start_span(f"inside {place}").end)
        return place

    calls = [function("fetch", place=each, id=each) for each in ("a", "b")]
    workflow = react(
        Toolset.combine(fetch), llm=scripted(say(None, *calls), call("resolve", value=1))
    )

    await Engine(MemoryStore(), observer=traced.observer).start(workflow, "p")

    (role,) = traced.named("invoke_agent reader")
    tools = {
        str((each.attributes or {})["gen_ai.tool.call.id"]): each
        for each in traced.named("execute_tool fetch")
    }
    assert tools.keys() == {"a", "b"}
    for place, span in tools.items():
        assert parent_id(span) == span_id(role)
        assert parent_id(traced.one(f"GET {place}")) == span_id(span)
        assert parent_id(traced.one(f"inside {place}")) == span_id(traced.one(f"GET {place}"))
    assert len({trace_id(each) for each in traced.spans}) == 1


async def test_what_a_tool_does_in_another_thread_is_below_it() -> None:
    traced = Traced()
    own = trace.get_tracer("own", tracer_provider=traced.provider)

    @tool(effect=Effect.READ)
    def dig() -> str:
        """Dig, in a worker thread if the toolset runs it there."""
        with own.start_as_current_span("digging"):
            return "done"

    workflow = react(Toolset.combine(dig), llm=scripted(call("dig"), call("resolve", value=1)))
    await Engine(MemoryStore(), observer=traced.observer).start(workflow, "p")

    assert parent_id(traced.one("digging")) == span_id(traced.one("execute_tool dig"))


async def test_parallel_children_are_below_the_role_that_started_them() -> None:
    traced = Traced()
    both = anyio.Event()
    began: list[str] = []

    async def wait(ctx: ThreadContext) -> int:
        began.append(ctx.thread_id)
        if len(began) == 2:
            both.set()
        with anyio.fail_after(5):
            await both.wait()
        return 1

    below = one_role(doing(wait))

    async def split(ctx: ThreadContext) -> int:
        tasks = [ChildTask(workflow=below, input=each, name=each) for each in ("left", "right")]
        return len(await run_children(ctx, tasks))

    result = await Engine(MemoryStore(), observer=traced.observer).start(
        one_role(doing(split)), "p", name="above"
    )

    assert result.state == "completed", result.error
    ((above, ((role, children),)),) = traced.tree()
    assert (above, role) == ("invoke_workflow above", "invoke_agent reader")
    assert sorted(children) == [
        ("invoke_workflow left", ["invoke_agent reader"]),
        ("invoke_workflow right", ["invoke_agent reader"]),
    ]
    left = dict(traced.one("invoke_workflow left").attributes or {})
    assert left["uwf.parent_thread"] == result.thread_id
    assert left["gen_ai.conversation.id"] in began


async def test_a_child_that_a_tool_starts_is_below_the_tool() -> None:
    traced = Traced()
    below = react(llm=scripted(call("resolve", value=1)))

    @tool(effect=Effect.REPEATABLE)
    async def delegate(ctx: ThreadContext) -> str:
        """Let another thread do it."""
        child = await run_child(ctx, ChildTask(workflow=below, input="c", name="below"))
        return str(child.value)

    workflow = react(
        Toolset.combine(delegate), llm=scripted(call("delegate"), call("resolve", value=2))
    )
    result = await Engine(MemoryStore(), observer=traced.observer).start(workflow, "p")

    assert result.state == "completed", result.error
    assert parent_id(traced.one("invoke_workflow below")) == span_id(
        traced.one("execute_tool delegate")
    )
    assert len({trace_id(each) for each in traced.spans}) == 1


async def test_a_trace_goes_on_below_the_span_of_the_caller() -> None:
    traced = Traced()
    own = trace.get_tracer("own", tracer_provider=traced.provider)
    workflow = react(llm=scripted(call("resolve", value=1)))

    with own.start_as_current_span("POST /tasks") as request:
        await Engine(MemoryStore(), observer=traced.observer).start(workflow, "p")
        assert trace.get_current_span() is request

    assert parent_id(traced.one("invoke_workflow workflow")) == span_id(traced.one("POST /tasks"))


async def test_a_resume_is_a_trace_of_its_own_with_a_link_and_counts_nothing_twice() -> None:
    traced = Traced()
    engine = Engine(MemoryStore(), observer=traced.observer)
    script = [call("look"), REFUSED, call("look"), call("resolve", value=1)]
    async with loopback_server(script) as server:
        workflow = react(LOOK, provider=server.provider())
        failed = await engine.start(workflow, "p")
        first = traced.spans
        traced.exporter.clear()
        resumed = await engine.resume(workflow, failed.thread_id)

    assert (failed.state, resumed.state) == ("failed", "completed")
    (run, *_), (again, role, *_) = first, traced.spans
    assert trace_id(again) != trace_id(run)
    assert again.parent is None
    assert [(each.context.trace_id, each.context.span_id) for each in again.links] == [
        (trace_id(run), span_id(run))
    ]
    assert (again.attributes or {})["uwf.resumed"] is True
    recorded = [(name, values["uwf.key"]) for name, values in events(role)]
    assert recorded == [("uwf.recorded", "llm/0"), ("uwf.recorded", "tool/0/0")]
    assert [each.name.partition(" ")[0] for each in traced.spans] == [
        "invoke_workflow", "invoke_agent", "chat", "execute_tool", "chat",
    ]  # fmt: skip
    used = [
        (each.attributes or {}).get("gen_ai.usage.input_tokens") for each in [*first, *traced.spans]
    ]
    assert (
        sum(int(str(each)) for each in used if each is not None)
        == resumed.steps[0].usage.input_tokens
    )
    assert traced.tokens() == {"input": 30, "output": 15}


async def test_a_replay_makes_no_spans_and_counts_nothing() -> None:
    traced = Traced()
    engine = Engine(MemoryStore(), observer=traced.observer)
    workflow = react(LOOK, llm=scripted(call("look"), call("resolve", value=1)))
    result = await engine.start(workflow, "p")
    traced.exporter.clear()
    before = traced.tokens()

    await engine.replay(workflow, result.thread_id)

    assert traced.spans == []
    assert traced.tokens() in (before, {})


async def test_a_question_ends_the_spans_and_is_an_event() -> None:
    def ask(call: ProposedCall, ctx: ThreadContext) -> Allow | Ask:
        return Ask("May it look?") if call.name == "look" else Allow()

    traced = Traced()
    engine = Engine(MemoryStore(), observer=traced.observer)
    workflow = react(
        LOOK,
        llm=scripted(call("look"), call("resolve", value=1)),
        guards=[ask],
    )

    waits = await engine.start(workflow, "p")

    assert waits.state == "suspended"
    run = traced.one("invoke_workflow workflow")
    assert (run.attributes or {})["uwf.state"] == "suspended"
    assert has_error(run) == (False, None)
    assert events(run) == [("uwf.suspended", {"uwf.cause": "question"})]
    role = traced.one("invoke_agent reader")
    assert has_error(role) == (False, None)
    assert (role.attributes or {})["uwf.waits"] is True

    traced.exporter.clear()
    await engine.answer(waits.thread_id, None, Answer(approved=True))
    assert (await engine.resume(workflow, waits.thread_id)).state == "completed"
    assert len(traced.named("execute_tool look")) == 1


async def test_a_cancelled_run_ends_all_its_spans() -> None:
    traced = Traced()
    began = anyio.Event()

    @tool(effect=Effect.READ)
    async def stay() -> str:
        """Stay for good."""
        began.set()
        await anyio.sleep_forever()
        return ""

    workflow = react(Toolset.combine(stay), llm=scripted(call("stay")))
    async with anyio.create_task_group() as group:
        group.start_soon(Engine(MemoryStore(), observer=traced.observer).start, workflow, "p")
        with anyio.fail_after(5):
            await began.wait()
        group.cancel_scope.cancel()

    assert traced.tree() == [
        (
            "invoke_workflow workflow",
            [("invoke_agent reader", ["chat scripted", "execute_tool stay"])],
        )
    ]
    ends = {each.name: has_error(each) for each in traced.spans}
    assert ends.pop("chat scripted") == (False, None)
    assert set(ends.values()) == {(True, "cancelled")}


async def test_a_provider_that_fails_marks_the_call_the_role_and_the_run() -> None:
    traced = Traced()
    async with loopback_server([BUSY, REFUSED]) as server:
        workflow = react(provider=server.provider(max_attempts=2))
        await Engine(MemoryStore(), observer=traced.observer).start(workflow, "p")

    assert {has_error(each) for each in traced.spans} == {(True, "ProviderRefused")}
    (chat,) = [each for each in traced.spans if each.name.startswith("chat")]
    ((name, values),) = events(chat)
    assert (name, values["uwf.retry.attempt"]) == ("uwf.retry", 1)
    assert values.keys() == {"uwf.retry.attempt", "uwf.retry.wait_s"}


async def test_a_tool_that_is_denied_or_fails_has_an_error_and_the_run_has_none() -> None:
    traced = Traced()

    @tool(effect=Effect.READ)
    async def fail() -> str:
        """Fail."""
        raise ValueError("no")

    def guard(call: ProposedCall, ctx: ThreadContext) -> Allow | Deny:
        return Deny("not here") if call.name == "look" else Allow()

    script = scripted(call("look"), call("fail"), call("nonsense"), call("resolve", value=1))
    workflow = react(LOOK, Toolset.combine(fail), llm=script, guards=[guard])
    result = await Engine(MemoryStore(), observer=traced.observer).start(workflow, "p")

    assert result.state == "completed", result.error
    failed = {each.name: has_error(each)[1] for each in traced.spans if has_error(each)[0]}
    assert failed == {
        "execute_tool look": "denied",
        "execute_tool fail": "ValueError",
        "execute_tool": "unknown_tool",  # what the model wrote there may be anything
    }


async def test_a_tool_that_asks_waits_and_is_no_failure() -> None:
    traced = Traced()

    @tool(effect=Effect.UNSAFE)
    async def deploy(ctx: ThreadContext) -> str:
        """Deploy, if a person says so."""
        answer = await ctx.journal.ask("deploy", Question(text="Deploy?"))
        return "deployed" if answer.approved else "not deployed"

    llm = scripted(call("deploy"), call("resolve", value=1))
    engine = Engine(MemoryStore(), observer=traced.observer)
    waits = await engine.start(react(Toolset.combine(deploy), llm=llm), "p")

    assert waits.state == "suspended"
    deploying = traced.one("execute_tool deploy")
    assert has_error(deploying) == (False, None)
    assert (deploying.attributes or {})["uwf.waits"] is True


async def test_a_call_that_a_limit_forbids_waits_and_is_not_counted() -> None:
    traced = Traced()
    limited = Engine(MemoryStore(), observer=traced.observer, limits=Limits(max_rounds=1))
    await limited.start(react(llm=scripted(say("nothing"))), "p")

    waits = [(each.attributes or {}).get("uwf.waits") for each in traced.named("chat scripted")]
    assert waits == [None, True]
    (duration,) = traced.points("gen_ai.client.operation.duration")
    assert duration.count == 1


class FullStore(MemoryStore):
    """A store that takes nothing more from some moment on."""

    full = False

    async def commit(
        self,
        objects: Sequence[Stored],
        moves: Sequence[RefMove] = (),
        entries: Sequence[Entry] = (),
    ) -> None:
        if self.full:
            raise StoreError("the disk is full")
        await super().commit(objects, moves, entries)


async def test_spans_end_also_where_the_store_takes_no_end() -> None:
    traced, store = Traced(), FullStore()

    async def fill(ctx: ThreadContext) -> int:
        store.full = True
        return 1

    with pytest.raises(StoreError):
        await Engine(store, observer=traced.observer).start(one_role(doing(fill)), "p")

    assert traced.tree() == [("invoke_workflow workflow", ["invoke_agent reader"])]
    assert {has_error(each) for each in traced.spans} == {(True, "StoreError")}


async def test_a_limit_is_no_error_and_an_event() -> None:
    traced = Traced()

    async def one(ctx: ThreadContext) -> int:
        return 1

    workflow = one_role(doing(one))
    limited = Engine(MemoryStore(), observer=traced.observer, limits=Limits(max_steps=0))
    await limited.start(workflow, "p")

    run = traced.one("invoke_workflow workflow")
    assert has_error(run) == (False, None)
    assert events(run) == [("uwf.suspended", {"uwf.cause": "limit"})]


@pytest.mark.parametrize("dialect", ["native", "json", "xml"])
async def test_every_dialect_gives_the_same_tree(dialect: str) -> None:
    replies = {
        "native": (call("look", place="a"), call("resolve", value=1)),
        "json": (turn("look", place="a"), turn("resolve", value=1)),
        "xml": (
            say('<action>look(place="a")</action>'),
            say("<final_answer>1</final_answer>"),
        ),
    }[dialect]
    traced = Traced()
    workflow = react(LOOK, llm=scripted(*replies), dialect=dialect)

    result = await Engine(MemoryStore(), observer=traced.observer).start(workflow, "p")

    assert result.state == "completed", result.error
    ((_, ((_, calls),)),) = traced.tree()
    assert calls == ["chat scripted", "execute_tool look", "chat scripted"]


async def test_an_exporter_that_raises_harms_no_run(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(SpanExporter):
        def export(self, spans: object) -> SpanExportResult:
            raise RuntimeError("bad exporter")

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(Broken()))
    observer = OtelObserver(tracer_provider=provider)
    workflow = react(LOOK, llm=scripted(call("look"), call("resolve", value=1)))

    result = await Engine(MemoryStore(), observer=observer).start(workflow, "p")

    assert result.state == "completed"
    assert "bad exporter" in caplog.text


async def test_without_an_sdk_nothing_is_made_and_no_trace_is_kept() -> None:
    observer = OtelObserver()
    store = MemoryStore()
    workflow = react(llm=scripted(call("resolve", value=1)))

    result = await Engine(store, observer=observer).start(workflow, "p")

    assert result.state == "completed"
    assert observer.traceparent(result.thread_id) == ""


async def test_what_the_supervisor_asks_is_below_the_run_between_the_roles() -> None:
    traced = Traced()
    watcher = scripted(call("resolve", decision="continue", reason="fine"))
    first = RoleDefinition(name="first", system_prompt="", schema=int)

    async def one(ctx: ThreadContext) -> int:
        return 1

    workflow = create_workflow(
        WorkflowDefinition(table={START: first, first: READER, READER: END}),
        AdapterBinding(doing(one)),
    )
    engine = Engine(
        MemoryStore(),
        observer=traced.observer,
        supervisor=create_supervisor(watcher),
        supervise_every=1,
    )

    result = await engine.start(workflow, "p")

    assert result.state == "completed", result.error
    assert traced.tree() == [
        (
            "invoke_workflow workflow",
            ["invoke_agent first", "chat scripted", "invoke_agent reader"],
        )
    ]


@pytest.mark.parametrize(
    ("told", "name"),
    [
        ("api.mistral.ai", "mistral_ai"),
        ("some.openai.azure.com", "azure.ai.openai"),
        ("local", "local"),
    ],
)
async def test_a_provider_has_the_name_that_the_conventions_give_it(told: str, name: str) -> None:
    traced = Traced()
    async with loopback_server([call("resolve", value=1)]) as server:
        workflow = react(provider=server.provider(name=told))
        await Engine(MemoryStore(), observer=traced.observer).start(workflow, "p")

    assert (traced.one("chat scripted").attributes or {})["gen_ai.provider.name"] == name
