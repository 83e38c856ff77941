"""What the roles of `solve_issue` give."""

from __future__ import annotations

from typing import Literal

import msgspec

from workflow_templates._project_tests import TestResults


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """The repository before anything was changed."""

    commit: str
    """What was checked out."""
    branch: str
    """The branch that was made for the work."""
    test_command: list[str]
    """Runs the tests."""
    tests: TestResults
    """What they came to."""
    reproduce: list[str] = []
    """The reporter's command; empty where there is none."""
    exit_code: int | None = None
    """What it ended with."""
    problem: str = ""
    """Why the work can't begin."""


class Solved(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the issue."""

    outcome: Literal["fixed", "not fixed", "not begun"]
    """"fixed" only where a test that failed before passes now, or the reporter's command does."""
    evidence: list[str]
    """What failed before and passes now."""
    reasons: list[str]
    """Why it is not fixed, or not begun."""
    commit: str = ""
    """The last commit of the work."""
    branch: str = ""
    """Where it is."""
    patch: str = ""
    """The file with the commits as a patch, for `git am`."""
