"""The engine: runs threads and commits each step before the next role starts."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from filelock import FileLock, Timeout

from workflow_cas import MemoryStore, RefMove, Store, content, node
from workflow_execute._errors import ThreadBusy, ThreadNotCompleted, ThreadNotResumable
from workflow_execute._ids import new_thread_id, now_ms
from workflow_execute._journal import StoreJournal
from workflow_execute._records import (
    FORMAT,
    StartRecord,
    StateRecord,
    StatusRecord,
    ThreadState,
    TurnRecord,
)
from workflow_execute._threads import StoredThread, read_thread, read_turn, thread_ref
from workflow_execute._workflow import Workflow, encode_value
from workflow_protocol import (
    Completion,
    Event,
    Hash,
    RoleFinished,
    RoleStep,
    StartStep,
    Suspended,
    ThreadContext,
    ThreadEnded,
    ThreadId,
    ThreadStarted,
    WorkflowError,
    schema_of,
)

Observer = Callable[[Event], None]

_log = logging.getLogger("workflow_execute")
_COMMIT_GRACE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a thread may take before it is suspended."""

    max_steps: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadResult:
    """How a run of a thread ended."""

    thread_id: ThreadId
    state: ThreadState
    return_code: int
    """0 completed (or the workflow's own code), 1 failed or suspended, 130 cancelled."""
    summary: str
    """The completion's summary, or the reason for any other state."""
    steps: tuple[RoleStep, ...]
    error: Exception | None = None
    """What a role raised, for `failed`."""

    @property
    def value(self) -> object:
        """The value of the last step.

        Raises:
            ThreadNotCompleted: the thread failed, was suspended or cancelled.
        """
        if self.state != "completed":
            raise ThreadNotCompleted(
                f"thread {self.thread_id} is {self.state}: {self.summary}"
            ) from self.error
        return self.steps[-1].meta


class Engine:
    """Runs threads on a store.

    Args:
        store: keeps everything; stays the caller's to close.
        locks: a folder for one lock file a thread, so that two processes can't run one thread.
            `None` where no other process can see the store.
        limits: for each thread.
        observer: hears every event. It must be quick; what it raises is logged and dropped.
    """

    def __init__(
        self,
        store: Store,
        *,
        locks: Path | None = None,
        limits: Limits = Limits(),
        observer: Observer | None = None,
    ) -> None:
        self.store = store
        self._locks = locks
        self._limits = limits
        self._observer = observer

    async def start(
        self,
        workflow: Workflow,
        prompt: str,
        *,
        workspace: Path | None = None,
        name: str = "workflow",
        bundle: Hash | None = None,
    ) -> ThreadResult:
        """Begin a thread and run it until it completes, fails, is suspended or cancelled.

        A role's exception ends the run as `failed` and is in the result; cancellation is recorded
        and raised on.

        Args:
            workflow: what to run.
            prompt: the task.
            workspace: the folder to work in; the current one if not given.
            name: what to call the workflow where people see it.
            bundle: the stored bundle that `workflow` came from.

        Raises:
            NotADirectoryError: the workspace is not a folder.
            StoreError: the store failed; what was committed is kept.
        """
        folder = await anyio.Path(workspace or Path.cwd()).resolve()
        if not await folder.is_dir():
            raise NotADirectoryError(f"the workspace {str(folder)!r} is not a folder; create it")
        thread_id = new_thread_id()
        ctx = ThreadContext(
            thread_id=thread_id,
            start=StartStep(prompt=prompt, workspace=Path(folder), timestamp_ms=now_ms()),
            bundle_hash=bundle,
        )
        async with self._owning(thread_id):
            run = _Run(self.store, workflow, self._limits, self._observer, ctx)
            await run.begin(name)
            return await run.to_the_end()

    async def resume(self, workflow: Workflow, thread_id: ThreadId) -> ThreadResult:
        """Go on with a thread where its last run ended, in the middle of a turn if need be.

        Recorded model replies and tool results are used again, not made again.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadBusy: it is being run elsewhere.
            ThreadNotResumable: it is completed, or a stored value no longer fits its role.
        """
        async with self._owning(thread_id):
            stored = await read_thread(self.store, thread_id)
            if stored.status.state == "completed":
                raise ThreadNotResumable(f"thread {thread_id} is completed; start a new one")
            ctx = context_of(stored, workflow)
            run = _Run(self.store, workflow, self._limits, self._observer, ctx)
            await run.take_up(stored)
            return await run.to_the_end()

    async def is_running(self, thread_id: ThreadId) -> bool:
        """Whether some process runs the thread now. A dead owner's lock is free at once."""
        if self._locks is None:
            return False
        try:
            async with self._owning(thread_id):
                return False
        except ThreadBusy:
            return True

    @asynccontextmanager
    async def _owning(self, thread_id: ThreadId) -> AsyncGenerator[None]:
        if self._locks is None:
            yield
            return
        await anyio.Path(self._locks).mkdir(parents=True, exist_ok=True)
        path = self._locks / f"{thread_id}.lock"
        lock = FileLock(path, thread_local=False)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise ThreadBusy(thread_id) from None
        try:
            yield
        finally:
            lock.release()


async def run_workflow(
    workflow: Workflow,
    prompt: str,
    *,
    workspace: Path | None = None,
    observer: Observer | None = None,
) -> ThreadResult:
    """Run a workflow once on a store in memory, of which nothing remains."""
    engine = Engine(MemoryStore(), observer=observer)
    return await engine.start(workflow, prompt, workspace=workspace)


def context_of(stored: StoredThread, workflow: Workflow) -> ThreadContext:
    """Build the context of a stored thread, its values typed by the workflow's roles.

    Raises:
        ThreadNotResumable: the workflow has not the roles, or other schemas.
    """
    try:
        steps = tuple(
            RoleStep(
                role=step.record.role,
                meta=schema_of(workflow.definition.role(step.record.role).schema).validate_json(
                    step.value
                ),
                content=step.content,
                content_hash=step.record.content,
                timestamp_ms=step.record.at_ms,
                usage=step.record.usage,
            )
            for step in stored.steps
        )
    except (KeyError, WorkflowError) as error:
        raise ThreadNotResumable(
            f"thread {stored.thread_id} does not fit this workflow: {error}"
        ) from error
    return ThreadContext(
        thread_id=stored.thread_id,
        start=StartStep(
            prompt=stored.prompt,
            workspace=stored.workspace,
            timestamp_ms=stored.start.at_ms,
            parent_state=stored.start.parent_state,
        ),
        steps=steps,
        depth=stored.start.depth,
        bundle_hash=stored.start.bundle,
    )


class _Run:
    """One run of one thread: the loop over `advance`, and what it commits."""

    def __init__(
        self,
        store: Store,
        workflow: Workflow,
        limits: Limits,
        observer: Observer | None,
        ctx: ThreadContext,
    ) -> None:
        self._store = store
        self._workflow = workflow
        self._limits = limits
        self._observer = observer
        self._ctx = ctx
        self._head: Hash | None = None
        self._status: Hash | None = None
        self._journal = self._new_journal()

    async def begin(self, name: str) -> None:
        """Commit the start of a new thread."""
        ctx = self._ctx
        prompt = content(ctx.start.prompt)
        start = node(
            "start",
            StartRecord(
                format=FORMAT,
                thread_id=ctx.thread_id,
                workflow=name,
                prompt=prompt.hash,
                workspace=str(ctx.start.workspace),
                at_ms=ctx.start.timestamp_ms,
                depth=ctx.depth,
                bundle=ctx.bundle_hash,
                parent_state=ctx.start.parent_state,
            ),
            [h for h in (prompt.hash, ctx.bundle_hash, ctx.start.parent_state) if h],
        )
        status = node("status", StatusRecord(state="running", at_ms=now_ms()))
        await self._store.commit(
            [prompt, start, status],
            [self._move("head", None, start.hash), self._move("status", None, status.hash)],
        )
        self._head, self._status = start.hash, status.hash

    async def take_up(self, stored: StoredThread) -> None:
        """Take over a stored thread with the records of its unfinished turn."""
        self._head, self._status = stored.head, stored.status_hash
        records = await read_turn(self._store, stored.turn)
        self._journal = self._new_journal(records, stored.turn)
        await self._set_status(StatusRecord(state="running", at_ms=now_ms()))

    async def to_the_end(self) -> ThreadResult:
        """Run until the thread ends in one of its states, and record which."""
        await self._note(
            ThreadStarted(thread_id=self._ctx.thread_id, prompt=self._ctx.start.prompt)
        )
        error: Exception | None = None
        try:
            completion = await self._loop()
            status = _status("completed", completion.return_code, completion.summary)
        except Suspended as suspended:
            status = _status("suspended", 1, suspended.reason)
        except Exception as raised:  # noqa: BLE001 - whatever a role raises becomes a record
            error = raised
            status = _status("failed", 1, str(raised), error=type(raised).__name__)
        except BaseException:  # cancellation, Ctrl-C: recorded, then raised on
            with anyio.move_on_after(_COMMIT_GRACE_S, shield=True):
                await self._end(_status("cancelled", 130, "cancelled"))
            raise
        await self._end(status)
        return ThreadResult(
            thread_id=self._ctx.thread_id,
            state=status.state,
            return_code=status.return_code or 0,
            summary=status.summary,
            steps=self._ctx.steps,
            error=error,
        )

    async def _loop(self) -> Completion:
        while True:
            if len(self._ctx.steps) >= self._limits.max_steps:
                raise Suspended(f"the limit of {self._limits.max_steps} steps is reached")
            started = time.monotonic()
            outcome = await self._workflow.advance(replace(self._ctx, journal=self._journal))
            if isinstance(outcome, Completion):
                return outcome
            await self._commit(outcome, int((time.monotonic() - started) * 1000))

    async def _commit(self, step: RoleStep, elapsed_ms: int) -> None:
        """Write the step, publish it as the head and close the turn: one transaction."""
        role = self._workflow.definition.role(step.role)
        assert self._head is not None  # begin or take_up came first
        value, words = content(encode_value(role, step.meta)), content(step.content)
        turn = self._journal.last
        record = StateRecord(
            role=step.role,
            step=len(self._ctx.steps),
            parent=self._head,
            value=value.hash,
            content=words.hash,
            at_ms=step.timestamp_ms,
            elapsed_ms=elapsed_ms,
            turn=turn,
            child_thread=step.child_thread,
            usage=step.usage,
        )
        state = node("state", record, [h for h in (self._head, value.hash, words.hash, turn) if h])
        moves = [self._move("head", self._head, state.hash)]
        if turn is not None:
            moves.append(self._move("turn", turn, None))
        await self._store.commit([value, words, state], moves)
        self._head = state.hash
        self._ctx = replace(self._ctx, steps=(*self._ctx.steps, step))
        self._journal = self._new_journal()
        await self._note(
            RoleFinished(
                role=step.role,
                step=record.step,
                value=value.text(),
                usage=step.usage,
                elapsed_ms=elapsed_ms,
            )
        )

    async def _end(self, status: StatusRecord) -> None:
        await self._set_status(status)
        await self._note(
            ThreadEnded(
                thread_id=self._ctx.thread_id,
                state=status.state,
                return_code=status.return_code or 0,
                summary=status.summary,
            )
        )

    async def _set_status(self, status: StatusRecord) -> None:
        stored = node("status", status)
        if stored.hash != self._status:
            await self._store.commit([stored], [self._move("status", self._status, stored.hash)])
            self._status = stored.hash

    def _new_journal(
        self, records: Iterable[tuple[TurnRecord, bytes | None]] = (), last: Hash | None = None
    ) -> StoreJournal:
        ref = thread_ref(self._ctx.thread_id, "turn")
        return StoreJournal(self._store, ref, self._note, records=records, last=last)

    def _move(self, what: str, old: Hash | None, new: Hash | None) -> RefMove:
        return RefMove(thread_ref(self._ctx.thread_id, what), old, new)

    async def _note(self, event: Event) -> None:
        if self._observer is not None:
            try:
                self._observer(event)
            except Exception:  # noqa: BLE001 - whatever it raises, the thread goes on
                _log.exception("an observer failed at %r", event)


def _status(state: ThreadState, return_code: int, summary: str, *, error: str = "") -> StatusRecord:
    return StatusRecord(
        state=state, at_ms=now_ms(), return_code=return_code, summary=summary, error=error
    )
