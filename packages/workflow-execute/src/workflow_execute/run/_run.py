"""One run of one thread. The main loop is `Run._take_steps`.

A step is a role's turn: `Workflow.advance` carries it out, and the run commits it. Whatever ends
the loop becomes an `Ending`, which is recorded as the status of the thread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel

from workflow_cas import StoreError
from workflow_execute._budget import Budget, Limits
from workflow_execute._errors import JournalMismatch, LimitReached
from workflow_execute._ids import now_ms
from workflow_execute._records import Allowed, StatusRecord
from workflow_execute._result import ThreadResult
from workflow_execute._supervisor import supervise
from workflow_execute._workflow import AnyWorkflow, failed_step
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.journal._files import ThreadFiles
from workflow_execute.owners._signals import LocalSignal
from workflow_execute.run._ending import (
    CANCELLED,
    Ending,
    completed,
    ended_by_error,
    ended_by_signal,
    failed,
    is_question,
)
from workflow_execute.run._services import RunServices
from workflow_execute.run._telling import Telling
from workflow_execute.run._thread_writer import ThreadWriter
from workflow_execute.run._turn import Turn, new_turn, stored_turn
from workflow_execute.threads._read import StoredThread
from workflow_execute.threads._tree import ThreadTree, cancel_children
from workflow_protocol import (
    Completion,
    Event,
    Failure,
    Hash,
    RoleStarted,
    RoleStep,
    ThreadContext,
    ThreadId,
    ThreadStarted,
    next_role,
)
from workflow_reactor import keep_open

_log = logging.getLogger("workflow_execute")
_COMMIT_GRACE_S = 10.0

Ancestor = tuple[ThreadId, str]
"""The id of a thread above another, and the name of its workflow."""


class Run:
    """Takes a thread from where it is to one of its states: `begin` or `resume`, then `run_to_end`.

    Args:
        services: what it shares with other runs.
        workflow: what it runs.
        budget: what it draws from.
        ctx: the thread.
        host_of: makes what roles start child threads with.
        parent: the run whose turn it is a part of.
        ancestors: the threads above, topmost first, where these don't run.
        files: the versions of its workspace's files.
    """

    def __init__(
        self,
        services: RunServices,
        workflow: AnyWorkflow,
        budget: Budget,
        ctx: ThreadContext,
        *,
        host_of: Callable[[Run], object],
        parent: Run | None = None,
        ancestors: Sequence[Ancestor] = (),
        files: ThreadFiles | None = None,
    ) -> None:
        self._services = services
        self._workflow = workflow
        self._budget = budget.part(workflow.definition.limits, ctx.thread_id)
        self._ctx = ctx
        self._name = ""
        self._host_of = host_of
        self._host = host_of(self)
        self._parent = parent
        self._ancestors = tuple(ancestors) if parent is None else parent.path
        self._writer = ThreadWriter(services.store, ctx.thread_id, services.run_options)
        parents = [thread_id for thread_id, _ in self._ancestors]
        self._telling = Telling(services, ctx.thread_id, parents, len(ctx.steps))
        self._files = files or ThreadFiles(None)
        self._files.notify = self._notify
        self._turn = self._new_turn()
        self._scope = anyio.CancelScope()
        self._began_s = 0.0
        self._signal: LocalSignal | None = None
        self._ran_before_ms = 0
        self._resumed: StoredThread | None = None

    async def _take_steps(self) -> Completion:
        """Take one step after the other, until the workflow or the supervisor ends the thread."""
        while True:
            # A commit is shielded, and a role may never wait.
            await anyio.lowlevel.checkpoint_if_cancelled()
            self._check_max_steps()
            ctx = replace(self._ctx, journal=self._turn.journal, host=self._host)
            outcome = await self._supervise(ctx) or await self._workflow.advance(ctx)
            if isinstance(outcome, Completion):
                return outcome
            await self._commit_step(outcome)

    async def run_to_end(self) -> ThreadResult[Any]:
        """Run until the thread ends in one of its states, and record which."""
        above = None if self._parent is None else self._parent._telling
        with self._telling.saying_what_it_does(
            self._name, self._budget, self._ran_before_ms, above
        ):
            return await self._run_to_end()

    async def _run_to_end(self) -> ThreadResult:
        ctx = self._ctx
        self._began_s = anyio.current_time()
        await self._notify(
            ThreadStarted(
                prompt=ctx.start.prompt,
                workflow=self._name,
                recorded=self._resumed is not None,
                previous_trace=self._writer.traceparent,
            )
        )
        ending: Ending | None = None
        try:
            async with keep_open(), anyio.create_task_group() as tasks:
                for each in self._followed_threads():
                    tasks.start_soon(self._services.signals.follow, each, self._stop)
                ending = await self._run_past_limit()
                tasks.cancel_scope.cancel()
        except BaseException:  # cancellation, Ctrl-C: recorded, then raised on
            with anyio.move_on_after(_COMMIT_GRACE_S, shield=True):
                try:
                    await self._record(self._ending_when_cancelled())
                except StoreError:  # it shows as interrupted then; the cancellation must go on
                    _log.exception("the end of thread %s was not recorded", ctx.thread_id)
            raise
        assert ending is not None  # no scope around it is left early without an exception
        if isinstance(ending.error, JournalMismatch) and (before := self._untouched()):
            await self._restore(before)
            raise ending.error
        await self._record(ending)
        result = self._workflow.definition.result
        return ending.result(self._ctx, result.name if result is not None else "")

    async def _run_past_limit(self) -> Ending:
        """Run to the end, past a limit if the workflow says where that leads."""
        while True:
            ending: Ending | None = None
            self._scope = anyio.CancelScope(deadline=self._deadline())
            if self._signal is not None:
                self._scope.cancel()
            with self._scope:
                ending = await self._take_steps_to_ending()
            ending = ending or ended_by_signal(self._signal, self.limits, self._ctx.thread_id)
            if not self._leads_on(ending):
                return ending
            try:
                await self._commit_limit(ending)
            except Exception as error:  # noqa: BLE001 - as in a turn: it becomes a record
                return failed(error)

    def _leads_on(self, ending: Ending) -> bool:
        """Whether the thread goes to its `at_limit` role instead of ending so.

        It does once, and not at a limit that a thread above it has to keep, too.
        """
        is_covered = ending.cause == "limit" and ending.limit in Allowed.__struct_fields__
        if self._workflow.definition.at_limit is None or not is_covered or not self._current_role():
            return False
        if any(step.failure is not None and step.failure.limit for step in self._ctx.steps):
            return False
        above = {thread_id for thread_id, _ in self._ancestors}
        return ending.limit_of not in above if ending.limit_of else not above

    async def _commit_limit(self, ending: Ending) -> None:
        """End the turn at work as one that failed by a limit; the next role has an allowance."""
        seconds = self._ran_before_ms / 1000 + anyio.current_time() - self._began_s
        allowed = self._budget.allowed_from(len(self._ctx.steps) + 1, seconds)
        failure = Failure(type=LimitReached.__name__, message=ending.summary, limit=ending.limit)
        step = failed_step(self._current_role(), failure, self._turn.journal.usage)
        await self._commit_step(step, allowed)
        self._budget.allow(allowed, is_top=not self._ancestors)

    def set_spent(self, parts: Iterable[ThreadTree]) -> None:
        """Set what a stored thread and those that it started have spent."""
        for part in parts:
            self._budget.set_spent(part.thread.thread_id, part.charged)

    async def begin(
        self, name: str, tags: Sequence[str] = (), *, registered: bool = False, key: str = ""
    ) -> None:
        """Commit the start of a new thread.

        Raises:
            RefConflict: its key has begun another thread.
        """
        self._name = name
        parent = self._ancestors[-1][0] if self._ancestors else None
        await self._writer.begin(
            self._ctx,
            name,
            parent,
            tags,
            registered=registered,
            key=key,
            versioned=self._files.folder is not None,
        )

    async def resume(
        self, stored: StoredThread, attempts: Sequence[Sequence[JournalEntry]]
    ) -> None:
        """Go on with a stored thread, with the records of its unfinished turn."""
        self._name = stored.start.workflow
        self._writer.continue_from(stored)
        self._turn = stored_turn(
            self._services, self._budget, stored, attempts, self._notify, self._files
        )
        self._resumed = stored
        earlier_ms = self._turn.earlier_ms
        self._ran_before_ms = earlier_ms + sum(step.record.elapsed_ms for step in stored.steps)
        for step in stored.steps:
            if step.record.allowed is not None:
                self._budget.allow(step.record.allowed, is_top=not self._ancestors)
        running = StatusRecord(state="running", at_ms=now_ms(), turn_ms=earlier_ms)
        await self._services.signals.remove_with(
            stored.thread_id, lambda moves: self._writer.set_status(running, self._turn, moves)
        )

    def _untouched(self) -> StoredThread | None:
        """The thread that was resumed, if this run has recorded nothing."""
        stored = self._resumed
        if stored is None or len(self._ctx.steps) > len(stored.steps):
            return None
        return stored if self._turn.journal.writer.last == stored.turn else None

    async def _restore(self, stored: StoredThread) -> None:
        """Leave the thread as it was: its records are for another model, prompt or question."""
        before = stored.status
        await self._writer.restore_status(before)
        await self._telling.left_as_it_was(before, self._turn.elapsed_ms)

    @property
    def path(self) -> tuple[Ancestor, ...]:
        """The threads from the topmost one down to this."""
        return (*self._ancestors, (self._ctx.thread_id, self._name))

    @property
    def limits(self) -> Limits:
        """What holds for it and all threads below it together."""
        return self._budget.limits

    @property
    def ctx(self) -> ThreadContext:
        """The thread, with the steps that are committed."""
        return self._ctx

    @property
    def head(self) -> Hash | None:
        """The state that it has come to."""
        return self._writer.head

    def child(self, workflow: AnyWorkflow, ctx: ThreadContext, files: Hash | None = None) -> Run:
        """A run of a child: it draws from the same budget and ends at the latest when this does.

        `files` is the version that its files have come to.
        """
        self._turn.children[ctx.thread_id] = None
        above = self._files
        folder = None
        if above.folder is not None:
            folder = self._services.versions_of(ctx.start.workspace)
        return Run(
            self._services,
            workflow,
            self._budget,
            ctx,
            host_of=self._host_of,
            parent=self,
            files=ThreadFiles(folder, files, above),
        )

    def _new_turn(self) -> Turn:
        thread_id = self._ctx.thread_id
        return new_turn(self._services, self._budget, thread_id, self._notify, self._files)

    def _check_max_steps(self) -> None:
        limit = self.limits.max_steps
        if limit is not None and len(self._ctx.steps) >= limit:
            if next_role(self._workflow.definition, self._ctx) is None:
                return  # it has come to its end
            raise LimitReached(
                "max_steps", f"the limit of {limit} steps is reached", thread=self._ctx.thread_id
            )

    async def _supervise(self, ctx: ThreadContext) -> Completion | None:
        """Ask the supervisor, where it is its turn. Its records stand in the coming turn."""
        supervisor, every = self._services.supervisor, self._services.supervise_every
        if supervisor is None or not ctx.steps or len(ctx.steps) % every:
            return None
        return await supervise(supervisor, self._workflow.definition, ctx)

    async def _commit_step(self, step: RoleStep, allowed: Allowed | None = None) -> None:
        number = len(self._ctx.steps)
        if step.failure is not None and self._turn.children:
            await cancel_children(self._services.store, self._ctx.thread_id, failed=False)
        done = await self._writer.commit_step(step, number, self._turn, allowed)
        self._ctx = replace(self._ctx, steps=(*self._ctx.steps, done.step))
        self._turn = self._new_turn()
        leads_to = "" if step.failure is None else self._current_role()
        await self._telling.step_ended(done, leads_to)
        if done.cancelled is not None:
            raise done.cancelled

    async def _take_steps_to_ending(self) -> Ending:
        try:
            await self._keep_traceparent()
            return completed(await self._take_steps())
        except Exception as error:  # noqa: BLE001 - whatever a role raises becomes a record
            questions = self._turn.journal.questions
            if is_question(error):
                try:
                    await questions.withdraw_unasked()
                except StoreError as store_error:
                    return failed(store_error)
            return ended_by_error(error, open_questions=len(questions.pending))

    async def _keep_traceparent(self) -> None:
        """Record the trace of this run at once, so that a resume finds it whatever happens."""
        traceparent = self._services.traceparent(self._ctx.thread_id)
        if traceparent:
            self._writer.traceparent = traceparent
            running = StatusRecord(state="running", at_ms=now_ms(), turn_ms=self._turn.earlier_ms)
            await self._writer.set_status(running, self._turn)

    def _stop(self, signal: LocalSignal) -> None:
        self._signal = self._signal or signal
        self._scope.cancel()

    def _followed_threads(self) -> list[ThreadId]:
        """Whose signals end this run: its own, and those to threads above that don't run."""
        above = [] if self._parent is not None else [thread_id for thread_id, _ in self._ancestors]
        return [self._ctx.thread_id, *above]

    def _deadline(self) -> float:
        seconds = self.limits.max_seconds
        if seconds is None:
            return float("inf")
        return self._began_s + max(0.0, seconds - self._ran_before_ms / 1000)

    def _ending_when_cancelled(self) -> Ending:
        """How it ends when it is cancelled from outside: as the run above that was stopped."""
        run = self._parent
        while run is not None:
            if run._scope.cancel_called:
                return ended_by_signal(run._signal, run.limits, run._ctx.thread_id)
            run = run._parent
        return CANCELLED

    async def _record(self, ending: Ending) -> None:
        """Write how the run ended, and tell the observers.

        Raises:
            StoreError: it is not written; the observers are told all the same.
        """
        try:
            await self._write_end(ending)
        except BaseException as error:
            await self._telling.ended(ending, self._turn.elapsed_ms, unwritten=error)
            raise
        await self._telling.ended(ending, self._turn.elapsed_ms)

    async def _write_end(self, ending: Ending) -> None:
        ctx, turn = self._ctx, self._turn
        status = ending.status(
            at_ms=now_ms(),
            role="" if ending.state == "completed" else self._current_role(),
            turn_ms=turn.elapsed_ms,
            died=turn.journal.interrupted,
        )
        await turn.journal.writer.flush()
        if self._signal is None:
            await self._writer.set_status(status, turn)
        else:
            await self._services.signals.remove_with(
                ctx.thread_id, lambda moves: self._writer.set_status(status, turn, moves)
            )
        if status.state == "cancelled" and turn.children:
            await cancel_children(self._services.store, ctx.thread_id)

    async def _notify(self, event: Event) -> None:
        """Tell the observers of what happens in the turn."""
        if isinstance(event, RoleStarted):
            self._turn.journal.writer.begin_role(event.role)
        await self._telling.tell(event)

    def _current_role(self) -> str:
        try:
            role = next_role(self._workflow.definition, self._ctx)
        except Exception:  # noqa: BLE001 - a condition that raises is what ended the thread
            return ""
        return "" if role is None else role.name
