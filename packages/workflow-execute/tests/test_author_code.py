"""What an author's functions of the thread may do wrong: it is a fault of that thread alone."""

import sys
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from workflow_cas import MemoryStore
from workflow_execute import Engine, create_workflow
from workflow_execute.testing import adapter_of
from workflow_protocol import (
    END,
    START,
    AdapterBinding,
    Completion,
    RoleDefinition,
    ThreadContext,
    WorkflowDefinition,
    otherwise,
    when,
)

WRITER = RoleDefinition(name="writer", system_prompt="Write.", schema=str)
CRITIC = RoleDefinition(name="critic", system_prompt="Judge.", schema=str)


async def speak(ctx: ThreadContext) -> str:
    return f"step {len(ctx.steps)}"


def definition(place: str, function: Callable[[ThreadContext], Any]) -> WorkflowDefinition:
    leads = {
        "check": [when(function, CRITIC, name="asked"), END],
        "tell": otherwise(CRITIC, tell=function),
    }
    table = {START: WRITER, WRITER: leads.get(place, CRITIC), CRITIC: END}
    if place == "complete":
        return WorkflowDefinition(table=table, complete=function)
    return WorkflowDefinition(table=table)


def leave(ctx: ThreadContext) -> NoReturn:
    sys.exit(3)


def close(ctx: ThreadContext) -> NoReturn:
    raise GeneratorExit


def fail(ctx: ThreadContext) -> NoReturn:
    raise LookupError("no \udcff such thing")


def give_bytes(ctx: ThreadContext) -> bytes:
    return b"x" * 1000


def give_nothing(ctx: ThreadContext) -> None:
    del ctx


@pytest.mark.parametrize("place", ["check", "tell", "complete"])
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (leave, "raised SystemExit; return a value, or raise an exception"),
        (close, "raised GeneratorExit; return a value, or raise an exception"),
        (fail, "no \\udcff such thing"),
        (give_bytes, "returned"),
        (give_nothing, "returned"),
    ],
)
async def test_the_thread_fails_and_goes_on_with_code_that_is_right(
    place: str, function: Callable[[ThreadContext], Any], words: str
) -> None:
    engine = Engine(MemoryStore())
    wrong = create_workflow(definition(place, function), AdapterBinding(adapter_of(speak)))
    right = create_workflow(
        definition(place, lambda ctx: RIGHT[place]), AdapterBinding(adapter_of(speak))
    )

    failed = await engine.start(wrong, "x")
    done = await engine.resume(right, failed.thread_id)

    assert failed.state == "failed"
    assert words in failed.summary
    assert len(failed.summary) < 400
    assert (done.state, len(done.steps)) == ("completed", 2)


RIGHT = {"check": True, "tell": "Go on.", "complete": Completion(return_code=0, summary="done")}


async def test_a_summary_with_the_name_of_an_odd_file_is_kept_as_text() -> None:
    def conclude(ctx: ThreadContext) -> Completion:
        return Completion(return_code=2, summary="wrote a\udcff.txt")

    run = create_workflow(definition("complete", conclude), AdapterBinding(adapter_of(speak)))
    done = await Engine(MemoryStore()).start(run, "x")

    assert (done.state, done.return_code, done.summary) == ("completed", 2, "wrote a\\udcff.txt")
