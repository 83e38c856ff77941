from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from workflow_protocol import (
    END,
    START,
    Completion,
    Condition,
    DefinitionError,
    RoleDefinition,
    RoleStep,
    RoutingError,
    StartStep,
    ThreadContext,
    ThreadId,
    WorkflowDefinition,
    describe,
    next_role,
    next_transition,
    otherwise,
    when,
)


@dataclass
class Review:
    approved: bool


class Unknown:
    """No data type of either library."""


def role(name: str, schema: type[Any] = Review) -> RoleDefinition[Any]:
    return RoleDefinition(name=name, description=f"the {name}", system_prompt="Do.", schema=schema)


def context(*steps: tuple[str, object]) -> ThreadContext:
    return ThreadContext(
        thread_id=ThreadId("T"),
        start=StartStep(prompt="p", workspace=Path("/w"), timestamp_ms=1),
        steps=tuple(
            RoleStep(role=name, meta=meta, content="c", content_hash=None, timestamp_ms=2)
            for name, meta in steps
        ),
    )


WRITER, REVIEWER = role("writer", str), role("reviewer")


def approved(ctx: ThreadContext) -> bool:
    """The reviewer agrees.

    It may have said no before.
    """
    review = ctx.meta(REVIEWER)
    return review is not None and review.approved


TABLE: dict[Any, Any] = {
    START: WRITER,
    WRITER: REVIEWER,
    REVIEWER: [when(approved, END), WRITER],
}


def definition(**changes: Any) -> WorkflowDefinition[Any, object]:
    fields: dict[str, Any] = {"description": "write", "table": TABLE}
    return WorkflowDefinition(**{**fields, **changes})


def faults(**changes: Any) -> list[str]:
    with pytest.raises(DefinitionError) as error:
        definition(**changes)
    return [str(fault) for fault in error.value.faults]


def test_the_table_says_who_speaks_next() -> None:
    made = definition()

    assert next_role(made, context()) is WRITER
    assert next_role(made, context(("writer", "w"))) is REVIEWER
    assert next_role(made, context(("writer", "w"), ("reviewer", Review(False)))) is WRITER
    assert next_role(made, context(("writer", "w"), ("reviewer", Review(True)))) is None


def test_the_roles_are_those_of_the_table_in_the_order_of_their_appearance() -> None:
    last = role("last")
    made = definition(table={START: WRITER, WRITER: [when(approved, last), REVIEWER],
                             REVIEWER: WRITER, last: END})  # fmt: skip

    assert made.roles == (WRITER, last, REVIEWER)
    assert repr(made) == "WorkflowDefinition(writer → last → reviewer)"


def test_a_role_that_stands_in_the_table_may_be_named_by_text_too() -> None:
    made = definition(table={"__start__": "writer", WRITER: REVIEWER, "reviewer": "__end__"})

    assert next_role(made, context()) is WRITER
    assert next_role(made, context(("writer", "w"))) is REVIEWER


def test_a_step_of_an_unknown_role_is_a_routing_error_and_never_a_silent_end() -> None:
    with pytest.raises(RoutingError, match="'stranger'"):
        next_role(definition(), context(("stranger", 1)))


def test_an_unknown_role_name_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        definition().role("nobody")


def test_all_faults_are_reported_at_once_with_their_places() -> None:
    lost = role("lost")
    found = faults(
        table={
            START: WRITER,
            WRITER: "nobody",
            REVIEWER: when(approved, END),
            lost: [],
        },
        input=Unknown,
        result=lost,
    )

    assert [fault.partition(" can't be used")[0] for fault in found] == [
        "table['writer']: 'nobody' is not among the roles of the table (writer, reviewer, lost)",
        "table['reviewer']: the last target has a condition; add a bare role or END to it",
        "table['lost']: there is no transition from here; name a role, or END",
        "role 'reviewer': no path leads from START to this role; add a transition",
        "role 'lost': no path leads from START to this role; add a transition",
        "input: Unknown",
        "table['reviewer']: END is reached from here, but the result is that of 'lost'",
        "result: no transition leads from 'lost' to END; add one",
    ]


async def wait(ctx: ThreadContext) -> bool:
    return ctx.depth == 0


async def word(ctx: ThreadContext) -> str:
    return ctx.thread_id


class Waits:
    async def __call__(self, ctx: ThreadContext) -> bool:
        return ctx.depth == 0


def steps_of(ctx: ThreadContext, count: int) -> bool:
    return len(ctx.steps) == count


def row(*cells: object) -> dict[str, Any]:
    return {"table": {**TABLE, WRITER: list(cells)}}


AWAITED: Any = wait


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": {}}, "table: there are no roles; begin it with START: role"),
        ({"table": {3: WRITER}}, "table: a key is of type int; use a role or START"),
        (
            row((approved, REVIEWER)),
            "table['writer'][0]: this is of type tuple; use a role, END, when(check, role), or",
        ),
        (row(approved), "table['writer'][0]: this is of type function; use"),
        (row(when(approved, cast("Any", None)), REVIEWER), "[0]: this is of type NoneType; use"),
        ({"table": {**TABLE, WRITER: {REVIEWER}}}, "table['writer']: this is of type set"),
        (row(role("reviewer")), "another role is called 'reviewer' too; give each its own name"),
        (
            {"table": {**TABLE, role("writer"): REVIEWER}},
            "table['writer']: another role is called 'writer' too",
        ),
        (row(REVIEWER, role("__end__")), "this name is reserved"),
        (row(REVIEWER, role("Bad Name")), "use lower-case words"),
        (row(role("odd", Unknown)), "can't be used as a schema"),
        ({"table": {**TABLE, "writer": END}}, "this role has two rows"),
        ({"table": {**TABLE, START: []}}, "table['__start__']: there is no transition from here"),
        (
            {"table": {**TABLE, END: WRITER}},
            "table['__end__']: END ends the thread, so it has no row",
        ),
        (row(START), "table['writer'][0]: START is no target; name the role"),
        (row(REVIEWER, END), "those after it are never taken"),
        (
            row(when(lambda ctx: True, END), REVIEWER),
            "table['writer'][0]: the check has no name of its own; write when(…, name='…')",
        ),
        (row(when(partial(steps_of, count=1), END), REVIEWER), "the check has no name of its own"),
        (row(when(AWAITED, END), REVIEWER), "the check 'wait' is async; make it a plain `def`"),
        (row(when(cast("Any", Waits()), END, name="w"), REVIEWER), "the check 'w' is async"),
        (row(when(cast("Any", "approved"), END), REVIEWER), "the check is of type str; use"),
        (row(otherwise(REVIEWER, tell=cast("Any", 3))), "`tell` is of type int; use text or"),
        (row(otherwise(REVIEWER, tell=cast("Any", word))), "`tell` is given is async; make it"),
        (row(otherwise(END, tell="Go home.")), "nobody reads what END is told; leave `tell` out"),
        ({"result": "writer"}, "result: it is of type str; give the role whose value"),
        ({"result": role("writer")}, "result: this role is not in the table; give one that is"),
        ({"result": WRITER}, "table['reviewer'][0]: END is reached from here, but the result"),
        (
            {"result": REVIEWER, "table": {**TABLE, START: [when(approved, END), WRITER]}},
            "table['__start__'][0]: END is reached from here, but the result is that of 'reviewer'",
        ),
    ],
)
def test_each_kind_of_fault_is_found(changes: dict[str, Any], message: str) -> None:
    assert any(message in fault for fault in faults(**changes)), faults(**changes)


def test_a_definition_describes_itself_as_data() -> None:
    described = describe(definition(input=list[int], result=REVIEWER))

    assert described.roles["reviewer"].schema["properties"] == {"approved": {"type": "boolean"}}
    assert [(e.source, e.target, e.condition) for e in described.edges] == [
        ("__start__", "writer", None),
        ("writer", "reviewer", None),
        ("reviewer", "__end__", "approved"),
        ("reviewer", "writer", None),
    ]
    assert described.edges[2].condition_description == "The reviewer agrees."
    assert described.input == {"type": "array", "items": {"type": "integer"}}
    assert described.result == "reviewer"
    assert (describe(definition()).input, describe(definition()).result) == (None, None)


def test_a_condition_goes_by_the_functions_name_unless_another_is_given() -> None:
    plain = Condition(name="plain", check=approved)
    transitions = [
        when(approved, END),
        when(approved, END, name="agreed"),
        when(lambda ctx: ctx.visits(WRITER) >= 3, END, name="tired"),
        when(plain, END),
    ]
    shown = [(each.condition.name, each.condition.description) for each in transitions
             if each.condition is not None]  # fmt: skip

    assert shown == [
        ("approved", "The reviewer agrees."),
        ("agreed", "The reviewer agrees."),
        ("tired", ""),
        ("plain", ""),
    ]


def test_a_condition_that_gives_no_truth_value_is_told() -> None:
    def odd(ctx: ThreadContext) -> Any:
        return len(ctx.steps)

    made = definition(table={START: [when(odd, WRITER), REVIEWER], WRITER: REVIEWER, REVIEWER: END})

    with pytest.raises(TypeError, match="condition 'odd' returned 0; return True or False"):
        next_role(made, context())


def test_a_transition_tells_the_next_role_a_word_that_the_thread_decides() -> None:
    def complain(ctx: ThreadContext) -> str:
        return f"Not good enough, {ctx.visits(WRITER)} times."

    def number(ctx: ThreadContext) -> Any:
        return 3

    ctx = context(("writer", "w"), ("reviewer", Review(False)))
    refused = definition(table={**TABLE, REVIEWER: [when(approved, END),
                                                    otherwise(WRITER, tell=complain)]})  # fmt: skip

    assert next_transition(refused, ctx).told(ctx) == "Not good enough, 1 times."
    assert when(approved, WRITER, tell="Again.").told(ctx) == "Again."
    assert next_transition(definition(), ctx).told(ctx) == ""
    with pytest.raises(TypeError, match=r"`tell` \(number\) returned 3; return a string"):
        otherwise(WRITER, tell=number).told(ctx)


def test_a_thread_knows_how_often_a_role_has_spoken() -> None:
    ctx = context(("writer", "w"), ("reviewer", Review(False)), ("writer", "w"))

    assert (ctx.visits(WRITER), ctx.visits("reviewer"), ctx.visits(role("other"))) == (2, 1, 0)


def test_a_thread_ends_with_code_0_and_its_last_words_unless_the_workflow_says_else() -> None:
    ctx = context(("writer", "w"))
    failed = Completion(return_code=3, summary="nothing to do")

    def fail(ctx: ThreadContext) -> Completion:
        return failed

    assert definition().complete(ctx) == Completion(return_code=0, summary="writer: c")
    assert definition(complete=fail).complete(ctx) == failed
