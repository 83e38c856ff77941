"""The template `develop`: plan, code, review, test and commit, phase by phase."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from workflow_agent_llm import create_llm_adapter
from workflow_agent_react import ReactAdapterConfig, create_react_adapter, workspace_tools
from workflow_execute import function_adapter
from workflow_protocol import (
    END,
    START,
    AdapterFn,
    Completion,
    Effect,
    ThreadContext,
    WorkflowDefinition,
    otherwise,
    when,
)
from workflow_reactor import LlmFn, LlmSource
from workflow_templates._git import Author
from workflow_templates._project_tests import Commands
from workflow_templates._template import Overrides, Template, bind
from workflow_templates.developing import _progress
from workflow_templates.developing._code import CodeRoles
from workflow_templates.developing._roles import (
    baseline,
    change,
    coder,
    committer,
    planner,
    report,
    reviewer,
    tester,
    writer,
)
from workflow_templates.developing._values import Developed

DEFAULT_AUTHOR = Author()


def develop(
    *,
    llm: str | LlmFn | LlmSource = "default",
    overrides: Overrides | None = None,
    test_command: Sequence[str] = (),
    protect: Sequence[str] = (),
    may_change_tests: bool = False,
    max_attempts: int = 3,
    max_rounds: int = 40,
    test_timeout_s: float = 600.0,
    readable: Sequence[Path] = (),
    author: Author = DEFAULT_AUTHOR,
) -> Template[str, Developed]:
    """Give a workflow that plans a change, makes it, and commits each phase when its tests pass.

    The workspace is the top folder of a git repository without changes that are not committed.
    The planner and the coder work by tools; the reviewer reads the real diff; tests and commits
    are code. What is committed is the tree that was reviewed and tested.

    Args:
        llm: the model of all roles: a scene of `workflow.yaml`, `"provider/model"`, or the model
            itself.
        overrides: other adapters by role name, such as
            `{"coder": agent_to_adapter(create_cli_agent("claude"), "default")}`.
        test_command: runs the project's tests. Found by the project's files if not given: pytest,
            unittest, npm, cargo, go, or `make test`.
        protect: paths that may not be changed; `*` stands for any characters.
        may_change_tests: whether tests that are there may be changed or deleted. Files that
            steer how tests run (`conftest.py`, `pytest.ini`, …) go with them.
        max_attempts: of the coder at one phase.
        max_rounds: model calls in one turn of the planner or coder.
        test_timeout_s: seconds that one run of the tests may take.
        readable: folders outside of the workspace that the tests need in the sandbox.
        author: whom commits name.

    Raises:
        ValueError: there are no attempts.
    """
    if max_attempts < 1:
        raise ValueError(f"max_attempts is {max_attempts}; use 1 or more")
    code = CodeRoles(
        test_command=tuple(test_command),
        commands=Commands(timeout_s=test_timeout_s, readable=tuple(readable)),
        protect=tuple(protect),
        may_change_tests=may_change_tests,
        author=author,
    )
    enough = when(_progress.tried_enough(max_attempts), report)
    again = otherwise(coder, tell=_progress.tell_coder)
    definition = WorkflowDefinition(
        description="Plan a change, make it, review and test it, and commit it phase by phase",
        table={
            START: baseline,
            baseline: [when(_progress.can_begin, planner), report],
            planner: otherwise(coder, tell=_progress.tell_coder),
            coder: change,
            change: [
                when(_progress.nothing_left, committer),
                when(_usable, reviewer, tell=_progress.tell_reviewer),
                enough,
                again,
            ],
            reviewer: [when(_approved, tester), enough, again],
            tester: [when(_tests_passed, writer), enough, again],
            writer: committer,
            committer: [when(_progress.more_phases, coder, tell=_progress.tell_coder), report],
            report: END,
        },
        result=report,
        complete=_complete,
    )
    reading = ReactAdapterConfig(
        llm=llm, toolset=workspace_tools(shell=False, write=False), max_rounds=max_rounds
    )
    writing = ReactAdapterConfig(llm=llm, toolset=workspace_tools(), max_rounds=max_rounds)
    ours: dict[str, AdapterFn] = {
        "baseline": function_adapter(baseline, code.begin, effect=Effect.REPEATABLE),
        "planner": create_react_adapter(reading),
        "coder": create_react_adapter(writing),
        "change": function_adapter(change, code.take_change, effect=Effect.REPEATABLE),
        "tester": function_adapter(tester, code.test, effect=Effect.REPEATABLE),
        "committer": function_adapter(committer, code.commit, effect=Effect.REPEATABLE),
        "report": function_adapter(report, code.conclude, effect=Effect.READ),
    }
    return Template(definition, bind(create_llm_adapter(llm), ours, overrides))


def _usable(ctx: ThreadContext) -> bool:
    """Something was changed, and nothing that may not be."""
    return not _progress.unusable(ctx)


def _approved(ctx: ThreadContext) -> bool:
    """The reviewer approves."""
    return not _progress.declined(ctx)


def _tests_passed(ctx: ThreadContext) -> bool:
    """No test is worse than before."""
    return not _progress.tests_failed(ctx)


def _complete(ctx: ThreadContext) -> Completion:
    done = ctx.meta(report)
    if done is not None and done.done:
        return Completion(return_code=0, summary=f"committed {', '.join(done.commits)}")
    return Completion(return_code=1, summary=done.problem if done is not None else "no report")
