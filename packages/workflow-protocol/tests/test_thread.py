from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

import pytest

from workflow_protocol import (
    DirectJournal,
    Effect,
    OutcomeUnknown,
    Question,
    RoleDefinition,
    RoleStep,
    ScopedJournal,
    StartStep,
    Suspended,
    ThreadContext,
    ThreadId,
    ToolStarted,
    Usage,
)


@dataclass
class Plan:
    steps: int


class Loose(TypedDict):
    a: int


PLANNER = RoleDefinition(name="planner", system_prompt="", schema=Plan)


def step(role: str, meta: object) -> RoleStep:
    return RoleStep(role=role, meta=meta, content="", content_hash=None, timestamp_ms=0)


def context(*steps: RoleStep) -> ThreadContext:
    start = StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=0)
    return ThreadContext(thread_id=ThreadId("T"), start=start, steps=steps)


def test_the_latest_step_of_a_role_counts() -> None:
    first, other, last = step("planner", Plan(1)), step("coder", 0), step("planner", Plan(2))
    ctx = context(first, other, last)

    assert ctx.last("planner") is last
    assert ctx.last(PLANNER) is last
    assert ctx.meta(PLANNER) == Plan(2)


def test_a_role_that_has_not_spoken_has_no_step_and_no_value() -> None:
    assert context().last("planner") is None
    assert context().meta(PLANNER) is None


def test_a_value_of_another_type_is_an_error_and_not_handed_out() -> None:
    with pytest.raises(TypeError, match=r"'planner' holds a value of type str"):
        context(step("planner", "a plan")).meta(PLANNER)


def test_types_that_have_no_instances_are_taken_as_they_are() -> None:
    word = RoleDefinition(name="w", system_prompt="", schema=Literal["go"])
    loose = RoleDefinition(name="l", system_prompt="", schema=Loose)
    ctx = context(step("w", "go"), step("l", {"a": 1}))

    assert ctx.meta(word) == "go"
    assert ctx.meta(loose) == {"a": 1}


def test_usage_adds_up_and_keeps_what_is_unknown_apart() -> None:
    known = Usage(input_tokens=10, output_tokens=5, cached_tokens=4, calls=1)
    total = known + Usage(calls=1, unknown_calls=1) + known

    assert total == Usage(
        input_tokens=20, output_tokens=10, cached_tokens=8, calls=3, unknown_calls=1
    )


def test_costs_add_up_where_every_call_says_what_it_cost() -> None:
    paid, silent = Usage(calls=1, cost_micros=150), Usage(calls=1)

    assert Usage() + paid + paid == Usage(calls=2, cost_micros=300)
    assert paid + Usage() == paid
    assert paid + silent == silent + paid == Usage(calls=2)
    assert (paid + silent) + paid == Usage(calls=3)
    assert Usage(calls=1, cost_micros=0) + paid == Usage(calls=2, cost_micros=150)


async def test_without_an_engine_effects_run_and_nobody_can_be_asked() -> None:
    journal = DirectJournal()

    async def perform() -> int:
        return 3

    assert await journal.run("k", perform, type=int) == 3
    await journal.note(ToolStarted(name="t", arguments="{}"))
    with pytest.raises(Suspended, match="May I"):
        await journal.ask("k", Question(text="May I?"))


def test_an_unknown_outcome_says_what_to_do() -> None:
    assert "check what it did" in str(OutcomeUnknown("tool/1/0"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option `type`"),
        (
            {"type": int, "efect": Effect.UNSAFE},
            "no option 'efect'; the options are digest",
        ),
    ],
)
async def test_options_that_a_type_checker_refuses_are_refused_before_anything_is_done(
    options: dict[str, Any], message: str
) -> None:
    done: list[str] = []

    async def perform() -> int:
        done.append("performed")
        return 3

    for journal in (DirectJournal(), ScopedJournal(DirectJournal(), "scope")):
        with pytest.raises(TypeError, match=message):
            await journal.run("k", perform, **options)
    assert done == []
