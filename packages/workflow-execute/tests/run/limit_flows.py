"""Workflows that go on until a limit ends them."""

from collections.abc import Awaitable, Callable

from workflow_execute import (
    ChildTask,
    StoredStep,
    ThreadResult,
    Workflow,
    create_workflow,
    run_child,
)
from workflow_execute.testing import adapter_of
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Metered,
    ModelReplied,
    OwnLimits,
    RoleDefinition,
    ThreadContext,
    Usage,
    WorkflowDefinition,
)

WORKER = RoleDefinition(name="worker", system_prompt="Work.", schema=str)
CHECKER = RoleDefinition(name="checker", system_prompt="Check.", schema=str)
BOSS = RoleDefinition(name="boss", system_prompt="Decide.", schema=str)
CALLS = Metered[str](
    model="m",
    at_most=lambda: Usage(output_tokens=50),
    used=lambda _: Usage(input_tokens=6, output_tokens=4, calls=1),
)
Turn = Callable[[ThreadContext], Awaitable[str]]


def never(ctx: ThreadContext) -> bool:
    """No thread ends by itself here."""
    del ctx
    return False


async def ask(ctx: ThreadContext, key: str, made: Callable[[], object] = str) -> str:
    """Call the model; `made` is called when that is done and not recorded yet."""

    async def perform() -> str:
        made()
        return key

    request = f"{key} of {len(ctx.steps)}".encode()
    said = await ctx.journal.run(key, perform, type=str, request=lambda: request, metered=CALLS)
    await ctx.journal.note(ModelReplied(key=key, round=0, usage=CALLS.used(said)))
    return said


async def work(ctx: ThreadContext) -> str:
    """Two model calls."""
    await ask(ctx, "llm/0")
    return await ask(ctx, "llm/1")


async def decide(ctx: ThreadContext) -> str:
    failure = ctx.failure(WORKER) or ctx.failure(CHECKER)
    assert failure is not None
    return f"{await ask(ctx, 'llm/0')} after {failure.limit}"


def endless(
    worker: Turn = work, *, boss: Turn = decide, limits: OwnLimits | None = None, route: bool = True
) -> Workflow[str, object]:
    """A worker and a checker that go round for ever, if no limit ends it."""
    definition = WorkflowDefinition(
        table={START: WORKER, WORKER: CHECKER, CHECKER: WORKER, BOSS: END},
        at_limit=BOSS if route else None,
        on_failure={} if route else {CHECKER: BOSS},
        limits=limits or {},
    )
    overrides = {WORKER: adapter_of(worker), BOSS: adapter_of(boss)}
    return create_workflow(definition, AdapterBinding(adapter_of(work), overrides=overrides))


def charged(step: StoredStep) -> int:
    """The tokens that a step counts against limits."""
    usage, counted = step.record.usage, step.record.charged_tokens
    return usage.input_tokens + usage.output_tokens if counted is None else counted


def roles(done: ThreadResult[object]) -> list[str]:
    return [step.role for step in done.steps]


def above(
    child: Workflow[str, object], *, limits: OwnLimits | None = None, route: bool = True
) -> Workflow[str, object]:
    """One whose worker starts a child."""

    async def start_child(ctx: ThreadContext) -> str:
        return (await run_child(ctx, ChildTask(workflow=child, input="c", name="child"))).read(str)

    return endless(start_child, limits=limits, route=route)
