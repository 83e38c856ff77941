"""`solve_issue` on real repositories: releases of known packages, judged by the tests of the next.

The source distributions are fetched from the package index. Nothing of them is kept here.
"""

import atexit
import re
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from workflow_execute import create_workflow, function_adapter, run_workflow
from workflow_protocol import Effect, ThreadContext
from workflow_templates import Solved, solve_issue
from workflow_templates._template import Overrides
from workflow_templates.developing._roles import committer
from workflow_templates.developing._values import Commit

from .developers import Actions, commit_all, developer, git, write

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

BACKENDS = ("pip", "setuptools", "wheel", "hatchling", "hatch-vcs")
UNREACHABLE = re.compile(
    r"Retrying|NewConnectionError|name resolution|dns error|timed out|tcp connect|"
    r"error sending request|Network is unreachable|network was disabled",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Fix:
    """A fault of one release that the next one mends."""

    package: str
    before: str
    after: str
    mended: str
    """The file with the fault."""
    tests: str
    """The file with the tests that find it in the release after."""
    issue: str


FIXES = [
    Fix(
        "inflection", "0.3.0", "0.3.1", "inflection.py", "test_inflection.py",
        "pluralize('human') gives 'humen' and pluralize('potato') gives 'potatos'.",
    ),
    Fix(
        "parse", "1.20.1", "1.20.2", "parse.py", "tests/test_parse.py",
        "A field name with a hyphen, as in {a-b}, is not parsed.",
    ),
    Fix(
        "parse", "1.20.2", "1.21.0", "parse.py", "tests/test_parse.py",
        "The format {:,d} with thousands separators is not recognised.",
    ),
    Fix(
        "humanize", "4.12.0", "4.12.1", "src/humanize/filesize.py", "tests/test_filesize.py",
        "naturalsize(1.123456789) gives '1.123456789 Bytes' and should give '1 Bytes'.",
    ),
    Fix(
        "humanize", "4.12.2", "4.12.3", "src/humanize/filesize.py", "tests/test_filesize.py",
        "naturalsize(1.0) gives '1.0 Byte' and should give '1 Byte'.",
    ),
]  # fmt: skip
each_fix = pytest.mark.parametrize("fix", FIXES, ids=lambda fix: f"{fix.package}-{fix.after}")


@cache
def unpacked(package: str, version: str) -> Path:
    """The files of a release. Skips where the package index can't be reached."""
    folder = Path(mkdtemp(prefix="uwf-trials-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    tools = [word for name in BACKENDS for word in ("--with", name)]
    pip = ["uv", "run", "-q", "--no-project", *tools, "python", "-m", "pip", "download"]
    options = ["--no-deps", "--no-build-isolation", "--no-binary", ":all:", "-d", str(folder)]
    done = subprocess.run(
        [*pip, *options, f"{package}=={version}"], cwd=folder, capture_output=True, text=True
    )
    if done.returncode:
        if UNREACHABLE.search(done.stderr):
            pytest.skip("the package index can't be reached")
        pytest.fail(f"{package} {version} could not be fetched:\n{done.stderr[-2_000:]}")
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder / "files", filter="data")
    [top] = (folder / "files").iterdir()
    return top


def run_tests(path: str | Path) -> list[str]:
    """The command that runs one file of tests on the sources of the current folder."""
    env = ["env", "PYTHONPATH=src:.", "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"]
    options = ["-c", "/dev/null", "--rootdir=.", "-rfEp", "-q", "--tb=short", "--color=no"]
    no_cache = ["-p", "no:cacheprovider"]
    return [*env, sys.executable, "-B", "-m", "pytest", *options, *no_cache, str(path)]


@dataclass(frozen=True)
class Trial:
    """A repository with the release before, and the tests of the one after elsewhere."""

    fix: Fix
    project: Path
    judge: Path

    async def solve(
        self, actions: Actions, overrides: Overrides | None = None
    ) -> tuple[Solved, int]:
        """Run the whole workflow. What it says, and what the thread ended with."""
        template = solve_issue(
            llm=developer(actions),
            overrides=overrides,
            test_command=run_tests(self.fix.tests),
            reproduce=run_tests(self.judge),
            readable=[self.judge.parent],
            max_attempts=1,
        )
        workflow = create_workflow(template.definition, template.binding)
        result = await run_workflow(workflow, self.fix.issue, workspace=self.project)
        assert result.state == "completed", result.error
        return result.value, result.return_code


def begin(fix: Fix, folder: Path) -> Trial:
    """Put the release before into a repository of its own."""
    project = folder / "project"
    judge = folder / "judge" / Path(fix.tests).name
    release = unpacked(fix.package, fix.before)
    for path in release.rglob("*"):
        if path.is_file() and path.name != ".gitignore":  # it names made files that are needed here
            target = project / path.relative_to(release)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    judge.parent.mkdir()
    judge.write_bytes((unpacked(fix.package, fix.after) / fix.tests).read_bytes())
    commit_all(project)
    return Trial(fix, project, judge)


@each_fix
async def test_a_competent_developer_solves_it(fix: Fix, tmp_path: Path) -> None:
    trial = begin(fix, tmp_path)
    mended = (unpacked(fix.package, fix.after) / fix.mended).read_text(encoding="utf-8")

    solved, code = await trial.solve([write(fix.mended, mended)])

    assert (solved.outcome, code, solved.reasons) == ("fixed", 0, [])
    assert solved.evidence == ["the reporter's command ended with 1 and now with 0"]
    assert git(trial.project, "show", "--name-only", "--format=").split() == [fix.mended]


def invent(ctx: ThreadContext) -> Commit:
    """A committer that commits nothing."""
    del ctx
    return Commit(hash="1a2b3c4d" * 5, subject="Done")


@each_fix
async def test_an_incompetent_developer_is_not_believed(fix: Fix, tmp_path: Path) -> None:
    mended = (unpacked(fix.package, fix.after) / fix.mended).read_text(encoding="utf-8")
    invented = function_adapter(committer, invent, effect=Effect.READ)
    lies: dict[str, tuple[Actions, Overrides, str]] = {
        "breaks the tests": (
            [write(fix.mended, "def (")], {}, "passed before and does not now|ended with",
        ),
        "empties the tests": ([write(fix.tests, "")], {}, "may not be changed"),
        "does something else": (
            [write("done.txt", "All is done.\n")], {}, "the reporter's command still fails",
        ),
        "invents a hash": (
            [write(fix.mended, mended)], {"committer": invented}, "git does not know 1a2b3c4d",
        ),
    }  # fmt: skip
    for name, (actions, overrides, words) in lies.items():
        folder = tmp_path / name.replace(" ", "-")
        folder.mkdir()

        solved, code = await begin(fix, folder).solve(actions, overrides)

        assert (solved.outcome, code, solved.evidence) == ("not fixed", 1, []), name
        assert re.search(words, " ".join(solved.reasons)), (name, solved.reasons)
