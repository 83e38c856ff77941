"""What a run commits of its thread: the start, each step, and how the run stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import msgspec

from workflow_cas import RefConflict, RefMove, Store, Stored, content, node
from workflow_execute._ids import now_ms
from workflow_execute._records import (
    FORMAT,
    Allowed,
    StartRecord,
    StateRecord,
    StatusRecord,
)
from workflow_execute.owners._commit import commit_shielded
from workflow_execute.run._turn import Turn
from workflow_execute.threads._key import key_ref
from workflow_execute.threads._read import StoredThread
from workflow_execute.threads._summary import (
    ThreadSummary,
    begun,
    entry_of,
    thread_ref,
    with_prompt,
    with_status,
    with_step,
)
from workflow_protocol import Hash, RoleStep, ThreadContext, ThreadId


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedStep:
    """A step that is on disk."""

    step: RoleStep
    value: str
    """The role's value as JSON, or of a turn that failed what is kept of it."""
    elapsed_ms: int
    cancelled: BaseException | None
    """The cancellation that arrived meanwhile, to be raised when memory is right too."""


class ThreadWriter:
    """Moves the refs `head` and `status` of one thread, and knows where they are."""

    def __init__(
        self, store: Store, thread_id: ThreadId, run_options: tuple[str, ...] = ()
    ) -> None:
        self._store = store
        self._run_options = run_options
        self._thread_id = thread_id
        self._status: Hash | None = None
        self._status_record: StatusRecord | None = None
        self._without_status: ThreadSummary | None = None
        self.head: Hash | None = None
        """The last state; before the first step the start, or a branch."""
        self.traceparent = ""
        """Of the trace of this run, or of the one before; kept in each status."""

    async def begin(
        self,
        ctx: ThreadContext,
        name: str,
        parent: ThreadId | None,
        tags: Sequence[str] = (),
        *,
        registered: bool = False,
        key: str = "",
        versioned: bool = False,
    ) -> None:
        """Commit the start of a new thread, with its key, even if this is cancelled.

        Raises:
            RefConflict: the key has begun another thread.
        """
        prompt = content(ctx.start.prompt)
        record = StartRecord(
            format=FORMAT,
            thread_id=ctx.thread_id,
            workflow=name,
            prompt=prompt.hash,
            workspace=str(ctx.start.workspace),
            at_ms=ctx.start.timestamp_ms,
            depth=ctx.depth,
            bundle=ctx.bundle_hash,
            parent_state=ctx.start.parent_state,
            parent_thread=parent,
            tags=tuple(tags),
            registered=registered,
            key=key,
            versioned=versioned,
        )
        needed = (prompt.hash, ctx.bundle_hash, ctx.start.parent_state)
        start = node("start", record, [h for h in needed if h])
        running = StatusRecord(state="running", at_ms=now_ms(), run_options=self._run_options)
        status = node("status", running)
        summary = with_prompt(begun(record), ctx.start.prompt)
        with anyio.CancelScope(shield=True):  # a cancellation is recorded when the run ends
            await self._store.commit(
                [prompt, start, status],
                [
                    self._move("head", None, start.hash),
                    self._move("status", None, status.hash),
                    *([RefMove(key_ref(key), None, start.hash)] if key else []),
                ],
                [entry_of(with_status(summary, running))],
            )
        self.head, self._status = start.hash, status.hash
        self._status_record, self._without_status = running, summary

    def continue_from(self, stored: StoredThread) -> None:
        """Take over the refs of a stored thread."""
        self.head, self._status = stored.head, stored.status_hash
        self._status_record, self._without_status = stored.status, stored.without_status
        self.traceparent = stored.status.traceparent

    async def commit_step(
        self, step: RoleStep, number: int, turn: Turn, allowed: Allowed | None = None
    ) -> CommittedStep:
        """Write a step, make it the head and close its turn: one transaction.

        Of a turn that a limit ended, `allowed` is what the thread may take from there on.
        """
        assert self.head is not None  # begin or continue_from came first
        step = msgspec.structs.replace(step, child_threads=tuple(turn.children))
        version = await turn.files.after_step()
        objects = () if version is None else version.objects
        while True:
            try:
                return await self._commit_step(step, number, turn, allowed, objects)
            except RefConflict:  # a question that the role gave up was answered meanwhile
                if not await turn.journal.writer.catch_up():
                    raise

    async def _commit_step(
        self,
        step: RoleStep,
        number: int,
        turn: Turn,
        allowed: Allowed | None,
        version: Sequence[Stored],
    ) -> CommittedStep:
        assert self.head is not None
        assert self._status_record is not None
        assert self._without_status is not None
        words, failure, files = content(step.content), step.failure, turn.files.last
        value = words if failure is not None else content(step.json)
        writer, elapsed_ms = turn.journal.writer, turn.elapsed_ms
        deferred, last = writer.deferred()
        last_on_disk = writer.last
        children = [await self._store.ref(thread_ref(each, "head")) for each in turn.children]
        needed = (self.head, value.hash, words.hash, last, files, *children)
        refs = list(dict.fromkeys(h for h in needed if h))
        tokens = step.usage.input_tokens + step.usage.output_tokens
        meter = turn.journal.meter
        record = StateRecord(
            role=step.role,
            step=number,
            at_ms=step.timestamp_ms,
            elapsed_ms=elapsed_ms,
            value=refs.index(value.hash),
            content=refs.index(words.hash),
            turn=None if last is None else refs.index(last),
            child_threads=step.child_threads,
            usage=step.usage,
            charged_tokens=(
                meter.charged.tokens if meter.used and meter.charged.tokens != tokens else None
            ),
            charged_micros=meter.charged.micros,
            skipped_calls=tuple(turn.journal.skipped_calls),
            models=meter.models,
            artifacts=step.artifacts,
            run_options=self._run_options,
            error="" if failure is None else failure.type,
            limit="" if failure is None else failure.limit,
            allowed=allowed,
            files=None if files is None else refs.index(files),
        )
        state = node("state", record, refs)
        summary = with_step(self._without_status, record)
        moves = [
            self._move("head", self.head, state.hash),
            self._move("status", self._status, self._status),
        ]
        if last_on_disk is not None:
            moves.append(self._move("turn", last_on_disk, None))
        cancelled = await commit_shielded(
            self._store,
            [value, words, *deferred, *version, state],
            moves,
            [entry_of(with_status(summary, self._status_record))],
        )
        self.head, self._without_status = state.hash, summary
        return CommittedStep(
            step=step, value=value.text(), elapsed_ms=elapsed_ms, cancelled=cancelled
        )

    async def set_status(
        self, status: StatusRecord, turn: Turn, moves: Sequence[RefMove] = ()
    ) -> None:
        """Write how the run stands in its present turn, together with other moves."""
        assert self._without_status is not None  # begin or continue_from came first
        meter = turn.journal.meter
        record = msgspec.structs.replace(
            status,
            traceparent=self.traceparent,
            run_options=self._run_options,
            at_step=self._without_status.steps,
            charged_tokens=meter.charged.tokens,
            charged_micros=meter.charged.micros,
            models=meter.models,
        )
        await self._write_status(record, moves)

    async def restore_status(self, status: StatusRecord) -> None:
        """Write how an earlier run stood, as it was."""
        await self._write_status(status, ())

    async def _write_status(self, status: StatusRecord, moves: Sequence[RefMove]) -> None:
        assert self._without_status is not None  # begin or continue_from came first
        stored = node("status", status)
        own_moves = [
            self._move("status", self._status, stored.hash),
            self._move("head", self.head, self.head),
        ]
        entry = entry_of(with_status(self._without_status, status))
        cancelled = await commit_shielded(self._store, [stored], [*own_moves, *moves], [entry])
        self._status, self._status_record = stored.hash, status
        if cancelled is not None:
            raise cancelled

    def _move(self, what: str, old: Hash | None, new: Hash | None) -> RefMove:
        return RefMove(thread_ref(self._thread_id, what), old, new)
