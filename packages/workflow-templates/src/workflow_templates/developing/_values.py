"""What the roles of `develop` give: data that models write, and facts that code finds."""

from __future__ import annotations

from typing import Annotated

import msgspec

from workflow_templates._project_tests import TestResults

Line = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


class Phase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of the work that is reviewed, tested and committed by itself."""

    title: Annotated[str, msgspec.Meta(min_length=1, max_length=120, description="what is done")]
    """What is done."""
    acceptance: Annotated[
        list[Line],
        msgspec.Meta(min_length=1, max_length=8, description="what has to be true when it is done"),
    ]
    """What has to be true when it is done."""


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the planner gives."""

    phases: Annotated[
        list[Phase], msgspec.Meta(min_length=1, max_length=8, description="in their order")
    ]
    """In their order."""


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What the coder says of its work. Nothing is decided by it."""

    summary: Annotated[str, msgspec.Meta(max_length=1000, description="what was changed and why")]
    """What was changed and why."""


class Review(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the reviewer decides."""

    approved: Annotated[bool, msgspec.Meta(description="whether the acceptance criteria are met")]
    """Whether the acceptance criteria are met."""
    reasons: Annotated[
        list[Line], msgspec.Meta(max_length=8, description="what is missing; empty if approved")
    ]
    """What is missing; empty if approved."""


class Words(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a commit says."""

    subject: Annotated[
        str,
        msgspec.Meta(
            min_length=1, max_length=100, pattern=r"^[^\n]+$", description="an imperative sentence"
        ),
    ]
    """An imperative sentence."""
    body: Annotated[str, msgspec.Meta(max_length=2000, description="why; may be empty")] = ""
    """Why; may be empty."""


class Baseline(msgspec.Struct, frozen=True, kw_only=True):
    """The project before anything was changed."""

    commit: str
    """What is checked out; empty before the first commit."""
    branch: str
    """Empty where none is checked out."""
    test_command: list[str]
    """Runs the tests; empty where no way was found."""
    tests: TestResults
    """What they came to."""
    left_behind: list[str] = []
    """Files that the tests made. They are not committed."""
    problem: str = ""
    """Why the work can't begin."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What the files differ in from the last commit, as git has it."""

    base: str
    """The last commit."""
    tree: str
    """The files as a tree of git: what is reviewed, tested and committed."""
    files: list[str]
    """A letter of git and the path: `M src/a.py`."""
    forbidden: list[str] = []
    """Those of them that may not be changed."""
    diff: str = ""
    """As a patch; of a long one the middle is left out."""


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """How the tests went on a change."""

    tree: str
    """The files that were tested, as `Change.tree`."""
    passed: bool
    """Whether no test is worse than before the work began."""
    faults: list[str]
    """What is worse."""
    results: TestResults
    """What the command came to."""
    left_behind: list[str] = []
    """Files that the tests made."""


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """The commit of a phase."""

    hash: str
    """As git knows it; empty where there is none."""
    subject: str = ""
    """Its first line."""
    problem: str = ""
    """Why there is none."""


class Developed(msgspec.Struct, frozen=True, kw_only=True):
    """What the whole work came to."""

    done: bool
    """Whether each phase was committed with tests that passed."""
    base: str
    """The commit that it began with."""
    commits: list[str]
    """Their hashes, oldest first."""
    problem: str = ""
    """What is wrong, where it isn't done."""
