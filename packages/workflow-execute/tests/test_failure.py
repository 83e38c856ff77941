"""What is kept of a failed role: the type, the user's line, and the whole traceback."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from workflow_cas import MemoryStore
from workflow_execute import ChildTask, Engine, ThreadResult, read_thread, run_child
from workflow_execute._failure import MAX_TRACEBACK_CHARS, OUR_PACKAGES
from workflow_execute.testing import in_turn
from workflow_protocol import ThreadContext

HERE = Path(__file__)


def line_of(text: str) -> int:
    """The only line of this file that ends with a comment."""
    (number,) = [
        number
        for number, line in enumerate(HERE.read_text(encoding="utf-8").splitlines(), 1)
        if line.endswith(f"  # {text}")
    ]
    return number


async def plain(ctx: ThreadContext) -> int:
    raise ValueError("no good")  # plain


async def in_a_library(ctx: ThreadContext) -> int:
    return json.loads("{")  # library


async def with_a_cause(ctx: ThreadContext) -> int:
    try:
        return int("x")
    except ValueError as error:
        raise RuntimeError("can't read it") from error  # cause


async def in_a_task(ctx: ThreadContext) -> int:
    async def fail() -> None:
        raise KeyError("key")  # task

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fail)
    return 1


async def in_a_child(ctx: ThreadContext) -> object:
    return (await run_child(ctx, ChildTask(name="c", workflow=in_turn(plain), input="p"))).value


async def wrong_value(ctx: ThreadContext) -> Any:
    return "text"


async def failed(turn: Any) -> tuple[ThreadResult, Any]:
    store = MemoryStore()
    result = await Engine(store).start(in_turn(turn), "p")
    assert result.state == "failed"
    return result, (await read_thread(store, result.thread_id)).status


@pytest.mark.parametrize(
    ("turn", "kind", "place", "function"),
    [
        (plain, "ValueError", "plain", "plain"),
        (in_a_library, "JSONDecodeError", "library", "in_a_library"),
        (with_a_cause, "RuntimeError", "cause", "with_a_cause"),
        (in_a_task, "ExceptionGroup", "task", "fail"),
        (in_a_child, "ChildFailed", "plain", "plain"),
    ],
)
async def test_a_failure_names_the_last_line_of_the_user_s_own_code(
    turn: Any, kind: str, place: str, function: str
) -> None:
    result, status = await failed(turn)
    assert (status.error, result.origin) == (kind, f"{HERE}:{line_of(place)} in {function}")
    assert status.origin == result.origin
    assert status.traceback.startswith(("Traceback", "  + Exception Group Traceback"))
    assert f'{HERE}", line {line_of(place)}, in {function}' in status.traceback


async def test_what_these_packages_say_on_purpose_has_no_line_of_theirs() -> None:
    result, status = await failed(wrong_value)
    assert (status.error, result.origin) == ("RoleValueError", "")
    assert "Traceback" in status.traceback


async def test_a_group_says_what_is_in_it() -> None:
    result, _ = await failed(in_a_task)
    assert result.summary.endswith("(1 sub-exception): KeyError: 'key'")


async def test_a_traceback_is_kept_short_and_without_the_secrets_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-1234567890")

    async def turn(ctx: ThreadContext) -> int:
        raise ValueError("denied for sk-1234567890 " + "x" * 100_000)

    result, status = await failed(turn)
    assert len(status.traceback) < MAX_TRACEBACK_CHARS + 100
    assert "characters left out" in status.traceback
    assert "sk-1234567890" not in status.traceback + result.summary
    assert result.summary.startswith("denied for ${SOME_API_KEY} ")


async def test_text_that_can_not_be_stored_and_errors_that_can_not_be_shown_are_kept() -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    async def turn(ctx: ThreadContext) -> int:
        raise Odd from ValueError("\udcff")

    result, status = await failed(turn)
    assert (result.summary, status.error) == ("", "Odd")
    assert result.origin.startswith(f"{HERE}:")
    assert "in turn" in status.traceback


def test_the_packages_that_are_ours_are_those_of_the_workspace() -> None:
    root = next(each for each in HERE.parents if (each / "packages").is_dir())
    assert {each.name for each in root.glob("packages/*/src/*") if each.is_dir()} == OUR_PACKAGES
