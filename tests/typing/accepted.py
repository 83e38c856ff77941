"""What pyright must accept, with the types it must see. Checked by tests/test_typing.py."""

from typing import Literal, assert_type

import msgspec
import pydantic

from workflow_agent_llm import create_llm_adapter
from workflow_execute import ChildResult, create_workflow, workflow_adapter
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    RoleDefinition,
    RoleFn,
    ThreadContext,
    Transition,
    WorkflowDefinition,
)
from workflow_reactor.testing import ScriptedLlm


class Plan(pydantic.BaseModel):
    phases: list[str]


class Review(msgspec.Struct):
    approved: bool


planner = RoleDefinition(name="planner", description="", system_prompt="", schema=Plan)
reviewer = RoleDefinition(name="reviewer", description="", system_prompt="", schema=Review)
names = RoleDefinition(name="names", description="", system_prompt="", schema=list[str])
word = RoleDefinition(name="word", description="", system_prompt="", schema=Literal["go", "stop"])
either = RoleDefinition(name="either", description="", system_prompt="", schema=Plan | Review)


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
    WorkflowDefinition(
        description="",
        roles=[planner, reviewer],
        table={
            START: [Transition(planner)],
            planner: [Transition(reviewer)],
            "reviewer": [Transition(END)],
        },
    ),
    AdapterBinding(adapter=adapter, overrides={"reviewer": adapter}),
)


def convert(result: ChildResult) -> Plan:
    assert_type(result.read(Review), Review)
    assert_type(result.read(list[str]), list[str])
    return Plan(phases=[result.summary])


child = workflow_adapter("child", workflow, convert=convert)
assert_type(child("prompt", Plan), RoleFn[Plan])
nested = AdapterBinding(adapter=adapter, overrides={"planner": child, "reviewer": child})
