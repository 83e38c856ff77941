"""Two roles: a reader finds out facts about a folder with tools, a reviewer checks them.

uwf run repo_facts.py "What is this project?" --workspace path/to/a/repository
"""

import os
from typing import Annotated

from pydantic import BaseModel, Field

from uwf import (END, START, AdapterBinding, Allow, Completion, Decision, Deny, ProposedCall,
                 ReactAdapterConfig, RoleDefinition, ThreadContext, WorkflowDefinition,
                 create_llm_adapter, create_react_adapter, create_workflow, when, workspace_tools)

MAX_READINGS = 3


class RepoFacts(BaseModel):
    """What the reader finds out."""

    language: Annotated[str, Field(max_length=40, description="main programming language")]
    entry_point: Annotated[str, Field(max_length=120, description="command or file that starts it")]
    test_command: Annotated[str, Field(max_length=120, description="command that runs its tests")]
    evidence: Annotated[
        list[Annotated[str, Field(max_length=120)]],
        Field(min_length=1, max_length=6, description="paths of the files that say so"),
    ]


class Review(BaseModel):
    """What the reviewer decides."""

    approved: bool
    reasons: Annotated[
        list[Annotated[str, Field(max_length=200)]],
        Field(max_length=4, description="what is missing or wrong; empty when approved"),
    ]


reader = RoleDefinition(
    name="reader",
    description="Reads the repository and states facts",
    system_prompt=(
        "You find out facts about the repository in the workspace. List its files, read its "
        "README and its project file, and take the facts from what you read. `evidence` names "
        "only files that you have read."
    ),
    schema=RepoFacts,
)

reviewer = RoleDefinition(
    name="reviewer",
    description="Approves the facts or sends them back",
    system_prompt=(
        "You review facts about a repository. Approve them when every field holds a concrete "
        "answer and evidence names at least one file. Otherwise send them back with reasons."
    ),
    schema=Review,
)


def facts_were_read(call: ProposedCall, ctx: ThreadContext) -> Decision:
    """A guard: facts count only if they stand in files that the reader really read in this turn."""
    if call.name != "resolve":
        return Allow()
    workspace = str(ctx.start.workspace)
    read = {
        os.path.normpath(os.path.join(workspace, str(past.arguments["path"]))): past.text
        for past in call.history.succeeded("read_file")
    }
    for path in call.arguments["evidence"]:
        if os.path.normpath(os.path.join(workspace, path)) not in read:
            return Deny(
                f"evidence names {path!r}, which you have not read; call read_file with that path, "
                "or leave it out, then resolve again"
            )
    for field in ("entry_point", "test_command"):
        words = str(call.arguments[field]).strip()
        if not any(words in text for text in read.values()):
            return Deny(
                f"{field} is {words!r}, which is in none of the files that you read; copy the "
                "command from a file, then resolve again"
            )
    return Allow()


def approved(ctx: ThreadContext) -> bool:
    """The reviewer approves."""
    review = ctx.meta(reviewer)
    return review is not None and review.approved


def tried_enough(ctx: ThreadContext) -> bool:
    """The reader had its tries."""
    return ctx.visits(reader) >= MAX_READINGS


def conclude(ctx: ThreadContext) -> Completion:
    """Approved facts are success; facts that nobody approved are not."""
    facts, review = ctx.meta(reader), ctx.meta(reviewer)
    if facts is not None and approved(ctx):
        words = f"{facts.language}; starts with {facts.entry_point}; tests: {facts.test_command}"
        return Completion(return_code=0, summary=words)
    reasons = "; ".join(review.reasons) if review is not None else "no review"
    return Completion(return_code=1, summary=f"not approved: {reasons}")


run = create_workflow(
    WorkflowDefinition(
        description="Find out what a repository is, with evidence, and review it",
        table={
            START: reader,
            reader: reviewer,
            reviewer: [when(approved, END), when(tried_enough, END), reader],
        },
        complete=conclude,
    ),
    AdapterBinding(
        create_llm_adapter("default"),
        overrides={
            reader: create_react_adapter(
                ReactAdapterConfig(
                    llm="default",
                    toolset=workspace_tools().only("list_files", "read_file"),
                    guards=[facts_were_read],
                    max_rounds=16,
                )
            )
        },
    ),
)
