"""Branches: a new thread that shares the beginning of another, or a thread on another bundle."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from anyio import to_thread

from workflow_cas import RefMove, Store, content, node
from workflow_execute._errors import ForkError
from workflow_execute._ids import new_thread_id, now_ms
from workflow_execute._input import checked_text, forked_input
from workflow_execute._records import FORMAT, SUSPENDED_CODE, BranchRecord, StatusRecord
from workflow_execute._workflow import AnyWorkflow
from workflow_execute.threads._files import files_after
from workflow_execute.threads._read import StoredThread, read_chain, read_thread
from workflow_execute.threads._summary import (
    ThreadSummary,
    entry_of,
    thread_ref,
    with_branch,
    with_prompt,
    with_status,
)
from workflow_protocol import Hash, ThreadId
from workflow_workspace import restore_beside


async def fork_thread(
    store: Store,
    thread_id: ThreadId,
    *,
    at_step: int | None,
    prompt: str | None,
    workflow: AnyWorkflow | None,
    workspace: Path | None,
    bundle: Hash | None,
    name: str | None,
    folders: Path | None = None,
) -> ThreadId:
    """Make a thread that shares the first steps of another. See `Engine.fork`."""
    stored = await read_thread(store, thread_id)
    if workflow is not None:
        prompt = forked_input(workflow, prompt, stored.prompt)
    elif prompt is not None:
        prompt = checked_text(prompt)
    if name is not None:
        checked_text(name, "the name")
    count = len(stored.steps)
    kept = count if at_step is None else at_step
    if not 0 <= kept <= count:
        raise ForkError(f"thread {thread_id} has {count} steps; keep from 0 to {count} of them")
    parent, before = stored.head, stored.without_status
    if kept < count:
        parent = (await store.get(stored.steps[kept].hash)).refs[0]
        before = await _summary_at(store, parent)
    began_ms = now_ms()  # before its id is made, by whose time it is found
    fork_id = new_thread_id()
    workspace = await _workspace_of_fork(store, stored, kept, fork_id, workspace, folders)
    await commit_branch(
        store,
        stored,
        parent,
        fork_id,
        before=before,
        began_ms=began_ms,
        origin=thread_id,
        reason=f"forked from {thread_id} after {kept} steps; resume it",
        prompt=prompt,
        workspace=workspace,
        bundle=bundle,
        name=name,
    )
    return fork_id


async def _workspace_of_fork(
    store: Store,
    stored: StoredThread,
    kept: int,
    fork_id: ThreadId,
    given: Path | None,
    folders: Path | None,
) -> Path | None:
    """Where a fork works: a new or an empty folder gets the files as they were.

    Raises:
        RestoreError: they can't be put there.
    """
    version = await files_after(store, stored, kept)
    if version is None or (given is None and folders is None):
        return given
    if given is None:
        assert folders is not None
        given = folders / fork_id
        await to_thread.run_sync(partial(given.mkdir, parents=True, mode=0o700))
    elif await to_thread.run_sync(os.listdir, given):
        return given
    await restore_beside(store, version, stored.workspace, given)
    return given


async def commit_branch(
    store: Store,
    stored: StoredThread,
    parent: Hash,
    thread_id: ThreadId,
    *,
    before: ThreadSummary | None = None,
    began_ms: int | None = None,
    origin: ThreadId | None = None,
    reason: str = "",
    prompt: str | None = None,
    workspace: Path | None = None,
    bundle: Hash | None = None,
    name: str | None = None,
) -> None:
    """Put a `branch` after a node: as the head of a new thread, or of the same one.

    `before` is the summary up to that node, where it isn't the head.
    """
    task = content(prompt) if prompt is not None else None
    record = BranchRecord(
        format=FORMAT,
        thread_id=thread_id,
        at_ms=now_ms() if began_ms is None else began_ms,
        origin=origin or "",
        workflow=name,
        prompt=task.hash if task else None,
        workspace=str(workspace) if workspace else None,
        bundle=bundle,
    )
    branch = node(
        "branch",
        record,
        [h for h in (parent, task.hash if task else None, bundle) if h],
    )
    same = origin is None
    summary = with_branch(before or stored.without_status, record)
    if prompt is not None:
        summary = with_prompt(summary, prompt)
    status, status_before = stored.status, stored.status_hash if same else None
    if not same:
        status = StatusRecord(
            state="suspended",
            at_ms=now_ms(),
            return_code=SUSPENDED_CODE,
            summary=reason,
            cause="forked",
        )
    status_node = node("status", status)
    await store.commit(
        [*([task] if task else []), branch, *([] if same else [status_node])],
        [
            RefMove(thread_ref(thread_id, "head"), stored.head if same else None, branch.hash),
            RefMove(
                thread_ref(thread_id, "status"),
                status_before,
                stored.status_hash if same else status_node.hash,
            ),
        ],
        [entry_of(with_status(summary, status))],
    )


async def _summary_at(store: Store, head: Hash) -> ThreadSummary:
    chain = await read_chain(store, head)
    return with_prompt(chain.summary, (await store.get(chain.start.prompt)).text())
