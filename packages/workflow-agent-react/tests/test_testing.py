"""The guard for tests decides from a script; a guard is tested as the function that it is."""

from pathlib import Path

import pytest

from workflow_agent_react import (
    Allow,
    Ask,
    Decision,
    Deny,
    PastCall,
    ProposedCall,
    ReactAdapterConfig,
    create_react_adapter,
)
from workflow_agent_react.testing import ScriptedGuard, proposed_call
from workflow_execute import create_workflow, run_workflow
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Effect,
    RoleDefinition,
    StartStep,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
)
from workflow_reactor import ToolCall, ToolDefinition
from workflow_reactor.testing import ScriptedLlm, call

TOOL = ToolDefinition(name="push", description="Push.", parameters={"type": "object"})


async def run_with(guard: ScriptedGuard, llm: ScriptedLlm, ran: list[str]) -> str:
    async def handle(call: ToolCall, ctx: ThreadContext) -> str:
        ran.append(call.name)
        return "pushed"

    role = RoleDefinition(name="r", system_prompt="Push.", schema=str)
    config = ReactAdapterConfig(llm=llm, tools=[TOOL], tool_handler=handle, guards=[guard])
    run = create_workflow(
        WorkflowDefinition(table={START: role, role: END}),
        AdapterBinding(create_react_adapter(config)),
    )
    done = await run_workflow(run, "p")
    return done.summary if done.state == "failed" else str(done.value)


async def test_a_scripted_guard_decides_in_order_and_keeps_the_calls() -> None:
    ran: list[str] = []
    llm = ScriptedLlm([call("push", to="a"), call("push", to="b"), call("resolve", value="x")])
    guard = ScriptedGuard(
        [lambda call: Deny(f"not to {call.arguments['to']}"), Allow()], otherwise=Allow()
    )
    assert await run_with(guard, llm, ran) == "x"
    assert (ran, guard.names) == (["push"], ["push", "push", "resolve"])
    assert "not to a" in str(llm.requests[1]["messages"])


async def test_a_call_that_the_script_does_not_expect_ends_the_role() -> None:
    ran: list[str] = []
    llm = ScriptedLlm([call("push", to="a")])
    said = await run_with(ScriptedGuard(), llm, ran)
    assert "call 1 came, but the script has 0 decisions: push {'to': 'a'}" in said
    assert ran == []


def no_second_push(call: ProposedCall, ctx: ThreadContext) -> Decision:
    if call.name == "push" and call.history.succeeded("push"):
        return Ask(f"Push again to {call.arguments['to']}?")
    return Deny("it changes something") if call.tool.effect is Effect.UNSAFE else Allow()


@pytest.mark.parametrize(
    ("proposed", "decision"),
    [
        (proposed_call("push", {"to": "a"}), Deny("it changes something")),
        (proposed_call("look", {}, effect=Effect.READ), Allow()),
        (
            proposed_call(
                "push",
                {"to": "b"},
                history=[PastCall(name="push", arguments={}, ok=True, text="")],
            ),
            Ask("Push again to b?"),
        ),
    ],
)
def test_a_guard_of_ones_own_judges_calls_that_a_test_makes(
    proposed: ProposedCall, decision: Decision
) -> None:
    start = StartStep(prompt="p", workspace=Path("/"), timestamp_ms=0)
    assert no_second_push(proposed, ThreadContext(thread_id=ThreadId("t"), start=start)) == decision
