"""One run of one thread: the loop over `advance`, and what it commits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import anyio

from workflow_cas import RefMove, Store, StoreError, content, node
from workflow_execute._budget import Budget, Spent
from workflow_execute._errors import LimitReached, ThreadNotCompleted, ThreadNotResumable
from workflow_execute._ids import now_ms
from workflow_execute._journal import Asker, StoreJournal
from workflow_execute._records import (
    FORMAT,
    Cause,
    StartRecord,
    StateRecord,
    StatusRecord,
    ThreadState,
)
from workflow_execute._signals import Signal, Signals
from workflow_execute._supervisor import SupervisorFn, judge, stopped
from workflow_execute._threads import JournalEntry, StoredStep, StoredThread, read_turn, thread_ref
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
    next_role,
    schema_of,
)

Observer = Callable[[Event], None]

_log = logging.getLogger("workflow_execute")
_COMMIT_GRACE_S = 10.0


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
    cause: Cause = ""
    """What a suspended thread waits for."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What all runs of an engine have in common."""

    store: Store
    signals: Signals
    observer: Observer | None
    asker: Asker | None
    supervisor: SupervisorFn | None
    supervise_every: int


def context_of(stored: StoredThread, workflow: Workflow) -> ThreadContext:
    """Build the context of a stored thread, its values typed by the workflow's roles.

    Raises:
        ThreadNotResumable: the workflow has not the roles, or other schemas.
    """
    try:
        steps = tuple(typed_step(step, workflow) for step in stored.steps)
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


def typed_step(step: StoredStep, workflow: Workflow) -> RoleStep:
    """A stored step as roles see it."""
    role = workflow.definition.role(step.record.role)
    child = step.record.child_thread
    return RoleStep(
        role=role.name,
        meta=schema_of(role.schema).validate_json(step.value),
        content=step.content,
        content_hash=step.content_hash,
        timestamp_ms=step.record.at_ms,
        child_thread=None if child is None else ThreadId(child),
        usage=step.record.usage,
    )


class Run:
    """Takes a thread from where it is to one of its states."""

    def __init__(
        self, around: Surroundings, workflow: Workflow, budget: Budget, ctx: ThreadContext
    ) -> None:
        self._around = around
        self._store = around.store
        self._workflow = workflow
        self._budget = budget
        self._ctx = ctx
        self._head: Hash | None = None
        self._status: Hash | None = None
        self._journal = self._new_journal()
        self._scope = anyio.CancelScope()
        self._signal: Signal | None = None
        self._turn_began_s = time.monotonic()
        self._ran_before_ms = 0

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
        entries = await read_turn(self._store, stored.turn)
        self._journal = self._new_journal(entries, stored.turn)
        self._ran_before_ms = sum(step.record.elapsed_ms for step in stored.steps)
        spent = Spent()
        for step in stored.steps:
            spent = spent.plus(charged_for(step))
        self._budget.take_up(stored.thread_id, spent)
        leftover = await self._around.signals.removal(stored.thread_id)
        await self._set_status(StatusRecord(state="running", at_ms=now_ms()), leftover)

    async def to_the_end(self) -> ThreadResult:
        """Run until the thread ends in one of its states, and record which."""
        await self._note(
            ThreadStarted(thread_id=self._ctx.thread_id, prompt=self._ctx.start.prompt)
        )
        outcome: tuple[StatusRecord, Exception | None] | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._around.signals.follow, self._ctx.thread_id, self._interrupt)
                self._scope.deadline = self._deadline()
                with self._scope:
                    outcome = await self._outcome()
                tasks.cancel_scope.cancel()
        except BaseException:  # cancellation, Ctrl-C: recorded, then raised on
            with anyio.move_on_after(_COMMIT_GRACE_S, shield=True):
                try:
                    await self._end(self._ended("cancelled", 130, "cancelled"))
                except StoreError:  # it shows as interrupted then; the cancellation must go on
                    _log.exception("the end of thread %s was not recorded", self._ctx.thread_id)
            raise
        status, error = outcome or (self._interrupted(), None)
        await self._end(status)
        return ThreadResult(
            thread_id=self._ctx.thread_id,
            state=status.state,
            return_code=status.return_code or 0,
            summary=status.summary,
            steps=self._ctx.steps,
            error=error,
            cause=status.cause,
        )

    async def _outcome(self) -> tuple[StatusRecord, Exception | None]:
        try:
            done = await self._loop()
            return self._ended("completed", done.return_code, done.summary), None
        except LimitReached as limit:
            return self._ended("suspended", 1, limit.reason, cause="limit"), None
        except Suspended as suspended:
            more = len(self._journal.pending) - 1
            others = f" (and {more} more questions)" if more > 0 else ""
            reason = suspended.reason + others
            return self._ended("suspended", 1, reason, cause="question"), None
        except Exception as raised:  # noqa: BLE001 - whatever a role raises becomes a record
            return self._ended("failed", 1, _words_of(raised), error=type(raised).__name__), raised

    async def _loop(self) -> Completion:
        limit = self._budget.limits.max_steps
        while True:
            if limit is not None and len(self._ctx.steps) >= limit:
                raise LimitReached("max_steps", f"the limit of {limit} steps is reached")
            self._turn_began_s = time.monotonic()
            ctx = replace(self._ctx, journal=self._journal)
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
        role = self._workflow.definition.role(step.role)
        assert self._head is not None  # begin or take_up came first
        value, words = content(encode_value(role, step.meta)[0]), content(step.content)
        turn, charged = self._journal.last, self._journal.charged
        refs = list(dict.fromkeys(h for h in (self._head, value.hash, words.hash, turn) if h))
        tokens = step.usage.input_tokens + step.usage.output_tokens
        metered = self._journal.metered
        record = StateRecord(
            role=step.role,
            step=len(self._ctx.steps),
            at_ms=step.timestamp_ms,
            elapsed_ms=int((time.monotonic() - self._turn_began_s) * 1000),
            value=refs.index(value.hash),
            content=refs.index(words.hash),
            turn=None if turn is None else refs.index(turn),
            child_thread=step.child_thread,
            usage=step.usage,
            charged_tokens=charged.tokens if metered and charged.tokens != tokens else None,
            charged_micros=charged.micros,
        )
        state = node("state", record, refs)
        moves = [self._move("head", self._head, state.hash)]
        if turn is not None:
            moves.append(self._move("turn", turn, None))
        with anyio.CancelScope(shield=True):  # so that memory and store agree
            await self._store.commit([value, words, state], moves)
            self._head = state.hash
        self._ctx = replace(self._ctx, steps=(*self._ctx.steps, step))
        self._ran_before_ms += record.elapsed_ms
        self._journal = self._new_journal()
        await self._note(
            RoleFinished(
                role=step.role,
                step=record.step,
                value=value.text(),
                usage=step.usage,
                elapsed_ms=record.elapsed_ms,
            )
        )

    def _interrupt(self, signal: Signal) -> None:
        self._signal = self._signal or signal
        self._scope.cancel()

    def _interrupted(self) -> StatusRecord:
        match self._signal:
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

    def _ended(
        self,
        state: ThreadState,
        return_code: int,
        summary: str,
        *,
        error: str = "",
        cause: Cause = "",
    ) -> StatusRecord:
        return StatusRecord(
            state=state,
            at_ms=now_ms(),
            return_code=return_code,
            summary=summary,
            error=error,
            cause=cause,
            place="" if state == "completed" else self._role_at_work(),
        )

    def _role_at_work(self) -> str:
        try:
            role = next_role(self._workflow.definition, self._ctx)
        except Exception:  # noqa: BLE001 - a condition that raises is what ended the thread
            return ""
        return "" if role is None else role.name

    async def _end(self, status: StatusRecord) -> None:
        removal = await self._around.signals.removal(self._ctx.thread_id) if self._signal else []
        await self._set_status(status, removal)
        await self._note(
            ThreadEnded(
                thread_id=self._ctx.thread_id,
                state=status.state,
                return_code=status.return_code or 0,
                summary=status.summary,
            )
        )

    async def _set_status(self, status: StatusRecord, moves: Sequence[RefMove] = ()) -> None:
        stored = node("status", status)
        with anyio.CancelScope(shield=True):
            move = self._move("status", self._status, stored.hash)
            await self._store.commit([stored], [move, *moves])
            self._status = stored.hash

    def _new_journal(
        self, entries: Iterable[JournalEntry] = (), last: Hash | None = None
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
        )

    def _move(self, what: str, old: Hash | None, new: Hash | None) -> RefMove:
        return RefMove(thread_ref(self._ctx.thread_id, what), old, new)

    async def _note(self, event: Event) -> None:
        if self._around.observer is not None:
            try:
                self._around.observer(event)
            except Exception:  # noqa: BLE001 - whatever it raises, the thread goes on
                _log.exception("an observer failed at %r", event)


def charged_for(step: StoredStep) -> Spent:
    """What a committed step counts against limits."""
    record = step.record
    tokens = record.usage.input_tokens + record.usage.output_tokens
    charged = tokens if record.charged_tokens is None else record.charged_tokens
    return Spent(charged, record.charged_micros)


def _words_of(error: Exception) -> str:
    """What an exception says, as text that can be stored, whatever its `__str__` does."""
    try:
        words = str(error)
    except Exception:  # noqa: BLE001 - it is the role's own class
        words = ""
    return words.encode("utf-8", "backslashreplace").decode()
