"""What pyright must accept, with the types it must see. Checked by tests/test_typing.py."""

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar, Unpack, assert_type

import msgspec
import pydantic

from workflow_agent_llm import create_llm_adapter
from workflow_agent_react import CallHistory, ReactAdapterConfig, Toolset, tool, workspace_tools
from workflow_execute import (
    ChildResult,
    ChildTask,
    Engine,
    EventsMissed,
    ThreadHandle,
    ThreadResult,
    Workflow,
    create_workflow,
    function_adapter,
    run_child,
    run_children,
    run_sync,
    run_workflow,
    workflow_adapter,
)
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    DirectJournal,
    Effect,
    Event,
    Journal,
    Metered,
    RoleDefinition,
    RoleFn,
    RunOptions,
    ScopedJournal,
    ThreadContext,
    Usage,
    WorkflowDefinition,
    otherwise,
    when,
)
from workflow_reactor.testing import ScriptedLlm

T = TypeVar("T")


class Plan(pydantic.BaseModel):
    phases: list[str]


class Review(msgspec.Struct):
    approved: bool


planner = RoleDefinition(name="planner", system_prompt="", schema=Plan)
reviewer = RoleDefinition(name="reviewer", system_prompt="", schema=Review)
names = RoleDefinition(name="names", system_prompt="", schema=list[str])
word = RoleDefinition(name="word", system_prompt="", schema=Literal["go", "stop"])
either = RoleDefinition(name="either", system_prompt="", schema=Plan | Review)


def conditions(ctx: ThreadContext) -> None:
    assert_type(ctx.meta(planner), Plan | None)
    assert_type(ctx.meta(reviewer), Review | None)
    assert_type(ctx.meta(names), list[str] | None)
    assert_type(ctx.meta(word), Literal["go", "stop"] | None)
    assert_type(ctx.meta(either), Plan | Review | None)
    review = ctx.meta(reviewer)
    if review is not None:
        assert_type(review.approved, bool)


adapter = create_llm_adapter(ScriptedLlm([]))
assert_type(adapter("prompt", Plan), RoleFn[Plan])
workflow = create_workflow(
    WorkflowDefinition(table={START: planner, planner: reviewer, reviewer: END}),
    AdapterBinding(adapter, overrides={reviewer: adapter, "planner": adapter}),
)
assert_type(workflow, Workflow[str, object])


def accepted(ctx: ThreadContext) -> bool:
    return ctx.visits(planner) > 1


def reasons(ctx: ThreadContext) -> str:
    return f"{ctx.visits(reviewer)} reviews"


table = {
    START: planner,
    planner: (word, reviewer),
    word: when(accepted, END),
    reviewer: [
        when(accepted, END),
        when(accepted, word, tell="Go."),
        otherwise(word, tell=reasons),
    ],
    either: "names",
    names: END,
}
assert_type(WorkflowDefinition(table=table), WorkflowDefinition[str, object])
assert_type(WorkflowDefinition(table=table, result=names), WorkflowDefinition[str, list[str]])
assert_type(WorkflowDefinition(table=table, input=Plan), WorkflowDefinition[Plan, object])
typed = WorkflowDefinition(table=table, input=Plan, result=either, description="d")
assert_type(typed, WorkflowDefinition[Plan, Plan | Review])
anything: WorkflowDefinition[Plan] = typed
overrides = {reviewer: adapter}
by_name = {"reviewer": adapter}
bindings = [
    AdapterBinding(adapter),
    AdapterBinding(adapter, overrides),
    AdapterBinding(overrides=by_name),
    AdapterBinding(None, overrides={reviewer: adapter}),
]
assert_type(create_workflow(typed, bindings[0]), Workflow[Plan, Plan | Review])


def convert(result: ChildResult) -> Plan:
    assert_type(result.read(Review), Review)
    assert_type(result.read(list[str]), list[str])
    return Plan(phases=[result.summary])


child = workflow_adapter("child", workflow, convert=convert)
assert_type(child("prompt", Plan), RoleFn[Plan])
nested = AdapterBinding(adapter, overrides={planner: child, "reviewer": child})


class BigPlan(Plan):
    size: int


async def plans(ctx: ThreadContext) -> Plan:
    return Plan(phases=[ctx.start.prompt])


def plans_big(ctx: ThreadContext) -> BigPlan:
    return BigPlan(phases=[], size=len(ctx.steps))


async def lists(ctx: ThreadContext) -> list[str]:
    return [step.role for step in ctx.steps]


code = {
    planner: function_adapter(planner, plans),
    names: function_adapter(names, lists, effect=Effect.READ),
    either: function_adapter(either, plans_big),
    word: function_adapter(word, lambda ctx: "go"),
    reviewer: adapter,
}
AdapterBinding(overrides=code)


class Counting(DirectJournal):
    """A journal of one's own, which passes on what it is given."""

    calls = 0

    async def run(
        self, key: str, perform: Callable[[], Awaitable[T]], **options: Unpack[RunOptions[T]]
    ) -> T:
        self.calls += 1
        return await super().run(key, perform, **options)


async def pages() -> list[str]:
    return []


metered = Metered[list[str]](model="m", at_most=Usage, used=lambda pages: Usage(calls=len(pages)))


async def results(ctx: ThreadContext) -> list[str]:
    assert_type(await ctx.journal.run("a", pages, type=list[str]), list[str])
    journal: Journal = ScopedJournal(Counting(), "scope")
    return await journal.run(
        "b",
        pages,
        type=list[str],
        effect=Effect.UNSAFE,
        digest="",
        request=lambda: b"",
        metered=metered,
    )


def other_models(run: Workflow, writer: RoleDefinition[Plan], llm: ScriptedLlm) -> None:
    """Models stand in by role, by name, and from a variable."""
    by_role = {writer: llm}
    with run.using(llm), run.using({writer: llm, "critic": "openai/gpt-4.1"}), run.using(by_role):
        pass


@tool(effect=Effect.READ)
async def find(ctx: ThreadContext, history: CallHistory, word: str, limit: int = 3) -> list[str]:
    """Find a word."""
    return [word] * (limit + len(history.calls) + ctx.depth)


@tool
def count(numbers: list[int]) -> int:
    """Count."""
    return len(numbers)


async def tools_are_functions(ctx: ThreadContext) -> None:
    assert_type(await find(ctx, CallHistory(), "a", limit=2), list[str])
    assert_type(count([1]), int)


def undecorated(path: str) -> str:
    """Read."""
    return path


some_tools = [find, count]
composed = [
    ReactAdapterConfig(llm=ScriptedLlm([]), toolset=count),
    ReactAdapterConfig(llm=ScriptedLlm([]), toolset=[find, undecorated, workspace_tools()]),
    ReactAdapterConfig(llm=ScriptedLlm([]), toolset=some_tools),
    ReactAdapterConfig(llm=ScriptedLlm([]), toolset=Toolset.combine(find, workspace_tools())),
]


async def typed_ends(engine: Engine, ctx: ThreadContext) -> None:
    run = create_workflow(typed, AdapterBinding(adapter))
    result = await engine.start(run, Plan(phases=[]))
    assert_type(result, ThreadResult[Plan | Review])
    assert_type(result.value, Plan | Review)
    assert_type(result.of(reviewer), Review | None)
    assert_type(ctx.input(Plan), Plan)
    assert_type((await engine.resume(run, result.thread_id)).value, Plan | Review)
    assert_type((await run_workflow(workflow, "text")).value, object)
    await engine.fork(result.thread_id, prompt="{}", workflow=run)


async def services(engine: Engine) -> None:
    run = create_workflow(typed, bindings[0])
    async with engine.running(wait_s=1) as running:
        assert_type(running, Engine)
        handle = await running.submit(run, Plan(phases=[]), key="k", tags={"customer": "42"})
        assert_type(handle, ThreadHandle[Plan | Review])
        assert_type(await handle, ThreadResult[Plan | Review])
        assert_type((await handle).value, Plan | Review)
        async for event in handle:
            assert_type(event, Event | EventsMissed)
        assert_type(await running.handle(run, handle.id), ThreadHandle[Plan | Review])
        await running.submit(workflow, "text", tags=["a"])
        recovery = await running.recover({"plans": run, "reviews": workflow})
        await running.recover([run, workflow])
        assert_type((await recovery.taken[0]).value, object)
    assert_type(run_sync(run, Plan(phases=[])), ThreadResult[Plan | Review])


async def children_are_typed(ctx: ThreadContext) -> list[Plan]:
    """A task has the input type of its workflow, and what a child came to is of its result's."""
    run = create_workflow(typed, AdapterBinding(adapter))
    task = run.task(Plan(phases=[]), key="one")
    assert_type(task, ChildTask[Plan | Review])
    assert_type(await run_child(ctx, task), ChildResult[Plan | Review])
    assert_type((await run_child(ctx, task)).value, Plan | Review)
    assert_type(workflow.task("text"), ChildTask[object])
    by_name = ChildTask(input="text", name="registered", key="two")
    assert_type(by_name, ChildTask[object])
    mixed: list[ChildTask] = [task, by_name, workflow.task("text")]
    assert_type([each.value for each in await run_children(ctx, mixed)], list[object])
    planning = WorkflowDefinition(table={START: planner, planner: END}, result=planner)
    plan = create_workflow(planning, AdapterBinding(adapter))
    found = await run_children(ctx, [plan.task(word, key=word) for word in ("a", "b")])
    assert_type(found, list[ChildResult[Plan]])
    assert_type(await run_child(ctx, workflow.task("t", key="three")), ChildResult[object])
    as_role = {planner: workflow_adapter("plan", plan), "reviewer": workflow_adapter("by-name")}
    create_workflow(typed, AdapterBinding(adapter, as_role))
    return [each.value for each in found]
