"""What callers give: text that can't be stored, and values of another type."""

import dataclasses
import re
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_protocol import (
    END,
    START,
    Answer,
    Condition,
    DefinitionError,
    Question,
    RoleDefinition,
    WorkflowDefinition,
    escaped_text,
    expect_type,
    otherwise,
    text_fault,
    when,
)

ODD = "name-\udc80"
TEXTS = st.text(st.sampled_from("aé\udc80\ud83d\ude00😀\n"), max_size=6)


@given(TEXTS)
def test_escaped_text_can_be_stored_and_differs_only_where_there_was_a_fault(text: str) -> None:
    kept = escaped_text(text)

    assert text_fault(kept) == ""
    assert (kept == text) == (text_fault(text) == "")
    assert escaped_text(kept) == kept


@given(TEXTS, TEXTS)
def test_what_is_asked_and_answered_can_always_be_stored(text: str, more: str) -> None:
    question, answer = Question(text=text, details=more), Answer(approved=True, text=text)

    assert (question.text, question.details) == (escaped_text(text), escaped_text(more))
    assert answer.text == escaped_text(text)
    assert Answer(approved=True, arguments=more).arguments == escaped_text(more)


def test_a_fault_of_a_text_says_where() -> None:
    assert text_fault("plain é") == ""
    assert text_fault(ODD).startswith("is not valid UTF-8: at character 5 ")


def odd_definitions() -> dict[str, Any]:
    role = RoleDefinition(name="r", schema=str)

    def of(row: Any, **more: Any) -> Any:
        return {"table": {START: role, role: row}, **more}

    def has(**fields: str) -> Any:
        given: Any = {"name": "r", "schema": str, **fields}
        return RoleDefinition(**given)

    def alone(role: Any) -> Any:
        return {"table": {START: role, role: END}}

    return {
        "role 'name-\\udc80'": alone(has(name=ODD)),
        "role 'r'.description": alone(has(description=ODD)),
        "role 'r'.system_prompt": alone(has(system_prompt=ODD)),
        "description": of(END, description=ODD),
        "table['r'][0]": of([when(lambda ctx: True, END, name=ODD), role]),
        "table['r'][0] ": of(
            [when(Condition(name="c", description=ODD, check=lambda ctx: True), END), role]
        ),
        "table['r'][1]": of([when(bool, END), otherwise(role, tell=ODD)]),
    }


@pytest.mark.parametrize("place", odd_definitions())
def test_text_of_a_definition_that_cannot_be_stored_is_a_fault_with_its_place(place: str) -> None:
    with pytest.raises(DefinitionError, match=re.escape(place.strip())) as caught:
        WorkflowDefinition(**odd_definitions()[place])

    assert [fault.place for fault in caught.value.faults] == [place.strip()]


def test_a_value_of_another_type_is_refused_in_one_sentence() -> None:
    expect_type(3, int, "the number", use="write 3")

    with pytest.raises(TypeError, match=r"^the number is of type str; write 3$"):
        expect_type("3", (int, float), "the number", use="write 3")


def test_a_definition_is_changed_by_replace() -> None:
    first, second, helper, last = (RoleDefinition(name=each, schema=str) for each in "abcd")
    after: Any = [when(bool, "a"), END]
    definition = WorkflowDefinition(
        table={
            START: first,
            first: [when(bool, second), END],
            helper: END,
            second: after,
            last: END,
        },
        on_failure={first: helper},
        at_limit=last,
        input=int,
        description="before",
    )

    changed: Any = dataclasses.replace(definition, description="after")
    ended: Any = dataclasses.replace(
        changed, table={START: second, second: END}, on_failure={}, at_limit=None
    )

    assert changed.description == "after"
    for each in ("roles", "table", "input", "result", "complete", "at_limit", "limits"):
        assert getattr(changed, each) == getattr(definition, each), each
    assert dict(changed.on_failure) == dict(definition.on_failure)
    assert (ended.roles, ended.input) == ((second,), int)
    with pytest.raises(DefinitionError, match="description: it is of type int"):
        dataclasses.replace(definition, description=cast("Any", 3))
