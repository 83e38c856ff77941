"""The roles of `solve_issue` that are code: before, after, and what that proves."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
from anyio import to_thread

from workflow_protocol import RoleDefinition, ThreadContext
from workflow_templates._git import Repository
from workflow_templates._project_tests import (
    Commands,
    TestResults,
    find_test_command,
    read_results,
    worse_than,
)
from workflow_templates.developing._protected import is_test, protected
from workflow_templates.developing._values import Developed
from workflow_templates.solving._issue import Issue, read_issue
from workflow_templates.solving._values import Prepared, Solved

issue = RoleDefinition(name="issue", description="Code: reads the issue", schema=Issue)
preparer = RoleDefinition(
    name="preparer",
    description="Code: finds the tests, runs them before anything is changed, makes the branch",
    schema=Prepared,
)
developer = RoleDefinition(
    name="developer", description="Develops the change: a child thread", schema=Developed
)
submitter = RoleDefinition(
    name="submitter",
    description="Code: proves that the issue is fixed, and writes the patch",
    schema=Solved,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SolvingRoles:
    """The functions, with the options that they go by."""

    test_command: Sequence[str]
    reproduce: Sequence[str]
    commands: Commands
    may_change_tests: bool

    async def read(self, ctx: ThreadContext) -> Issue:
        """Read the issue."""
        return await read_issue(ctx.start.prompt, ctx.start.workspace)

    async def prepare(self, ctx: ThreadContext) -> Prepared:
        """See that the tests can be run, and that the reporter's command fails."""
        git = Repository(ctx.start.workspace)
        await to_thread.run_sync(git.check)
        commit = await to_thread.run_sync(git.head)
        branch = f"uwf/{ctx.thread_id.lower()}"
        read = ctx.meta(issue)
        told = ["sh", "-c", read.reproduce] if read is not None and read.reproduce else []
        reproduce = list(self.reproduce) or told
        command = list(self.test_command) or find_test_command(ctx.start.workspace)
        prepared = Prepared(
            commit=commit,
            branch=branch,
            test_command=command,
            tests=TestResults(exit_code=None),
            reproduce=reproduce,
        )
        if not commit or git.changed(git.tree_of(commit), git.take_tree(commit)):
            return msgspec.structs.replace(prepared, problem="commit all changes first")
        if not command:
            problem = "no tests were found; give test_command"
            return msgspec.structs.replace(prepared, problem=problem)
        tests = read_results(await self.commands.run(ctx, "tests", command))
        exit_code = await self._reproduce(ctx, reproduce)
        problem = "" if tests.ran else f"the tests can't be run: {tests.output[-600:]}"
        if reproduce and exit_code == 0:
            problem = "the reporter's command succeeds before anything is changed"
        if not problem and git.branch() != branch:
            git.run("switch", "-q", "-c", branch)
        return msgspec.structs.replace(prepared, tests=tests, exit_code=exit_code, problem=problem)

    async def submit(self, ctx: ThreadContext) -> Solved:
        """Say whether the issue is fixed, by what failed before and passes now."""
        before, done = ctx.meta(preparer), ctx.meta(developer)
        if before is None or before.problem:
            problem = before.problem if before is not None else "it was not prepared"
            return Solved(outcome="not begun", evidence=[], reasons=[problem])
        if done is None or not done.done or not done.commits:
            problem = done.problem if done is not None else "nothing was developed"
            return Solved(outcome="not fixed", evidence=[], reasons=[problem], branch=before.branch)
        commit = done.commits[-1]
        reasons = await self._what_is_wrong(ctx, before, commit)
        evidence = [] if reasons else await self._evidence(ctx, before, commit)
        if not reasons and not evidence:
            reasons = ["no test that failed before passes now"]
            if before.reproduce:
                reasons = ["the reporter's command still fails"]
        return Solved(
            outcome="not fixed" if reasons else "fixed",
            evidence=evidence,
            reasons=reasons,
            commit=commit,
            branch=before.branch,
            patch=str(_write_patch(Repository(ctx.start.workspace), before, commit)),
        )

    async def _what_is_wrong(self, ctx: ThreadContext, before: Prepared, commit: str) -> list[str]:
        git = Repository(ctx.start.workspace)
        if not git.has_in_history(commit) or git.head() != commit:
            return [f"{commit} is not what is checked out"]
        changes = git.changed(git.tree_of(before.commit), git.tree_of(commit))
        forbidden = protected(changes, (), may_change_tests=self.may_change_tests)
        return [f"{path} may not be changed" for path in forbidden]

    async def _evidence(self, ctx: ThreadContext, before: Prepared, commit: str) -> list[str]:
        """What failed on the files before, and passes on those of the commit.

        Both run in folders of their own, with the files as git has them and nothing else.
        """
        git = Repository(ctx.start.workspace)
        with tempfile.TemporaryDirectory(prefix="uwf-solved-") as folder:
            after = _at(ctx, Path(folder, "after"))
            git.write_files(commit, after.start.workspace)
            own = ctx.start.workspace / ".venv"
            command = list(before.test_command)
            if command[0].startswith(".venv/"):
                command[0] = str(ctx.start.workspace / command[0])
            commands = replace(self.commands, readable=(*self.commands.readable, own))
            now = read_results(await commands.run(after, "tests", command))
            if worse_than(before.tests, now):
                return []
            if before.reproduce:
                code = await self._reproduce(after, before.reproduce)
                words = f"the reporter's command ended with {before.exit_code} and now with 0"
                return [words] if code == 0 else []
            mended = sorted({*before.tests.failed} & {*now.passed})
            fresh = {*now.passed} - {*before.tests.passed} - {*before.tests.failed}
            if fresh:
                old = _at(ctx, Path(folder, "before"))
                _write_before_with_tests(git, before.commit, commit, old.start.workspace)
                then = read_results(await commands.run(old, "new", command))
                mended += sorted(fresh - {*then.passed}) if then.ran else []
            return [f"{name} failed before and passes now" for name in mended]

    async def _reproduce(self, ctx: ThreadContext, command: Sequence[str]) -> int | None:
        if not command:
            return None
        trusted = bool(self.reproduce)  # else it comes with the issue, from anybody
        return (await self.commands.run(ctx, "reproduce", command, trusted=trusted)).exit_code


def _at(ctx: ThreadContext, folder: Path) -> ThreadContext:
    folder.mkdir()
    start = msgspec.structs.replace(ctx.start, workspace=folder)
    return replace(ctx.scoped(folder.name), start=start)


def _write_before_with_tests(git: Repository, base: str, commit: str, into: Path) -> None:
    """The files before, with the tests that came since."""
    git.write_files(base, into)
    changes = git.changed(git.tree_of(base), git.tree_of(commit))
    with tempfile.TemporaryDirectory(prefix="uwf-solved-") as folder:
        git.write_files(commit, Path(folder))
        for path, letter in changes.items():
            if letter != "D" and is_test(path):
                (into / path).parent.mkdir(parents=True, exist_ok=True)
                (into / path).write_bytes(Path(folder, path).read_bytes())


def _write_patch(git: Repository, before: Prepared, commit: str) -> Path:
    text = git.run("format-patch", "--stdout", "--binary", f"{before.commit}..{commit}")
    own = git.folder / git.run("rev-parse", "--git-path", f"{before.branch}.patch").rstrip("\n")
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_bytes(text.encode("utf-8", "surrogateescape"))
    return own
