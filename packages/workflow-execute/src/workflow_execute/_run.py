"""One run of one thread: the loop over `advance`, and what it commits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import anyio.lowlevel
import msgspec

from workflow_cas import RefMove, Store, StoreError, content, node
from workflow_execute._budget import Budget, Limits, Spent
from workflow_execute._errors import (
    ChildCancelled,
    ChildSuspended,
    LimitReached,
)
from workflow_execute._ids import now_ms
from workflow_execute._records import (
    FORMAT,
    Cause,
    StartRecord,
    StateRecord,
    StatusRecord,
    ThreadState,
)
from workflow_execute._result import ThreadResult
from workflow_execute._supervisor import SupervisorFn, judge, stopped
from workflow_execute._workflow import Workflow
from workflow_execute.journal._entry import JournalEntry
from workflow_execute.journal._journal import Asker, StoreJournal
from workflow_execute.owners._commit import commit_whole
from workflow_execute.owners._signals import Signal, Signals
from workflow_execute.threads._read import (
    StoredThread,
    children_in,
    has_died,
    thread_ref,
    turn_ms,
    unsettled,
)
from workflow_execute.threads._tree import cancel_below, charged_in
from workflow_protocol import (
    Completion,
    Event,
    Hash,
    Resolved,
    RoleFinished,
    RoleStep,
    StartStep,
    Suspended,
    ThreadContext,
    ThreadEnded,
    ThreadId,
    ThreadStarted,
    next_role,
)

Observer = Callable[[Event], None]

_log = logging.getLogger("workflow_execute")
_COMMIT_GRACE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all runs of an engine have in common."""

    store: Store
    locks: Path | None
    signals: Signals
    observer: Observer | None
    asker: Asker | None
    supervisor: SupervisorFn | None
    supervise_every: int
    host: Callable[[Surroundings, Run], object]
    """Makes what roles start child threads with."""


class Run:
    """Takes a thread from where it is to one of its states.

    Args:
        around: what it shares with other runs.
        workflow: what it runs.
        budget: what it draws from.
        ctx: the thread.
        above: the run whose turn it is a part of.
        lineage: id and name of the threads above, topmost first, where these don't run.
    """

    def __init__(
        self,
        around: Surroundings,
        workflow: Workflow,
        budget: Budget,
        ctx: ThreadContext,
        *,
        above: Run | None = None,
        lineage: Sequence[tuple[ThreadId, str]] = (),
    ) -> None:
        self._around = around
        self._store = around.store
        self._workflow = workflow
        self._budget = budget
        self._ctx = ctx
        self._name = ""
        self._above = above
        self._lineage = tuple(lineage) if above is None else above.chain
        self._children: dict[ThreadId, None] = {}  # of this turn, in order
        self._host = around.host(around, self)
        self._head: Hash | None = None
        self._status: Hash | None = None
        self._journal = self._new_journal()
        self._scope = anyio.CancelScope()
        self._signal: Signal | None = None
        self._turn_began_s = time.monotonic()
        self._ran_before_ms = 0
        self._turn_before_ms = 0

    @property
    def chain(self) -> tuple[tuple[ThreadId, str], ...]:
        """Id and name of the threads from the topmost one down to this."""
        return (*self._lineage, (self._ctx.thread_id, self._name))

    @property
    def limits(self) -> Limits:
        """What holds for it and all threads below it together."""
        return self._budget.limits

    def child_context(self, thread_id: ThreadId, prompt: str) -> ThreadContext:
        """A new thread below this one."""
        ctx = self._ctx
        return ThreadContext(
            thread_id=thread_id,
            start=StartStep(
                prompt=prompt,
                workspace=ctx.start.workspace,
                timestamp_ms=now_ms(),
                parent_state=self._head,
            ),
            depth=ctx.depth + 1,
            bundle_hash=ctx.bundle_hash,
        )

    def below(self, workflow: Workflow, ctx: ThreadContext) -> Run:
        """A run of a child: it draws from the same budget and ends at the latest when this does."""
        self._children[ctx.thread_id] = None
        return Run(self._around, workflow, self._budget, ctx, above=self)

    async def begin(self, name: str) -> None:
        """Commit the start of a new thread."""
        ctx, self._name = self._ctx, name
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
                parent_thread=self._lineage[-1][0] if self._lineage else None,
            ),
            [h for h in (prompt.hash, ctx.bundle_hash, ctx.start.parent_state) if h],
        )
        status = node("status", StatusRecord(state="running", at_ms=now_ms()))
        with anyio.CancelScope(shield=True):  # a cancellation is recorded by `to_the_end`
            await self._store.commit(
                [prompt, start, status],
                [self._move("head", None, start.hash), self._move("status", None, status.hash)],
            )
        self._head, self._status = start.hash, status.hash

    async def take_up(
        self, stored: StoredThread, attempts: Sequence[Sequence[JournalEntry]]
    ) -> None:
        """Take over a stored thread with the records of its unfinished turn."""
        self._head, self._status = stored.head, stored.status_hash
        self._name = stored.start.workflow
        died = has_died(stored)
        self._journal = self._new_journal(unsettled(attempts), stored.turn, interrupted=died)
        charged = charged_in(entry for entries in attempts for entry in entries)
        if charged != Spent():
            self._journal.add(charged)
        self._children = dict.fromkeys(children_in(attempts))
        self._turn_before_ms = turn_ms(stored, attempts)
        self._ran_before_ms = sum(step.record.elapsed_ms for step in stored.steps)
        self._ran_before_ms += self._turn_before_ms
        running = StatusRecord(state="running", at_ms=now_ms(), turn_ms=self._turn_before_ms)
        await self._around.signals.remove_with(
            stored.thread_id, lambda moves: self._set_status(running, moves)
        )

    async def to_the_end(self) -> ThreadResult:
        """Run until the thread ends in one of its states, and record which."""
        ctx = self._ctx
        await self._note(
            ThreadStarted(thread_id=ctx.thread_id, prompt=ctx.start.prompt, depth=ctx.depth)
        )
        outcome: tuple[StatusRecord, Exception | None] | None = None
        try:
            async with anyio.create_task_group() as tasks:
                for each in self._followed():
                    tasks.start_soon(self._around.signals.follow, each, self._interrupt)
                self._scope.deadline = self._deadline()
                with self._scope:
                    outcome = await self._outcome()
                tasks.cancel_scope.cancel()
        except BaseException:  # cancellation, Ctrl-C: recorded, then raised on
            with anyio.move_on_after(_COMMIT_GRACE_S, shield=True):
                try:
                    await self._end(self._cut_off())
                except StoreError:  # it shows as interrupted then; the cancellation must go on
                    _log.exception("the end of thread %s was not recorded", self._ctx.thread_id)
            raise
        status, error = outcome or (self._interrupted(self._signal), None)
        await self._end(status)
        return ThreadResult(
            thread_id=self._ctx.thread_id,
            state=status.state,
            return_code=status.return_code or 0,
            summary=status.summary,
            steps=self._ctx.steps,
            error=error,
            cause=status.cause,
            waits_for=tuple(map(ThreadId, status.waits_for)),
        )

    async def _outcome(self) -> tuple[StatusRecord, Exception | None]:
        try:
            done = await self._loop()
            return self._ended("completed", done.return_code, done.summary), None
        except LimitReached as limit:
            return self._ended("suspended", 1, limit.reason, cause="limit"), None
        except ChildSuspended as child:
            reason, below = child.reason, child.threads
            return self._ended("suspended", 1, reason, cause=child.cause, waits_for=below), None
        except ChildCancelled as cancelled:
            return self._ended("cancelled", 130, str(cancelled)), None
        except Suspended as suspended:
            try:
                await self._journal.withdraw_unasked()
            except StoreError as raised:
                return self._failed(raised), raised
            more = len(self._journal.pending) - 1
            others = f" (and {more} more questions)" if more > 0 else ""
            reason = suspended.reason + others
            return self._ended("suspended", 1, reason, cause="question"), None
        except Exception as raised:  # noqa: BLE001 - whatever a role raises becomes a record
            return self._failed(raised), raised

    async def _loop(self) -> Completion:
        limit = self._budget.limits.max_steps
        while True:
            # A commit is shielded, and a role may never wait.
            await anyio.lowlevel.checkpoint_if_cancelled()
            if limit is not None and len(self._ctx.steps) >= limit:
                raise LimitReached("max_steps", f"the limit of {limit} steps is reached")
            self._turn_began_s = time.monotonic()
            ctx = replace(self._ctx, journal=self._journal, host=self._host)
            outcome = await self._stopped(ctx) or await self._workflow.advance(ctx)
            if isinstance(outcome, Completion):
                return outcome
            await self._commit(outcome)

    async def _stopped(self, ctx: ThreadContext) -> Completion | None:
        """Ask the supervisor, where it is its turn. Its records stand in the coming turn."""
        supervisor, every = self._around.supervisor, self._around.supervise_every
        if supervisor is None or not ctx.steps or len(ctx.steps) % every:
            return None
        if next_role(self._workflow.definition, ctx) is None:
            return None  # it ends by itself
        return stopped(await judge(supervisor, ctx))

    async def _commit(self, step: RoleStep) -> None:
        """Write the step, publish it as the head and close the turn: one transaction."""
        step = msgspec.structs.replace(step, child_threads=tuple(self._children))
        assert self._head is not None  # begin or take_up came first
        value, words = content(step.json), content(step.content)
        rest, turn = self._journal.rest()
        on_disk, charged = self._journal.last, self._journal.charged
        below = [await self._store.ref(thread_ref(each, "head")) for each in self._children]
        known = (self._head, value.hash, words.hash, turn, *below)
        refs = list(dict.fromkeys(h for h in known if h))
        tokens = step.usage.input_tokens + step.usage.output_tokens
        metered = self._journal.metered
        record = StateRecord(
            role=step.role,
            step=len(self._ctx.steps),
            at_ms=step.timestamp_ms,
            elapsed_ms=self._turn_ms(),
            value=refs.index(value.hash),
            content=refs.index(words.hash),
            turn=None if turn is None else refs.index(turn),
            child_threads=step.child_threads,
            usage=step.usage,
            charged_tokens=charged.tokens if metered and charged.tokens != tokens else None,
            charged_micros=charged.micros,
        )
        state = node("state", record, refs)
        moves = [self._move("head", self._head, state.hash)]
        if on_disk is not None:
            moves.append(self._move("turn", on_disk, None))
        cut_off = await commit_whole(self._store, [value, words, *rest, state], moves)
        self._head = state.hash
        self._ctx = replace(self._ctx, steps=(*self._ctx.steps, step))
        self._turn_before_ms = 0
        self._journal = self._new_journal()
        self._children = {}
        await self._note(
            RoleFinished(
                role=step.role,
                step=record.step,
                value=value.text(),
                usage=step.usage,
                elapsed_ms=record.elapsed_ms,
            )
        )
        if cut_off is not None:
            raise cut_off

    def _turn_ms(self) -> int:
        """How long the turn has been at work, all its runs together."""
        return self._turn_before_ms + int((time.monotonic() - self._turn_began_s) * 1000)

    def _interrupt(self, signal: Signal) -> None:
        self._signal = self._signal or signal
        self._scope.cancel()

    def _followed(self) -> list[ThreadId]:
        """Whose signals end this run: its own, and those to threads above that don't run."""
        above = [] if self._above is not None else [thread_id for thread_id, _ in self._lineage]
        return [self._ctx.thread_id, *above]

    def _cut_off(self) -> StatusRecord:
        """How it ends when it is cancelled from outside: as the thread above that was stopped."""
        above = self._above
        while above is not None:
            if above._scope.cancel_called:
                return self._interrupted(above._signal)
            above = above._above
        return self._ended("cancelled", 130, "cancelled")

    def _interrupted(self, signal: Signal | None) -> StatusRecord:
        match signal:
            case "pause":
                return self._ended("suspended", 1, "paused", cause="paused")
            case "cancel":
                return self._ended("cancelled", 130, "cancelled")
            case None:
                seconds = self._budget.limits.max_seconds or 0.0
                reason = f"the limit of {seconds:g} seconds is reached"
                return self._ended("suspended", 1, reason, cause="limit")

    def _deadline(self) -> float:
        seconds = self._budget.limits.max_seconds
        if seconds is None:
            return float("inf")
        return anyio.current_time() + max(0.0, seconds - self._ran_before_ms / 1000)

    def _failed(self, raised: Exception) -> StatusRecord:
        return self._ended("failed", 1, _words_of(raised), error=type(raised).__name__)

    def _ended(
        self,
        state: ThreadState,
        return_code: int,
        summary: str,
        *,
        error: str = "",
        cause: Cause = "",
        waits_for: tuple[ThreadId, ...] = (),
    ) -> StatusRecord:
        return StatusRecord(
            state=state,
            at_ms=now_ms(),
            return_code=return_code,
            summary=summary,
            error=error,
            cause=cause,
            place="" if state == "completed" else self._role_at_work(),
            turn_ms=0 if state == "completed" else self._turn_ms(),
            died=state != "completed" and self._journal.interrupted,
            waits_for=waits_for,
        )

    def _role_at_work(self) -> str:
        try:
            role = next_role(self._workflow.definition, self._ctx)
        except Exception:  # noqa: BLE001 - a condition that raises is what ended the thread
            return ""
        return "" if role is None else role.name

    async def _end(self, status: StatusRecord) -> None:
        await self._journal.flush()
        if self._signal is None:
            await self._set_status(status)
        else:
            await self._around.signals.remove_with(
                self._ctx.thread_id, lambda moves: self._set_status(status, moves)
            )
        if status.state == "cancelled" and self._children:
            await cancel_below(self._store, self._ctx.thread_id)
        await self._note(
            ThreadEnded(
                thread_id=self._ctx.thread_id,
                state=status.state,
                return_code=status.return_code or 0,
                summary=status.summary,
                depth=self._ctx.depth,
            )
        )

    async def _set_status(self, status: StatusRecord, moves: Sequence[RefMove] = ()) -> None:
        stored = node("status", status)
        move = self._move("status", self._status, stored.hash)
        cut_off = await commit_whole(self._store, [stored], [move, *moves])
        self._status = stored.hash
        if cut_off is not None:
            raise cut_off

    def _new_journal(
        self,
        entries: Iterable[JournalEntry] = (),
        last: Hash | None = None,
        *,
        interrupted: bool = False,
    ) -> StoreJournal:
        return StoreJournal(
            self._store,
            thread_ref(self._ctx.thread_id, "turn"),
            self._note,
            entries=entries,
            last=last,
            asker=self._around.asker,
            budget=self._budget,
            thread_id=self._ctx.thread_id,
            interrupted=interrupted,
        )

    def _move(self, what: str, old: Hash | None, new: Hash | None) -> RefMove:
        return RefMove(thread_ref(self._ctx.thread_id, what), old, new)

    async def _note(self, event: Event) -> None:
        if self._around.observer is not None and not isinstance(event, Resolved):
            try:
                self._around.observer(event)
            except Exception:  # noqa: BLE001 - whatever it raises, the thread goes on
                _log.exception("an observer failed at %r", event)


def _words_of(error: Exception) -> str:
    """What an exception says, as text that can be stored, whatever its `__str__` does."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - it is the role's own class
        words = ""
    return words.encode("utf-8", "backslashreplace").decode()
