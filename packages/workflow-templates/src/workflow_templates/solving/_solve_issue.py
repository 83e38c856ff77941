"""The template `solve_issue`: prepare, develop, and prove that the issue is fixed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from workflow_execute import create_workflow, function_adapter, workflow_adapter
from workflow_protocol import (
    END,
    START,
    AdapterFn,
    Completion,
    Effect,
    ThreadContext,
    WorkflowDefinition,
    when,
)
from workflow_reactor import LlmFn, LlmSource
from workflow_templates._git import Author
from workflow_templates._project_tests import Commands
from workflow_templates._template import Overrides, Template, bind
from workflow_templates.developing._develop import DEFAULT_AUTHOR, develop
from workflow_templates.solving._code import SolvingRoles, developer, issue, preparer, submitter
from workflow_templates.solving._values import Solved


def solve_issue(
    *,
    llm: str | LlmFn | LlmSource = "default",
    overrides: Overrides | None = None,
    test_command: Sequence[str] = (),
    reproduce: Sequence[str] = (),
    may_change_tests: bool = False,
    max_attempts: int = 3,
    max_rounds: int = 40,
    test_timeout_s: float = 600.0,
    readable: Sequence[Path] = (),
    author: Author = DEFAULT_AUTHOR,
) -> Template[str, Solved]:
    """Give a workflow that solves an issue on a branch, and proves that it is fixed.

    The task is the issue: its text, a file, or a URL that gives JSON with `title` and `body`. It
    is "fixed" only if the reporter's command failed before and succeeds now, or, without one, a
    test that failed before passes now, and no test is worse. The commits are left on a branch and
    as a patch; nothing is pushed.

    Args:
        llm: the model of all roles.
        overrides: other adapters for the roles of `develop`, by name.
        test_command: see `develop`, as for the rest.
        reproduce: the reporter's command. One that comes with the issue (`reproduce` in its JSON)
            runs only where the sandbox works.
        may_change_tests: whether tests that are there may be changed or deleted.
        max_attempts: of the coder at one phase.
        max_rounds: model calls in one turn of the planner or coder.
        test_timeout_s: seconds that one command may take.
        readable: folders outside of the workspace that commands need in the sandbox.
        author: whom commits name.
    """
    code = SolvingRoles(
        test_command=tuple(test_command),
        reproduce=tuple(reproduce),
        commands=Commands(timeout_s=test_timeout_s, readable=tuple(readable)),
        may_change_tests=may_change_tests,
    )
    child = develop(
        llm=llm,
        overrides=overrides,
        test_command=test_command,
        may_change_tests=may_change_tests,
        max_attempts=max_attempts,
        max_rounds=max_rounds,
        test_timeout_s=test_timeout_s,
        readable=readable,
        author=author,
    )
    work = create_workflow(child.definition, child.binding)
    definition = WorkflowDefinition(
        description="Solve an issue on a branch, and prove that it is fixed",
        table={
            START: issue,
            issue: preparer,
            preparer: [when(_can_begin, developer), submitter],
            developer: submitter,
            submitter: END,
        },
        result=submitter,
        complete=_complete,
    )
    ours: dict[str, AdapterFn] = {
        "issue": function_adapter(issue, code.read, effect=Effect.READ),
        "preparer": function_adapter(preparer, code.prepare, effect=Effect.REPEATABLE),
        "developer": workflow_adapter(
            "develop", work, input=_text_of_issue, convert=lambda done: done.last_value
        ),
        "submitter": function_adapter(submitter, code.submit, effect=Effect.REPEATABLE),
    }
    return Template(definition, bind(None, ours, None))


def _can_begin(ctx: ThreadContext) -> bool:
    """The tests can be run, and the reporter's command fails."""
    prepared = ctx.meta(preparer)
    return prepared is not None and not prepared.problem


def _text_of_issue(prompt: str, ctx: ThreadContext) -> str:
    del prompt
    read = ctx.meta(issue)
    return read.text if read is not None else ctx.start.prompt


def _complete(ctx: ThreadContext) -> Completion:
    solved = ctx.meta(submitter)
    if solved is None:
        return Completion(return_code=1, summary="no outcome")
    words = "; ".join(solved.evidence if solved.outcome == "fixed" else solved.reasons)
    code = 0 if solved.outcome == "fixed" else 1
    return Completion(return_code=code, summary=f"{solved.outcome}: {words}")
