"""Whatever stands where a part of a definition belongs: one error that says what to do."""

import copy
import functools
import pickle
from collections.abc import AsyncGenerator, Generator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_protocol import (
    END,
    START,
    Condition,
    DefinitionError,
    RoleDefinition,
    ThreadContext,
    Transition,
    WorkflowDefinition,
    describe,
    otherwise,
    when,
)


def untyped(value: Any) -> Any:
    return value


class Callable1:
    """An object that can be called with the thread."""

    def __call__(self, ctx: ThreadContext) -> bool:
        return bool(ctx.steps)

    async def later(self, ctx: ThreadContext) -> bool:
        return bool(ctx.steps)

    def method(self, ctx: ThreadContext) -> bool:
        """Ask the object."""
        return bool(ctx.steps)


class CallableLater:
    """An object that can be called, and must be awaited."""

    async def __call__(self, ctx: ThreadContext) -> bool:
        return bool(ctx.steps)


def plain(ctx: ThreadContext) -> bool:
    return bool(ctx.steps)


async def later(ctx: ThreadContext) -> bool:
    return bool(ctx.steps)


async def stream(ctx: ThreadContext) -> AsyncGenerator[bool]:
    yield bool(ctx.steps)


def generate(ctx: ThreadContext) -> Generator[bool]:
    yield bool(ctx.steps)


def of_two(limit: int, ctx: ThreadContext) -> bool:
    return len(ctx.steps) > limit


def of_none() -> bool:
    return True


ASYNC = "is async; make it a plain `def`"
ARGUMENTS = "can't be called with one argument, the thread; write `def name(ctx)`"
FUNCTIONS: list[tuple[Any, str]] = [
    (plain, ""),
    (Callable1().method, ""),
    (Callable1(), ""),
    (functools.partial(of_two, 1), ""),
    (functools.lru_cache(plain), ""),
    (bool, ""),
    (later, ASYNC),
    (functools.partial(functools.partial(later)), ASYNC),
    (Callable1().later, ASYNC),
    (CallableLater(), ASYNC),
    (stream, ASYNC),
    (generate, "is a generator; use `return` instead of `yield`"),
    (of_two, ARGUMENTS),
    (of_none, ARGUMENTS),
    (functools.partial(untyped(of_two), 1, 2), ARGUMENTS),
    (3, "is of type int; use"),
    (None, "is of type NoneType; use"),
    (True, "is of type bool; use"),
]


def role(name: Any = "writer", **fields: Any) -> RoleDefinition[Any]:
    given: dict[str, Any] = {"name": name, "system_prompt": "Do.", "schema": str, **fields}
    return RoleDefinition(**given)


WRITER = role()


def built(**fields: Any) -> WorkflowDefinition[Any, object] | DefinitionError:
    given: dict[str, Any] = {"table": {START: WRITER, WRITER: END}, **fields}
    try:
        return WorkflowDefinition(**given)
    except DefinitionError as error:
        return error


@pytest.mark.parametrize("place", ["check", "tell", "complete"])
@pytest.mark.parametrize("index", range(len(FUNCTIONS)))
def test_a_function_of_the_thread_is_one_wherever_it_is_given(place: str, index: int) -> None:
    function, fault = FUNCTIONS[index]
    row: dict[str, Any] = {
        "check": [when(function, END, name="named"), WRITER],
        "tell": [when(plain, END), otherwise(WRITER, tell=function)],
        "complete": END,
    }
    complete = {"complete": function} if place == "complete" else {}
    made = built(table={START: WRITER, WRITER: row[place]}, **complete)

    if fault:
        assert isinstance(made, DefinitionError)
        assert [fault in each.message for each in made.faults] == [True]
    else:
        assert isinstance(made, WorkflowDefinition)


@pytest.mark.parametrize(
    "fields",
    [
        {"table": None},
        {"table": [(START, WRITER), (WRITER, END)]},
        {"table": {START: WRITER, WRITER: {END}}},
        {"table": {START: WRITER, WRITER: (each for each in [END])}},
        {"table": {START: WRITER, WRITER: b"writer"}},
        {"table": {START: WRITER, WRITER: [[END]]}},
        {"table": {START: WRITER, WRITER: when(plain, untyped(when(plain, END)))}},
        {"table": {START: WRITER, WRITER: END, when(plain, WRITER): END}},
        {"table": {START: (made := role("x", system_prompt=["p"])), made: END}},
        {"table": {START: (made := role("x", description=None)), made: END}},
        {"table": {START: (made := role("x" * 101)), made: END}},
        {"table": {START: role(3)}},
        {
            "table": {
                START: WRITER,
                WRITER: [Transition(END, Condition(name=untyped(3), check=plain)), END],
            }
        },
        {"description": 3},
        {"input": 3},
        {"result": "writer"},
    ],
)
def test_one_mistake_is_one_fault_of_one_line(fields: dict[str, Any]) -> None:
    made = built(**fields)

    assert isinstance(made, DefinitionError)
    assert len(made.faults) == 1
    assert len(str(made).splitlines()) == 2
    assert len(str(made)) < 400


ANYTHING: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([None, 3, b"x", str, object(), WRITER, role(), role("critic"), START, END]),
    st.sampled_from(["writer", "critic", "", "é", "a" * 5000, "a\nb"]),
    st.sampled_from([each for each, _ in FUNCTIONS]),
    st.builds(role, st.sampled_from(["writer", "é", 3, None, "__end__"]), schema=st.just(3)),
    st.builds(role, st.just("critic"), system_prompt=st.sampled_from([None, "p", []])),
)
TRANSITIONS = st.recursive(
    ANYTHING,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.builds(when, inner, inner, tell=inner, name=inner),
        st.builds(otherwise, inner, tell=inner),
    ),
    max_leaves=6,
)


class Pairs:
    """A mapping whose keys needn't be hashable, nor be there once."""

    def __init__(self, pairs: list[tuple[Any, Any]]) -> None:
        self.pairs = pairs

    def items(self) -> list[tuple[Any, Any]]:
        return self.pairs


@given(
    rows=st.lists(st.tuples(st.one_of(ANYTHING, TRANSITIONS), TRANSITIONS), max_size=4),
    begins=st.booleans(),
    fields=st.fixed_dictionaries(
        {},
        optional={
            **dict.fromkeys(["description", "complete", "result", "input"], ANYTHING),
            "on_failure": st.one_of(
                ANYTHING, st.builds(Pairs, st.lists(st.tuples(ANYTHING, ANYTHING), max_size=3))
            ),
        },
    ),
)
def test_a_definition_is_built_or_says_what_is_wrong_each_thing_once(
    rows: list[tuple[Any, Any]], begins: bool, fields: dict[str, Any]
) -> None:
    made = built(table=Pairs([(START, WRITER)] * begins + rows), **fields)

    if isinstance(made, DefinitionError):
        assert made.faults
        assert len(set(made.faults)) == len(made.faults)
        assert max(map(len, map(str, made.faults))) < 1000
    else:
        describe(made)
        assert len(repr(made)) < 2000


def test_copies_of_a_definition_have_the_same_roles() -> None:
    made = WorkflowDefinition(table={START: WRITER, WRITER: END}, result=WRITER)
    again = copy.deepcopy(made)

    assert again.result is WRITER
    assert again.roles == (WRITER,)
    assert copy.copy(WRITER) is WRITER
    assert copy.deepcopy([WRITER]) == [WRITER]


def test_a_pickled_definition_is_whole() -> None:
    sent = pickle.loads(pickle.dumps(WorkflowDefinition(table={START: WRITER, WRITER: END})))

    assert describe(sent) == describe(WorkflowDefinition(table={START: WRITER, WRITER: END}))


def test_a_definition_is_that_of_the_moment_when_it_was_built() -> None:
    row: list[Any] = [when(plain, END), WRITER]
    table: dict[Any, Any] = {START: WRITER, WRITER: row}
    made = WorkflowDefinition(table=table)
    row.clear()
    table.clear()

    assert [each.to for each in made.table["writer"]] == [END, WRITER]


def test_what_is_shown_of_parts_is_short() -> None:
    long = role(system_prompt="p" * 10_000)

    assert repr(long) == "RoleDefinition('writer', schema=<class 'str'>)"
    assert repr(when(plain, long)) == "Transition(→ writer when plain)"
    assert repr(otherwise(END, tell="x" * 10_000)) == "Transition(→ __end__)"
    assert repr(Condition(name="c", check=plain, description="d" * 10_000)) == "Condition('c')"


def test_a_check_that_gives_something_long_is_told_of_in_short() -> None:
    def much(ctx: ThreadContext) -> Any:
        return "x" * 10_000 * (1 + len(ctx.steps))

    made = WorkflowDefinition(table={START: [when(much, END), WRITER], WRITER: END})
    condition = made.table[START][0].condition
    assert condition is not None
    ctx: Any = type("Context", (), {"steps": ()})()
    with pytest.raises(TypeError) as caught:
        condition.holds(ctx)
    assert len(str(caught.value)) < 250
