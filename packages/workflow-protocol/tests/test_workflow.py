from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    Transition,
    WorkflowDefinition,
    describe,
    next_role,
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
    review = ctx.meta(REVIEWER)
    return review is not None and review.approved


APPROVED = Condition(name="approved", description="the reviewer agrees", check=approved)
TABLE: dict[RoleDefinition[Any] | str, list[Transition]] = {
    START: [Transition(WRITER)],
    WRITER: [Transition(REVIEWER)],
    REVIEWER: [Transition(END, when=APPROVED), Transition(WRITER)],
}


def definition(**changes: Any) -> WorkflowDefinition:
    fields: dict[str, Any] = {
        "description": "write",
        "roles": [WRITER, REVIEWER],
        "table": TABLE,
    }
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


def test_roles_may_be_named_by_text_too() -> None:
    made = definition(
        table={
            "__start__": [Transition("writer")],
            "writer": [Transition("reviewer")],
            "reviewer": [Transition("__end__")],
        }
    )

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
        roles=[WRITER, REVIEWER, lost],
        table={
            START: [Transition(WRITER)],
            WRITER: [Transition("nobody")],
            REVIEWER: [Transition(END, when=APPROVED)],
        },
    )

    assert found == [
        "table['writer'][0]: 'nobody' is not among the roles (writer, reviewer, lost)",
        "table['reviewer']: the last transition has a `when`; add one without `when` after it",
        "table['lost']: there is no transition from here; add one",
        "roles 'reviewer': no path leads from START to this role; add a transition",
        "roles 'lost': no path leads from START to this role; add a transition",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": []}, "roles: there are no roles"),
        ({"roles": [WRITER, REVIEWER, role("writer")]}, "another role has this name already"),
        ({"roles": [WRITER, REVIEWER, role("__end__")]}, "this name is reserved"),
        ({"roles": [WRITER, REVIEWER, role("Bad Name")]}, "use lower-case words"),
        ({"roles": [WRITER, REVIEWER, role("odd", Unknown)]}, "can't be used as a schema"),
        ({"table": {**TABLE, "writer": [Transition(END)]}}, "this role has two rows"),
        (
            {"table": {**TABLE, role("writer"): [Transition(END)]}},
            "not the definition of 'writer' in `roles`",
        ),
        ({"table": {**TABLE, START: []}}, "table['__start__']: there is no transition from here"),
        ({"table": {**TABLE, END: [Transition(WRITER)]}}, "'__end__' is not among the roles"),
        ({"table": {**TABLE, WRITER: [Transition(START)]}}, "'__start__' is not among the roles"),
        (
            {"table": {**TABLE, WRITER: [Transition(REVIEWER), Transition(END)]}},
            "those after it are never taken",
        ),
    ],
)
def test_each_kind_of_fault_is_found(changes: dict[str, Any], message: str) -> None:
    assert any(message in fault for fault in faults(**changes)), faults(**changes)


def test_a_definition_describes_itself_as_data() -> None:
    described = describe(definition())

    assert described.roles["reviewer"].schema["properties"] == {"approved": {"type": "boolean"}}
    assert [(e.source, e.target, e.condition) for e in described.edges] == [
        ("__start__", "writer", None),
        ("writer", "reviewer", None),
        ("reviewer", "__end__", "approved"),
        ("reviewer", "writer", None),
    ]
    assert described.edges[2].condition_description == "the reviewer agrees"


def test_a_thread_ends_with_code_0_and_its_last_words_unless_the_workflow_says_else() -> None:
    ctx = context(("writer", "w"))
    failed = Completion(return_code=3, summary="nothing to do")

    assert definition().complete(ctx) == Completion(return_code=0, summary="writer: c")
    assert definition(complete=lambda ctx: failed).complete(ctx) == failed  # pyright: ignore[reportUnknownLambdaType]
