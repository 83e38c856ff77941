"""The roles of `develop`, and what models are told."""

from __future__ import annotations

from workflow_protocol import RoleDefinition
from workflow_templates.developing._values import (
    Baseline,
    Change,
    Commit,
    Developed,
    Plan,
    Review,
    Tested,
    Words,
    Work,
)

baseline = RoleDefinition(
    name="baseline",
    description="Code: finds the commit and the tests, and runs them before anything is changed",
    schema=Baseline,
)
planner = RoleDefinition(
    name="planner",
    description="Splits the task into phases with acceptance criteria",
    system_prompt=(
        "You plan a change in the repository of the workspace. Read what you need. Split the task "
        "into as few phases as make sense, one for a small task; each is reviewed, tested and "
        "committed by itself. Give each phase acceptance criteria that a reader of the diff can "
        "check. You change nothing."
    ),
    schema=Plan,
)
coder = RoleDefinition(
    name="coder",
    description="Changes the files",
    system_prompt=(
        "You change the files of the workspace so that the phase that you are told is done. Read "
        "before you write, and change as little as you can. Leave the tests that are there as they "
        "are; you may add new test files. Don't commit: code does that when the tests pass. "
        "Resolve with what you changed and why."
    ),
    schema=Work,
)
change = RoleDefinition(
    name="change", description="Code: takes the real diff of the files", schema=Change
)
reviewer = RoleDefinition(
    name="reviewer",
    description="Judges the diff by the acceptance criteria",
    system_prompt=(
        "You review a change. The latest step has its real diff; judge by that, not by what the "
        "coder says. Approve it when the phase's acceptance criteria are met and nothing else was "
        "changed without need. Otherwise say what is missing. The tests are run by code "
        "afterwards."
    ),
    schema=Review,
)
tester = RoleDefinition(name="tester", description="Code: runs the project's tests", schema=Tested)
writer = RoleDefinition(
    name="writer",
    description="Words the commit",
    system_prompt=(
        "You word a commit. The subject is an imperative sentence of at most 70 characters about "
        "what the change does; the body says why, in a few lines."
    ),
    schema=Words,
)
committer = RoleDefinition(
    name="committer", description="Code: commits what was tested", schema=Commit
)
report = RoleDefinition(
    name="report", description="Code: checks the commits and says what it came to", schema=Developed
)
