"""The part of the engine that a service is built on: threads that run beside their callers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

import anyio

from workflow_cas import RefConflict
from workflow_execute._budget import Budget, Limits
from workflow_execute._errors import EngineNotRunning, ThreadBusy, ThreadNotResumable
from workflow_execute._records import StartRecord
from workflow_execute._result import ThreadResult
from workflow_execute._workflow import Workflow
from workflow_execute.engine._background import Background
from workflow_execute.engine._begin import NewThread, new_thread, run_new_thread
from workflow_execute.engine._handle import ThreadHandle
from workflow_execute.engine._recover import Recovery, Workflows, recover_threads
from workflow_execute.engine._resume import resume_thread
from workflow_execute.owners._locks import owned_among
from workflow_execute.run._services import RunServices
from workflow_execute.threads._key import check_same_task, find_keyed, key_ref
from workflow_execute.threads._read import read_thread
from workflow_protocol import Hash, ThreadId

In = TypeVar("In")
Out = TypeVar("Out")


class ServiceEngine:
    """Runs threads in the background, while `running` lasts."""

    def __init__(self, services: RunServices, limits: Limits) -> None:
        self._services = services
        self._limits = limits
        self._background: Background | None = None

    @asynccontextmanager
    async def running(self, *, wait_s: float = 0.0) -> AsyncGenerator[Self]:
        """Let threads run in the background while the block lasts.

        When it is left, those that still run get `wait_s` seconds to end by themselves. The others
        are stopped at once, as by `pause`, with the cause `shutdown`, and `recover` takes them up,
        here or in another process. Where the block is left by an exception or a cancellation, they
        are stopped without waiting. A tool that can't be stopped is waited for.

        Args:
            wait_s: in seconds.

        Raises:
            RuntimeError: the engine runs already.
        """
        if self._background is not None:
            raise RuntimeError("the engine is running already; enter `running` once")
        failure: Exception | None = None
        async with anyio.create_task_group() as group:
            self._background = Background(self._services, group)
            grace_s = 0.0
            try:
                yield self
                grace_s = wait_s
            except Exception as error:  # noqa: BLE001 - raised below, outside of the group's wrapping
                failure = error
            finally:
                self._background.close(grace_s)
        self._background = None
        if failure is not None:
            raise failure

    async def submit(
        self,
        workflow: Workflow[In, Out],
        input: In,
        *,
        key: str | None = None,
        tags: Iterable[str] | Mapping[str, str] = (),
        workspace: Path | None = None,
        name: str | None = None,
        bundle: Hash | None = None,
    ) -> ThreadHandle[Out]:
        """Begin a thread in the background; return when its beginning is on disk.

        With a `key` this may be asked again, from any process with the same store: exactly one
        thread begins. Who asks again gets a handle to that thread: it goes on if it runs, is taken
        up if its process died or was shut down, and is left as it is if it has ended, however.
        Deleting the thread frees the key.

        Cancelled, it may have begun the thread all the same.

        Args:
            workflow: what to run.
            input: the task: text, or a value of the workflow's `input` type.
            key: names the task for good: 1 to 200 printable characters.
            tags: what to find the thread by; those of a mapping are kept as `name=value`.
            workspace: the folder to work in; the current one if not given.
            name: what to call the workflow, for people and `recover`; its roles if not given.
            bundle: the stored bundle that `workflow` came from.

        Raises:
            EngineNotRunning: this is not inside of `running`, or it is being left.
            KeyConflict: the key has begun a thread of another workflow, by its name, or with
                another input. Tags, workspace and bundle are not compared.
            InputError: the input is of another type.
            NotADirectoryError: the workspace is not a folder.
            ValueError: the key or a tag can't be one.
            ThreadNotResumable: the thread of the key is to be taken up, and does not fit.
            StoreError: the store failed.
        """
        background = self._running()
        new = await new_thread(
            workflow, input, workspace=workspace, name=name, bundle=bundle, tags=tags, key=key
        )
        while True:
            start = await find_keyed(self._services.store, key) if key is not None else None
            if start is not None:
                return await self._submitted_before(workflow, new, start)
            try:
                run = await background.run(
                    new.thread_id,
                    lambda services: run_new_thread(services, new, Budget(self._limits)),
                )
            except RefConflict as conflict:
                if conflict.name != key_ref(new.key):
                    raise
            else:
                return ThreadHandle(self._services, workflow, new.thread_id, run, is_new=True)

    async def resume_in_background(
        self,
        workflow: Workflow[Any, Out],
        thread_id: ThreadId,
        *,
        fresh: bool = False,
        bundle: Hash | None = None,
        workspace: Path | None = None,
    ) -> ThreadHandle[Out]:
        """Go on with a thread in the background, as `resume` does; return when that is on disk.

        A thread that runs here already just goes on.

        Raises:
            EngineNotRunning: this is not inside of `running`, or it is being left.
            ThreadNotFound: there is none of this id.
            ThreadBusy: it, or a thread above it, is being run elsewhere.
            ThreadNotResumable: it is completed, or a stored value no longer fits its role.
            NotADirectoryError: the workspace is not a folder, or no longer.
        """

        async def work(services: RunServices) -> ThreadResult[Out]:
            return await resume_thread(
                services,
                workflow,
                thread_id,
                fresh=fresh,
                bundle=bundle,
                workspace=workspace,
                budget=Budget(self._limits),
            )

        run = await self._running().run(thread_id, work)
        return ThreadHandle(self._services, workflow, thread_id, run)

    async def handle(self, workflow: Workflow[Any, Out], thread_id: ThreadId) -> ThreadHandle[Out]:
        """Return a handle to any thread, to wait for it and to hear of it. Starts nothing.

        Raises:
            ThreadNotFound: there is none of this id.
        """
        run = None if self._background is None else await self._background.find(thread_id)
        if run is None:
            await read_thread(self._services.store, thread_id)
        return ThreadHandle(self._services, workflow, thread_id, run)

    async def recover(self, workflows: Workflows, *, limit: int | None = None) -> Recovery:
        """Take up, in the background, the threads that dead or closed processes have left.

        These are the threads that are recorded as running and that nobody runs, and those that
        `running` has shut down when it was left. Call it at the start of a service, and now and
        then for the sake of the other processes. Where several do at the same time, each thread is
        taken up by one of them.

        Args:
            workflows: what the threads may need, by the name that they were started under or by
                the hash of their bundle; without names, they have those that `submit` gives. A
                thread gets the workflow of its bundle, or else of its name.
            limit: take up so many at most.

        Returns:
            What was taken up, and what was left and why. A thread whose run ended here by an error
            of its own, such as `JournalMismatch`, is not tried again by this engine.

        Raises:
            EngineNotRunning: this is not inside of `running`, or it is being left.
        """
        background = self._running()

        def run_among(thread_ids: Sequence[ThreadId]) -> set[ThreadId]:
            here = {each for each in thread_ids if background.has(each)}
            return here | self._run_among(thread_ids)

        return await recover_threads(
            self._services.store,
            workflows,
            self.resume_in_background,
            run_among=run_among,
            given_up=background.given_up,
            limit=limit,
        )

    async def _submitted_before(
        self, workflow: Workflow[Any, Out], new: NewThread, start: StartRecord
    ) -> ThreadHandle[Out]:
        """Give a handle to the thread that a key has begun, and see that it runs."""
        check_same_task(start, workflow=new.name, prompt=new.prompt)
        thread_id = ThreadId(start.thread_id)
        handle = await self.handle(workflow, thread_id)
        if handle.runs_here:
            return handle
        status = (await read_thread(self._services.store, thread_id)).status
        if status.cause != "shutdown" and (
            status.state != "running" or self._run_among([thread_id])
        ):
            return handle
        try:
            return await self.resume_in_background(workflow, thread_id)
        except ThreadBusy:
            return handle
        except ThreadNotResumable:
            if (await read_thread(self._services.store, thread_id)).status.state != "completed":
                raise
            return handle

    def _running(self) -> Background:
        if self._background is None:
            raise EngineNotRunning
        return self._background

    def _run_among(self, thread_ids: Sequence[ThreadId]) -> set[ThreadId]:
        """Which of some threads somebody runs now. May be called in any thread."""
        locks = self._services.locks
        if locks is None:
            return self._services.signals.run_among(thread_ids)
        return owned_among(locks, thread_ids)
