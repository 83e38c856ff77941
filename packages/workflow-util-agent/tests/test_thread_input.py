from dataclasses import replace
from pathlib import Path

from workflow_protocol import RoleStep, StartStep, ThreadContext, ThreadId
from workflow_util_agent import build_thread_input

WORKSPACE = "## Workspace\n\nYou work in the folder `.`, and all paths are relative to it."


def context(*contents: str) -> ThreadContext:
    return ThreadContext(
        thread_id=ThreadId("T"),
        start=StartStep(prompt="Write it.", workspace=Path("/w/proj"), timestamp_ms=5),
        steps=tuple(
            RoleStep(role=f"role-{n}", meta=None, content=text, content_hash=None, timestamp_ms=n)
            for n, text in enumerate(contents, start=1)
        ),
    )


def test_a_new_thread_is_its_task_and_workspace() -> None:
    assert build_thread_input(context()) == f"## Task\n\nWrite it.\n\n{WORKSPACE}"


def test_earlier_steps_come_with_their_content_and_the_latest_in_full() -> None:
    text = build_thread_input(context("first words", "second words"))

    assert text == (
        f"## Task\n\nWrite it.\n\n{WORKSPACE}\n\n"
        "## Progress\n\n2 steps done: role-1 → role-2\n\n"
        "## Earlier steps\n\n### Step 1: role-1\n\nfirst words\n\n"
        "## Latest step: role-2\n\nsecond words"
    )


def test_one_step_has_no_earlier_ones() -> None:
    text = build_thread_input(context("only"))

    assert "1 step done: role-1" in text
    assert "Earlier" not in text


def test_the_oldest_steps_give_way_to_the_quota_and_the_latest_never() -> None:
    text = build_thread_input(context("a" * 50, "b" * 50, "c" * 50, "d" * 500), quota_chars=110)

    assert "a" * 50 not in text
    assert text.index("(the first 1 of 3 earlier steps are left out)") < text.index("b" * 50)
    assert "c" * 50 in text
    assert "d" * 500 in text


def test_a_long_thread_shows_the_last_roles_only() -> None:
    text = build_thread_input(context(*["x"] * 25))

    assert "25 steps done: (5 more) → role-6 → " in text


def test_the_same_thread_gives_the_same_text() -> None:
    assert build_thread_input(context("a", "b")) == build_thread_input(context("a", "b"))


def test_what_the_transition_tells_the_role_comes_last() -> None:
    text = build_thread_input(replace(context("only"), told="Shorten it."))

    assert text.endswith("## Latest step: role-1\n\nonly\n\n## What to do now\n\nShorten it.")
