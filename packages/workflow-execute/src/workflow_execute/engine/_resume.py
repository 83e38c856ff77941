"""Resuming a thread: who may, what is changed before, and what its tree has spent."""

from __future__ import annotations

from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from workflow_cas import Store
from workflow_execute._budget import Budget
from workflow_execute._errors import ThreadNotResumable
from workflow_execute._ids import now_ms
from workflow_execute._records import TurnRecord
from workflow_execute._result import ThreadResult
from workflow_execute._workflow import AnyWorkflow, Workflow
from workflow_execute.children._adapter import workflow_below
from workflow_execute.children._runner import ChildRunner
from workflow_execute.engine._present_files import tell_of_files
from workflow_execute.engine._workspace import resolve_workspace
from workflow_execute.journal._files import ThreadFiles
from workflow_execute.journal._turn_writer import TurnWriter
from workflow_execute.owners._locks import owning
from workflow_execute.run._run import Run
from workflow_execute.run._services import RunServices
from workflow_execute.threads._branch import commit_branch
from workflow_execute.threads._context import context_of
from workflow_execute.threads._files import last_version
from workflow_execute.threads._read import StoredThread, read_thread
from workflow_execute.threads._replay import check_unfinished_turn
from workflow_execute.threads._summary import thread_ref
from workflow_execute.threads._tree import ThreadTree, cancel_children, read_lineage, read_tree
from workflow_protocol import Hash, ThreadId

Out = TypeVar("Out")


async def resume_thread(
    services: RunServices,
    workflow: Workflow[Any, Out],
    thread_id: ThreadId,
    *,
    fresh: bool,
    bundle: Hash | None,
    workspace: Path | None,
    restore_files: bool = False,
    budget: Budget,
) -> ThreadResult[Out]:
    """Own a thread and those above it, and run it to its end. See `Engine.resume`."""
    store = services.store
    ancestors = await read_lineage(store, await read_thread(store, thread_id))
    async with AsyncExitStack() as owned:
        for each in [*(thread.thread_id for thread in ancestors), thread_id]:
            await owned.enter_async_context(owning(services.locks, each))
        stored = await read_thread(store, thread_id)
        if stored.status.state == "completed":
            raise ThreadNotResumable(f"thread {thread_id} is completed; fork it or start a new one")
        context_of(stored, workflow)  # it fits, before anything is written
        folder = await resolve_workspace(workspace or stored.workspace)
        if fresh:
            await _abandon_turn(store, stored)
        elif bundle not in {None, stored.start.bundle} or folder != stored.workspace:
            await _check_turns(store, workflow, stored, folder)
        await _change_settings(
            store, stored, bundle=bundle, workspace=folder if workspace is not None else None
        )
        left = await read_tree(store, thread_id)
        await tell_of_files(services, left, folder, restore=restore_files)
        tree = await read_tree(store, ancestors[0].thread_id if ancestors else thread_id)
        for part in tree.walk():
            budget.set_spent(part.thread.thread_id, part.charged)
        own = next(part for part in tree.walk() if part.thread.thread_id == thread_id)
        run = Run(
            services,
            workflow,
            budget,
            context_of(own.thread, workflow),
            host_of=partial(ChildRunner, services),
            ancestors=[(thread.thread_id, thread.start.workflow) for thread in ancestors],
            files=_files_of(services, own),
        )
        run.set_spent(own.walk())
        await run.resume(own.thread, own.attempts)
        return await run.run_to_end()


def _files_of(services: RunServices, part: ThreadTree) -> ThreadFiles:
    """The versions of a thread's files, as far as they have come."""
    thread = part.thread
    folder = services.versions_of(thread.workspace) if thread.start.versioned else None
    return ThreadFiles(folder, last_version(thread, part.attempts))


async def _check_turns(
    store: Store, workflow: AnyWorkflow, stored: StoredThread, folder: Path
) -> None:
    """Make sure that the unfinished turns of a thread and its children fit another workflow.

    Raises:
        JournalMismatch: one of them asks for something else than is recorded.
    """
    tree = await read_tree(store, stored.thread_id)
    above = {child.thread.thread_id: part for part in tree.walk() for child in part.children}
    for part in tree.walk():
        names: list[str] = []
        at = part
        while at is not tree:
            names.insert(0, at.thread.start.workflow)
            at = above[at.thread.thread_id]
        below = workflow_below(workflow, names)
        if below is not None and part.thread.status.state != "completed":
            await check_unfinished_turn(store, below, part.thread, folder)


async def _abandon_turn(store: Store, stored: StoredThread) -> None:
    """Begin the unfinished turn anew, and cancel the children that it has."""
    if stored.turn is not None:
        writer = TurnWriter(store, thread_ref(stored.thread_id, "turn"), stored.turn)
        await writer.append(TurnRecord(key="", at_ms=now_ms(), kind="attempt"))
        await cancel_children(store, stored.thread_id)


async def _change_settings(
    store: Store, stored: StoredThread, *, bundle: Hash | None, workspace: Path | None
) -> None:
    """Record the bundle and the folder that are given, where they are others than before."""
    new_bundle = bundle if bundle != stored.start.bundle else None
    new_workspace = workspace if workspace != stored.workspace else None
    if new_bundle is not None or new_workspace is not None:
        await commit_branch(
            store,
            stored,
            stored.head,
            stored.thread_id,
            bundle=new_bundle,
            workspace=new_workspace,
        )
