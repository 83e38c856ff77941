"""Runs the children of a run: on the same store and budget, each under a lock of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from workflow_cas import Stored
from workflow_execute._errors import (
    ChildCancelled,
    ChildFailed,
    ChildGaveUp,
    ChildSuspended,
    LimitReached,
    ThreadNotFound,
)
from workflow_execute._ids import now_ms
from workflow_execute._input import restored_input
from workflow_execute._result import ThreadResult
from workflow_execute._workflow import AnyWorkflow, ChildTask
from workflow_execute.children._child import ChildRecord, latest
from workflow_execute.children._registry import find_bundle, load_bundle
from workflow_execute.journal._facts import read_fact, read_facts
from workflow_execute.owners._cancellation import cancelled_by_anyio
from workflow_execute.owners._locks import owning
from workflow_execute.run._run import Run
from workflow_execute.run._services import RunServices
from workflow_execute.threads._branch import commit_branch
from workflow_execute.threads._context import context_of
from workflow_execute.threads._files import last_version
from workflow_execute.threads._read import StoredThread, read_thread
from workflow_execute.threads._tree import read_tree
from workflow_protocol import Fact, Hash, RoleFailed, StartStep, ThreadContext, ThreadId


@dataclass(frozen=True, slots=True)
class ChildRunner:
    """See `ChildHost`; it also is an `ObjectHost` and a `MemoryHost`."""

    services: RunServices
    run: Run

    @cancelled_by_anyio
    async def find_bundle(self, name: str) -> Hash:
        """See `ChildHost.find_bundle`."""
        return await find_bundle(self.services.store, name)

    @cancelled_by_anyio
    async def read_object(self, digits: str) -> Stored:
        """See `ObjectHost.read_object`."""
        store = self.services.store
        return await store.get(await store.find(digits))

    @cancelled_by_anyio
    async def read_fact(self, ref: str) -> Fact | None:
        """See `MemoryHost.read_fact`."""
        return await read_fact(self.services.store, ref)

    @cancelled_by_anyio
    async def read_facts(self, prefix: str, limit: int) -> list[Fact]:
        """See `MemoryHost.read_facts`."""
        return [*(await read_facts(self.services.store, prefix, limit)).values()]

    @cancelled_by_anyio
    async def count_facts(self, prefix: str) -> int:
        """See `MemoryHost.count_facts`."""
        return len(await self.services.store.refs(prefix))

    def now_ms(self) -> int:
        """See `MemoryHost.now_ms`."""
        return now_ms()

    @cancelled_by_anyio
    async def run_child(
        self, task: ChildTask[Any], thread_id: ThreadId, text: str, bundle: Hash | None
    ) -> ChildRecord:
        """See `ChildHost.run_child`."""
        self._check_depth(task)
        async with owning(self.services.locks, thread_id):
            try:
                stored = await read_thread(self.services.store, thread_id)
            except ThreadNotFound:
                stored = None
            if stored is not None and stored.status.state == "completed":
                return _record_of_thread(stored)
            result = await (await self._start(task, thread_id, text, bundle, stored)).run_to_end()
        return _record_of_result(task, result)

    def _check_depth(self, task: ChildTask[Any]) -> None:
        names = [*(name for _, name in self.run.path), task.name]
        limit = self.run.limits.max_depth
        if len(names) - 1 > limit:
            raise LimitReached(
                "max_depth",
                f"the limit of {limit} levels of child threads is reached: {' → '.join(names)}",
            )

    async def _start(
        self,
        task: ChildTask[Any],
        thread_id: ThreadId,
        text: str,
        bundle: Hash | None,
        stored: StoredThread | None,
    ) -> Run:
        """Begin the child, or resume it."""
        own = bundle if stored is None or bundle is None else stored.start.bundle
        new = self._new_context(thread_id, text, own)
        workflow = await self._workflow_of(task, own)
        if stored is None:
            restored_input(workflow, text)  # it fits, before the child begins
            run = self.run.child(workflow, new)
            await run.begin(task.name, registered=bundle is not None)
            return run
        stored = await self._with_settings_of(new, stored)
        tree = await read_tree(self.services.store, thread_id)
        files = last_version(stored, tree.attempts)
        run = self.run.child(workflow, context_of(stored, workflow), files)
        run.set_spent(tree.walk())
        await run.resume(stored, tree.attempts)
        return run

    async def _workflow_of(self, task: ChildTask[Any], bundle: Hash | None) -> AnyWorkflow:
        if task.workflow is not None:
            return task.workflow
        assert bundle is not None  # `run_child` has found it
        return await load_bundle(self.services.store, task.name, bundle)

    def _new_context(self, thread_id: ThreadId, text: str, bundle: Hash | None) -> ThreadContext:
        parent = self.run.ctx
        return ThreadContext(
            thread_id=thread_id,
            start=StartStep(
                prompt=text,
                workspace=parent.start.workspace,
                timestamp_ms=now_ms(),
                parent_state=self.run.head,
            ),
            depth=parent.depth + 1,
            bundle_hash=parent.bundle_hash if bundle is None else bundle,
        )

    async def _with_settings_of(self, new: ThreadContext, stored: StoredThread) -> StoredThread:
        """Give the child the bundle and the folder that its parent goes on with.

        One that runs a registered workflow keeps its bundle, which `new` has.
        """
        bundle, folder = new.bundle_hash, new.start.workspace
        bundle = bundle if bundle != stored.start.bundle else None
        moved = folder if folder != stored.workspace else None
        if bundle is None and moved is None:
            return stored
        store, thread_id = self.services.store, stored.thread_id
        await commit_branch(store, stored, stored.head, thread_id, bundle=bundle, workspace=moved)
        return await read_thread(store, thread_id)


def _record_of_result(task: ChildTask[Any], result: ThreadResult[Any]) -> ChildRecord:
    """What a run of a child came to.

    Raises:
        ChildFailed: it failed.
        ChildCancelled: it was cancelled.
        ChildSuspended: it waits for something.
    """
    who = f"child thread {result.thread_id} ({task.name})"
    match result.state:
        case "completed":
            return _completed(result)
        case "suspended":
            # A thread further down has said who it is already.
            reason = result.summary if result.waits_for else f"{who} waits: {result.summary}"
            threads = result.waits_for or (result.thread_id,)
            raise ChildSuspended(
                reason,
                cause=result.cause,
                threads=threads,
                limit=result.limit,
                limit_of=result.limit_of,
            )
        case "cancelled":
            raise ChildCancelled(result.thread_id, f"{who} was cancelled")
        case _:
            kind = type(result.error).__name__
            error = ChildGaveUp if isinstance(result.error, RoleFailed) else ChildFailed
            raise error(
                result.thread_id, f"{who} failed: {kind}: {result.summary}", return_code=1
            ) from result.error


def _completed(result: ThreadResult[Any]) -> ChildRecord:
    done = ChildRecord(
        thread_id=result.thread_id,
        return_code=result.return_code,
        summary=result.summary,
        artifacts=latest(each for step in result.steps for each in step.artifacts),
    )
    last = next((step for step in reversed(result.steps) if step.failure is None), None)
    if last is None:
        return done
    return msgspec.structs.replace(done, role=last.role, value=msgspec.Raw(last.json))


def _record_of_thread(stored: StoredThread) -> ChildRecord:
    """What a child came to that was completed before its parent could record it."""
    done = ChildRecord(
        thread_id=stored.thread_id,
        return_code=stored.status.return_code or 0,
        summary=stored.status.summary,
        artifacts=latest(each for step in stored.steps for each in step.record.artifacts),
    )
    last = next((step for step in reversed(stored.steps) if step.failure is None), None)
    if last is None:
        return done
    return msgspec.structs.replace(done, role=last.record.role, value=msgspec.Raw(last.value))
