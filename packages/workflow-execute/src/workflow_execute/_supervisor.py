"""The supervisor: a model that looks at a thread now and then and may stop it.

It is there for threads that go in circles or off their task. Whether the work is done is for the
workflow's table to say.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Literal

import msgspec

from workflow_execute._records import SUPERVISOR_KEYS
from workflow_protocol import (
    AnyDefinition,
    Completion,
    Effect,
    Suspended,
    ThreadContext,
    WorkflowError,
    next_role,
)
from workflow_reactor import (
    CAS_GET,
    LlmFn,
    LlmSource,
    ThreadReactorConfig,
    ToolCall,
    ToolDefinition,
    cas_get,
    create_thread_reactor,
)

_log = logging.getLogger("workflow_execute")

DECISION_KEY = "decision"
"""The end of the key that its answer is recorded under."""

SHOWN_STEPS = 12
SHOWN_CHARS = 400

_PROMPT = (
    "You watch a workflow. Its roles take turns; you see the task and the latest steps, and can "
    "read any step in full."
)
_INSTRUCTIONS = (
    "Answer `stop` only when the roles plainly go in circles, or work on "
    "something else than the task. Slow progress is progress: then, and when you are not sure, "
    "answer `continue`. Whether the task is done is not yours to decide."
)


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor says."""

    decision: Literal["continue", "stop"]
    """Whether the thread goes on."""
    reason: str
    """Why, in words for people."""


SupervisorFn = Callable[[ThreadContext], Awaitable[Decision]]
"""Looks at a thread. It may raise; the thread then goes on."""

_READ_STEP = ToolDefinition(
    name="read_step",
    description="Read one step in full.",
    parameters={
        "type": "object",
        "properties": {"number": {"type": "integer", "description": "counts from 1"}},
        "required": ["number"],
        "additionalProperties": False,
    },
    effect=Effect.READ,
    validated=True,  # by the handler
)


def create_supervisor(
    llm: LlmFn | LlmSource, *, prompt: str | None = None, max_rounds: int = 4
) -> SupervisorFn:
    """Make a supervisor of a model: a ThreadReactor with tools to read the thread's steps
    and the stored objects that they name.

    Args:
        llm: the model that looks.
        prompt: when to answer `stop` and when `continue`; by default only circles and work on
            something else than the task are stopped.
        max_rounds: its requests for one look.
    """
    reactor = create_thread_reactor(
        ThreadReactorConfig(
            llm=llm,
            system_prompt=f"{_PROMPT} {prompt or _INSTRUCTIONS}",
            tools=[_READ_STEP, CAS_GET],
            tool_handler=_make_call,
            max_rounds=max_rounds,
        )
    )

    async def look(thread: ThreadContext) -> Decision:
        scope = thread.scoped(f"{SUPERVISOR_KEYS}{len(thread.steps)}")
        return await reactor(scope, _overview(thread), Decision)

    return look


async def supervise(
    supervisor: SupervisorFn, definition: AnyDefinition, thread: ThreadContext
) -> Completion | None:
    """Let the supervisor look at a thread that goes on; its end, if the supervisor stops it.

    Raises:
        Suspended: a limit of the thread is reached.
    """
    if next_role(definition, thread) is None:
        return None  # it ends by itself
    return completion_of(await _ask(supervisor, thread))


async def _ask(supervisor: SupervisorFn, thread: ThreadContext) -> Decision | None:
    """Ask the supervisor, once. One that fails is logged and has nothing to say.

    Raises:
        Suspended: a limit of the thread is reached.
    """

    async def decide() -> Decision:
        return await supervisor(thread)

    key = f"{SUPERVISOR_KEYS}{len(thread.steps)}/{DECISION_KEY}"
    try:
        return await thread.journal.run(key, decide, type=Decision)
    except Suspended:
        raise
    except Exception:  # noqa: BLE001 - whatever is wrong with it, the thread is not
        _log.exception("the supervisor of thread %s failed; the thread goes on", thread.thread_id)
        return None


def completion_of(decision: Decision | None) -> Completion | None:
    """The end of a thread that the supervisor stops, or `None` where it goes on."""
    if decision is None or decision.decision == "continue":
        return None
    return Completion(return_code=1, summary=f"stopped by the supervisor: {decision.reason}")


def recorded_decision(results: Mapping[str, bytes]) -> Decision | None:
    """The decision among the recorded results of a turn."""
    for key, data in results.items():
        if key.startswith(SUPERVISOR_KEYS) and key.endswith(DECISION_KEY):
            return msgspec.json.decode(data, type=Decision)
    return None


def _overview(thread: ThreadContext) -> str:
    first = max(0, len(thread.steps) - SHOWN_STEPS)
    lines = [
        f"{number}. [{step.role}] {step.content[:SHOWN_CHARS]}"
        for number, step in enumerate(thread.steps[first:], start=first + 1)
    ]
    return "\n".join([f"Task: {thread.start.prompt}", "", "Latest steps:", *lines])


async def _make_call(call: ToolCall, ctx: ThreadContext) -> str:
    return await (cas_get if call.name == CAS_GET.name else _read_step)(call, ctx)


async def _read_step(call: ToolCall, ctx: ThreadContext) -> str:
    number = json.loads(call.arguments).get("number")
    if not isinstance(number, int) or not 1 <= number <= len(ctx.steps):
        raise WorkflowError(f"there is no such step; give a number from 1 to {len(ctx.steps)}")
    return ctx.steps[number - 1].content
