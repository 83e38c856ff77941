"""Each line marked `error` must be refused by pyright. Checked by tests/test_typing.py."""

import msgspec

from workflow_execute import (
    ChildTask,
    Engine,
    Workflow,
    create_workflow,
    function_adapter,
    run_child,
    run_children,
    run_sync,
    workflow_adapter,
)
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Effect,
    Metered,
    RoleDefinition,
    ThreadContext,
    Usage,
    WorkflowDefinition,
    otherwise,
    when,
)


class Plan(msgspec.Struct):
    phases: int


class Review(msgspec.Struct):
    approved: bool


planner = RoleDefinition(name="planner", system_prompt="", schema=Plan)
wrong_schema = RoleDefinition(name="x", system_prompt="", schema=3)  # error
not_a_type = RoleDefinition(name="x", system_prompt="", schema=Plan(1))  # error


def conditions(ctx: ThreadContext) -> Review | None:
    ctx.meta("planner")  # error
    ctx.depth = 3  # error
    return ctx.meta(planner)  # error


async def not_an_adapter(prompt: str) -> str:
    return prompt


binding = AdapterBinding(not_an_adapter)  # error
keyed = AdapterBinding(overrides={3: not_an_adapter})  # error
WorkflowDefinition(table={START: 3})  # error
WorkflowDefinition(table={3: planner})  # error
WorkflowDefinition(table={START: (planner, 3)})  # error
WorkflowDefinition(table={START: planner}, result="planner")  # error
WorkflowDefinition(table={START: planner}, input=3)  # error
WorkflowDefinition(table={START: planner}, roles=[planner])  # error


async def later(ctx: ThreadContext) -> bool:
    return ctx.depth == 0


def count_steps(ctx: ThreadContext) -> int:
    return len(ctx.steps)


async def reviews(ctx: ThreadContext) -> Review:
    return Review(approved=not ctx.steps)


def plans(ctx: ThreadContext, more: int) -> Plan:
    return Plan(len(ctx.steps) + more)


function_adapter(planner, reviews)  # error
function_adapter(planner, count_steps)  # error
function_adapter(planner, plans)  # error
function_adapter(planner, lambda ctx: Review(approved=True))  # error
function_adapter("planner", reviews)  # error
when(later, planner)  # error
when(count_steps, planner)  # error
when(lambda ctx: ctx.nothing, planner)  # error
when(lambda ctx: True, planner, tell=count_steps)  # error
otherwise(planner)  # error


async def count() -> int:
    return 1


of_text = Metered[str](model="m", at_most=Usage, used=lambda text: Usage(calls=len(text)))


async def effects(ctx: ThreadContext) -> int:
    await ctx.journal.run("a", count)  # error
    await ctx.journal.run("b", count, type=int, efect=Effect.UNSAFE)  # error
    await ctx.journal.run("c", count, type=int, effect="unsafe")  # error
    await ctx.journal.run("d", count, type=int, request=b"")  # error
    await ctx.journal.run("e", count, type=int, metered=of_text)  # error
    await ctx.journal.run("f", count, type=Review(approved=True))  # error
    await ctx.scoped("s").journal.run("g", count, int)  # error
    return await ctx.journal.run("h", count, type=str)  # error


async def typed_ends(engine: Engine, run: Workflow[Plan, Review], ctx: ThreadContext) -> Plan:
    await engine.start(run, "text")  # error
    await engine.start(run, Review(approved=True))  # error
    result = await engine.start(run, Plan(1))
    result.of("planner")  # error
    ctx.input(Plan(1))  # error
    return result.value  # error


async def submits(engine: Engine) -> None:
    run = create_workflow(
        WorkflowDefinition(table={START: planner, planner: END}, input=Plan, result=planner),
        AdapterBinding(),
    )
    await engine.submit(run, "text")  # error
    await engine.submit(run, Review(approved=True))  # error
    handle = await engine.submit(run, Plan(phases=1))
    len((await handle).value)  # error
    run_sync(run, "text")  # error
    await engine.recover({3: run})  # error


async def children(ctx: ThreadContext, run: Workflow[Plan, Review]) -> list[Plan]:
    run.task("text")  # error
    run.task(Review(approved=True))  # error
    run.task(Plan(1), "key")  # error
    run.task(key="one")  # error
    ChildTask(name="registered")  # error
    await run_child(ctx, run)  # error
    await run_children(ctx, run.task(Plan(1)))  # error
    await run_children(ctx, [run])  # error
    done = await run_child(ctx, run.task(Plan(1)))
    assert done.value.phases  # error
    assert done.last_value.approved  # error
    found = await run_children(ctx, [run.task(Plan(1))])
    return [each.value for each in found]  # error


def gives_a_child(ctx: ThreadContext, run: Workflow[Plan, Review]) -> ChildTask[Plan]:
    workflow_adapter(run)  # error
    workflow_adapter("plan", "plan")  # error
    workflow_adapter("plan", run, convert=count_steps)  # error
    return run.task(Plan(len(ctx.steps)))  # error


def bound(definition: WorkflowDefinition[Plan, Review], run: Workflow[Plan, Review]) -> None:
    code = function_adapter(planner, lambda ctx: Plan(len(ctx.steps)))
    AdapterBinding(overrides={planner: reviews})  # error
    AdapterBinding(overrides={planner: run})  # error
    AdapterBinding(overrides={planner: "model"})  # error
    AdapterBinding(overrides=[code])  # error
    AdapterBinding(code, code)  # error
    create_workflow(definition, code)  # error
    create_workflow(AdapterBinding(code), definition)  # error
    text: Workflow[str, Review] = create_workflow(definition, AdapterBinding(code))  # error
    other: Workflow[Plan, Plan] = create_workflow(definition, AdapterBinding(code))  # error
    text.using(other)  # error
