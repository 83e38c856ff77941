"""Workflows to begin with: `minimal`, `develop`, `solve_issue`: each a function of its options."""

from workflow_templates._errors import GitFailed, IssueNotRead
from workflow_templates._git import Author
from workflow_templates._minimal import minimal
from workflow_templates._project_tests import TestResults, find_test_command
from workflow_templates._template import Template
from workflow_templates.developing._develop import develop
from workflow_templates.developing._guard import commit_is_real
from workflow_templates.developing._values import (
    Baseline,
    Change,
    Commit,
    Developed,
    Phase,
    Plan,
    Review,
    Tested,
    Words,
    Work,
)
from workflow_templates.solving._issue import Issue
from workflow_templates.solving._solve_issue import solve_issue
from workflow_templates.solving._values import Prepared, Solved

__all__ = [
    "Author",
    "Baseline",
    "Change",
    "Commit",
    "Developed",
    "GitFailed",
    "Issue",
    "IssueNotRead",
    "Phase",
    "Plan",
    "Prepared",
    "Review",
    "Solved",
    "Template",
    "TestResults",
    "Tested",
    "Words",
    "Work",
    "commit_is_real",
    "develop",
    "find_test_command",
    "minimal",
    "solve_issue",
]
