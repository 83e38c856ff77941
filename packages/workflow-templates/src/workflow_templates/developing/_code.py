"""The roles of `develop` that are code: what they say is found out, and not claimed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from anyio import to_thread

from workflow_protocol import ThreadContext
from workflow_templates._errors import GitFailed
from workflow_templates._git import Author, Repository
from workflow_templates._project_tests import (
    Commands,
    TestResults,
    find_test_command,
    read_results,
    worse_than,
)
from workflow_templates.developing import _progress, _roles
from workflow_templates.developing._protected import imperative, protected, shortened
from workflow_templates.developing._values import (
    Baseline,
    Change,
    Commit,
    Developed,
    Tested,
)

MAX_DIFF_CHARS = 24_000
"""Of the diff that the reviewer reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRoles:
    """The functions, with the options that they go by."""

    test_command: Sequence[str]
    commands: Commands
    protect: Sequence[str]
    may_change_tests: bool
    author: Author

    async def begin(self, ctx: ThreadContext) -> Baseline:
        """Look at the repository, and run its tests before anything is changed."""
        git = _repository(ctx)
        await to_thread.run_sync(git.check)
        commit = await to_thread.run_sync(git.head)
        branch = await to_thread.run_sync(git.branch)
        before = await to_thread.run_sync(git.take_tree, commit)
        dirty = git.changed(await to_thread.run_sync(git.tree_of, commit), before)
        command = list(self.test_command) or find_test_command(ctx.start.workspace)
        if not command:
            return Baseline(
                commit=commit,
                branch=branch,
                test_command=[],
                tests=TestResults(exit_code=None),
                problem="no tests were found; give test_command",
            )
        results = read_results(await self.commands.run(ctx, "before", command))
        after = await to_thread.run_sync(git.take_tree, commit)
        problem = ""
        if dirty:
            names = ", ".join(sorted(dirty)[:10])
            problem = f"there are changes that are not committed ({names}); commit them first"
        elif not results.ran:
            problem = f"the tests can't be run: {results.output[-600:]}"
        return Baseline(
            commit=commit,
            branch=branch,
            test_command=command,
            tests=results,
            left_behind=_added(git, before, after),
            problem=problem,
        )

    def take_change(self, ctx: ThreadContext) -> Change:
        """What the files differ in from the last commit."""
        git = _repository(ctx)
        base = _progress.last_commit(ctx)
        tree = git.take_tree(base, without=_progress.left_behind(ctx))
        before = git.tree_of(base)
        changes = git.changed(before, tree)
        return Change(
            base=base,
            tree=tree,
            files=[f"{letter} {path}" for path, letter in sorted(changes.items())],
            forbidden=protected(changes, self.protect, may_change_tests=self.may_change_tests),
            diff=shortened(git.diff(before, tree), MAX_DIFF_CHARS),
        )

    async def test(self, ctx: ThreadContext) -> Tested:
        """Run the tests on the change that was reviewed."""
        git = _repository(ctx)
        begun, taken = ctx.meta(_roles.baseline), ctx.meta(_roles.change)
        assert begun is not None
        assert taken is not None
        without = _progress.left_behind(ctx)
        base = _progress.last_commit(ctx)
        tree = await to_thread.run_sync(lambda: git.take_tree(base, without=without))
        results = read_results(await self.commands.run(ctx, "tests", begun.test_command))
        after = await to_thread.run_sync(lambda: git.take_tree(base, without=without))
        faults = worse_than(begun.tests, results)
        if tree != taken.tree:
            faults.append("the files were changed after the review")
        return Tested(
            tree=tree,
            passed=not faults,
            faults=faults,
            results=results,
            left_behind=_added(git, tree, after),
        )

    def commit(self, ctx: ThreadContext) -> Commit:
        """Commit the files that were tested; nothing else, and only if the tests passed."""
        taken, tested = ctx.meta(_roles.change), ctx.meta(_roles.tester)
        words = ctx.meta(_roles.writer)
        if taken is not None and not taken.files:
            return Commit(hash="", problem="nothing is left to commit")
        if taken is None or words is None:
            return Commit(hash="", problem="there is no change, or there are no words for it")
        if tested is None or not tested.passed or tested.tree != taken.tree:
            return Commit(hash="", problem="the tests have not passed on these files")
        author = self.author
        if author.timestamp_s is None:
            author = msgspec.structs.replace(author, timestamp_s=ctx.start.timestamp_ms // 1000)
        subject = imperative(words.subject)
        message = "\n\n".join(part for part in (subject, words.body.strip()) if part) + "\n"
        try:
            made = _repository(ctx).commit(taken.tree, taken.base, message, author)
        except GitFailed as error:
            return Commit(hash="", subject=subject, problem=str(error))
        return Commit(hash=made, subject=subject)

    def conclude(self, ctx: ThreadContext) -> Developed:
        """Say what it came to. Each commit is looked for in git, whoever reported it."""
        git = _repository(ctx)
        begun, made = ctx.meta(_roles.baseline), _progress.commits(ctx)
        base = begun.commit if begun else ""
        unknown = [each for each in made if not git.has_in_history(each)]
        problem = ""
        if begun is None or begun.problem:
            problem = begun.problem if begun else "it has not begun"
        elif unknown:
            problem = f"git does not know {', '.join(unknown)} in what is checked out"
        elif _progress.phase_now(ctx) is not None or not made:
            problem = _why_not_done(ctx)
        elif _progress.tests_failed(ctx):
            problem = "the tests did not pass"
        known = [each for each in made if each not in unknown]
        return Developed(done=not problem, base=base, commits=known, problem=problem)


def _why_not_done(ctx: ThreadContext) -> str:
    phase = _progress.phase_now(ctx)
    made = ctx.meta(_roles.committer)
    if made is not None and made.problem:
        return made.problem
    name = phase.title if phase is not None else "the work"
    last = ctx.steps[-1].role if ctx.steps else ""
    taken, review, tested = (
        ctx.meta(_roles.change),
        ctx.meta(_roles.reviewer),
        ctx.meta(_roles.tester),
    )
    why = "nothing was changed"
    if last == _roles.tester.name and tested is not None:
        why = "; ".join(tested.faults[:5])
    elif last == _roles.reviewer.name and review is not None:
        why = "the reviewer said: " + "; ".join(review.reasons)
    elif taken is not None and taken.forbidden:
        why = f"what may not be changed was: {', '.join(taken.forbidden)}"
    return f"{name} was given up after {_progress.attempts(ctx)} attempts: {why}"


def _repository(ctx: ThreadContext) -> Repository:
    return Repository(ctx.start.workspace)


def _added(git: Repository, before: str, after: str) -> list[str]:
    return sorted(path for path, letter in git.changed(before, after).items() if letter == "A")
