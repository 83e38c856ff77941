"""The template `develop`, whole, with a scripted model in a small repository."""

from pathlib import Path

import pytest

from workflow_execute import ThreadResult, create_workflow, function_adapter, run_workflow
from workflow_protocol import Effect, ThreadContext
from workflow_reactor.testing import Request
from workflow_templates import Author, Commit, Developed, Template, develop
from workflow_templates.developing._roles import committer

from .developers import (
    CALC,
    ISSUE,
    MENDED,
    NEW_TEST,
    Actions,
    developer,
    git,
    make_project,
    shell,
    write,
)

MEND = [write("calc.py", MENDED)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    make_project(tmp_path / "project")
    return tmp_path / "project"


async def run(project: Path, template: Template[str, Developed]) -> ThreadResult[Developed]:
    return await run_workflow(
        create_workflow(template.definition, template.binding), ISSUE, workspace=project
    )


async def test_a_change_is_committed_as_it_was_reviewed_and_tested(project: Path) -> None:
    seen: list[Request] = []
    author = Author(name="Ada", email="ada@localhost", timestamp_s=1_000_000_000)
    model = developer([*MEND, write("test_more.py", NEW_TEST)], seen=seen)

    result = await run(project, develop(llm=model, author=author))

    assert result.value.done
    assert result.value.commits == [git(project, "rev-parse", "HEAD")]
    assert result.value.base == git(project, "rev-parse", "HEAD~")
    assert git(project, "log", "-1", "--format=%an %ae %at %s") == (
        "Ada ada@localhost 1000000000 Add instead of subtracting"
    )
    assert git(project, "show", "HEAD:calc.py") == MENDED.strip()
    assert git(project, "status", "--short") == ""
    review = next(each for each in seen if each["messages"][0]["content"].startswith("You review"))
    assert "+    return a + b" in review["messages"][1]["content"].replace("\\n", "\n")


@pytest.mark.slow
async def test_the_coder_is_told_what_was_wrong_and_tries_again(project: Path) -> None:
    seen: list[Request] = []
    broken = [write("calc.py", "def (")]

    result = await run(project, develop(llm=developer(broken, MEND, seen=seen)))

    assert result.value.done
    second = seen[-4]["messages"][1]["content"]
    assert "The tests do not pass:" in second
    assert "test_calc.Calc.test_nothing_added passed before" in second


LIES: dict[str, tuple[Actions, str]] = {
    "nothing": ([], "nothing was changed"),
    "broken": ([write("calc.py", "def (")], "passed before and does not now"),
    "edited tests": ([write("test_calc.py", "")], "may not be changed was: test_calc.py"),
    "deleted tests": ([shell("rm test_calc.py")], "may not be changed was: test_calc.py"),
    "a steered runner": ([*MEND, write("conftest.py", "")], "may not be changed was: conftest.py"),
    "own commit": (
        [*MEND, shell("git add -A && git -c user.name=x -c user.email=x commit -qm Done")],
        "somebody committed meanwhile",
    ),
}


@pytest.mark.parametrize(
    "lie",
    [
        "edited tests",
        *(pytest.param(name, marks=pytest.mark.slow) for name in LIES if name != "edited tests"),
    ],
)
async def test_a_false_claim_ends_without_a_commit(project: Path, lie: str) -> None:
    actions, words = LIES[lie]

    result = await run(project, develop(llm=developer(actions), max_attempts=1))

    assert (result.state, result.return_code) == ("completed", 1)
    assert result.value.commits == []
    assert words in result.value.problem


async def test_a_hash_that_git_does_not_know_is_no_commit(project: Path) -> None:
    def invent(ctx: ThreadContext) -> Commit:
        del ctx
        return Commit(hash="1a2b3c4d" * 5, subject="Done")

    invented = function_adapter(committer, invent, effect=Effect.READ)
    template = develop(llm=developer(MEND), overrides={"committer": invented})

    result = await run(project, template)

    assert result.return_code == 1
    assert not result.value.done
    assert result.value.commits == []
    assert f"git does not know {'1a2b3c4d' * 5}" in result.value.problem


@pytest.mark.slow
async def test_each_phase_is_a_commit_and_one_that_has_nothing_left_is_none(project: Path) -> None:
    first = [write("calc.py", MENDED)]
    second = [write("more.py", "MORE = 1\n")]

    result = await run(project, develop(llm=developer(first, second, [], phases=3)))

    assert result.value.done
    assert git(project, "log", "--format=%H").split() == [
        *reversed(result.value.commits),
        result.value.base,
    ]
    assert len(result.value.commits) == 2


@pytest.mark.slow
async def test_what_the_tests_write_is_not_committed(project: Path) -> None:
    command = ["sh", "-c", "date > made-by-tests.txt"]

    result = await run(project, develop(llm=developer(MEND), test_command=command))

    assert result.value.done
    assert git(project, "show", "--name-only", "--format=").split() == ["calc.py"]


@pytest.mark.slow
async def test_work_does_not_begin_on_changes_or_without_tests(project: Path) -> None:
    (project / "calc.py").write_text(CALC + "# mine\n")
    dirty = await run(project, develop(llm=developer(MEND)))
    git(project, "checkout", "-q", "calc.py")
    git(project, "rm", "-q", "test_calc.py")
    git(project, "commit", "-q", "-m", "No tests")
    without = await run(project, develop(llm=developer(MEND)))

    assert "not committed (calc.py)" in dirty.value.problem
    assert "no tests were found" in without.value.problem
    assert {dirty.return_code, without.return_code} == {1}


async def test_a_folder_without_a_repository_is_told(tmp_path: Path) -> None:
    result = await run(tmp_path, develop(llm=developer(MEND)))

    assert result.state == "failed"
    assert "not a git repository" in str(result.error)
