"""Beginning a thread: what it begins with, checked, and its first run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from workflow_cas import RefConflict, content
from workflow_execute._budget import Budget
from workflow_execute._ids import new_thread_id, now_ms
from workflow_execute._input import checked_text, input_text
from workflow_execute._result import ThreadResult
from workflow_execute._workflow import AnyWorkflow, Workflow
from workflow_execute.children._runner import ChildRunner
from workflow_execute.engine._workspace import resolve_workspace
from workflow_execute.journal._files import ThreadFiles
from workflow_execute.owners._locks import owning, remove_lock_files
from workflow_execute.run._run import Run
from workflow_execute.run._services import RunServices
from workflow_execute.threads._key import check_key
from workflow_execute.threads._summary import check_tags
from workflow_protocol import Hash, StartStep, ThreadContext, ThreadId, expect_type

_MAX_NAME_CHARS = 100


def name_of(workflow: AnyWorkflow) -> str:
    """What to call a workflow that was given no name: its roles. Another table has another name."""
    name = "+".join(role.name for role in workflow.definition.roles)
    if len(name) <= _MAX_NAME_CHARS:
        return name
    return f"{name[: _MAX_NAME_CHARS - 9]}~{hashlib.sha256(name.encode()).hexdigest()[:8]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewThread:
    """What a thread is going to begin with, checked."""

    workflow: AnyWorkflow
    ctx: ThreadContext
    name: str
    tags: tuple[str, ...]
    key: str
    is_versioned: bool
    """Whether versions of its workspace's files are kept: of a folder that was given."""

    @property
    def thread_id(self) -> ThreadId:
        """Its id, under which nothing is stored yet."""
        return self.ctx.thread_id

    @property
    def prompt(self) -> Hash:
        """What its input is stored as."""
        return content(self.ctx.start.prompt).hash


async def new_thread(
    workflow: AnyWorkflow,
    input: object,
    *,
    workspace: Path | None,
    name: str | None,
    bundle: Hash | None,
    tags: Iterable[str] | Mapping[str, str],
    key: str | None = None,
) -> NewThread:
    """Check what a thread is to begin with. Nothing is stored.

    Raises:
        InputError: the input is of another type than the workflow's, or it or the name is not
            UTF-8.
        TypeError: the workflow is something else.
        NotADirectoryError: the workspace is not a folder.
        ValueError: a tag or the key can't be one.
    """
    expect_type(workflow, Workflow, "the workflow", use="make one by create_workflow(…)")
    if key is not None:
        check_key(key)
    checked, prompt = check_tags(tags), input_text(workflow, input)
    start = StartStep(
        prompt=prompt, workspace=await resolve_workspace(workspace), timestamp_ms=now_ms()
    )
    name = name_of(workflow) if name is None else checked_text(name, "the name")
    return NewThread(
        workflow=workflow,
        ctx=ThreadContext(thread_id=new_thread_id(), start=start, bundle_hash=bundle),
        name=name,
        tags=checked,
        key=key or "",
        is_versioned=workspace is not None,
    )


async def run_new_thread(
    services: RunServices, new: NewThread, budget: Budget
) -> ThreadResult[Any]:
    """Begin a thread, own it, and run it to its end.

    Raises:
        RefConflict: its key has begun another thread. Nothing is stored.
    """
    async with owning(services.locks, new.thread_id):
        folder = services.versions_of(new.ctx.start.workspace) if new.is_versioned else None
        run = Run(
            services,
            new.workflow,
            budget,
            new.ctx,
            host_of=partial(ChildRunner, services),
            files=ThreadFiles(folder),
        )
        try:
            await run.begin(new.name, new.tags, key=new.key)
        except RefConflict:
            remove_lock_files(services.locks, [new.thread_id])
            raise
        return await run.run_to_end()
