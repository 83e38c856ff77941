"""Each line marked `error` must be refused by pyright. Checked by tests/test_typing.py."""

import msgspec

from workflow_protocol import AdapterBinding, RoleDefinition, ThreadContext, Transition


class Plan(msgspec.Struct):
    phases: int


class Review(msgspec.Struct):
    approved: bool


planner = RoleDefinition(name="planner", description="", system_prompt="", schema=Plan)
wrong_schema = RoleDefinition(name="x", description="", system_prompt="", schema=3)  # error
not_a_type = RoleDefinition(name="x", description="", system_prompt="", schema=Plan(1))  # error


def conditions(ctx: ThreadContext) -> Review | None:
    ctx.meta("planner")  # error
    ctx.depth = 3  # error
    return ctx.meta(planner)  # error


async def not_an_adapter(prompt: str) -> str:
    return prompt


binding = AdapterBinding(adapter=not_an_adapter)  # error
transition = Transition(3)  # error
