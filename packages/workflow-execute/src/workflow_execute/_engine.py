"""The engine: starts, resumes, forks, stops, answers and replays threads on a store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
from anyio import to_thread

from workflow_cas import MemoryStore, RefConflict, RefMove, Store
from workflow_execute._budget import Budget, Limits
from workflow_execute._errors import ForkError, QuestionError, ThreadBusy, ThreadNotResumable
from workflow_execute._ids import new_thread_id, now_ms
from workflow_execute._records import ShownState, TurnRecord
from workflow_execute._result import ThreadResult
from workflow_execute._run import Observer, Run, Surroundings
from workflow_execute._supervisor import SupervisorFn
from workflow_execute._workflow import Workflow
from workflow_execute.children._host import Host
from workflow_execute.journal._journal import Asker, StoreJournal, TurnRecords
from workflow_execute.journal._turn_writer import TurnWriter
from workflow_execute.owners._locks import forget, is_owned, owning
from workflow_execute.owners._own_task import in_own_task
from workflow_execute.owners._signals import Signal, Signals
from workflow_execute.threads._branch import commit_branch
from workflow_execute.threads._context import context_of
from workflow_execute.threads._delete import delete_thread
from workflow_execute.threads._read import StoredThread, read_thread, read_turn, thread_ref
from workflow_execute.threads._replay import Replay, ReplayedRequest, replay_thread
from workflow_execute.threads._tree import cancel_below, read_lineage, read_tree, stopped_status
from workflow_protocol import (
    Answer,
    Event,
    Hash,
    Question,
    StartStep,
    ThreadContext,
    ThreadId,
)

_RETRY_S = 0.1
STOP_TIMEOUT_S = 30.0
ANSWER_PATIENCE_S = 5.0


class Engine:
    """Runs threads on a store.

    Args:
        store: keeps everything; stays the caller's to close.
        locks: a folder for one lock file a thread, so that two processes can't run one thread.
            `None` where no other process can see the store.
        limits: for each thread, together with all that it starts.
        observer: hears every event. It must be quick; what it raises is logged and dropped.
        asker: asks a person at once. Without one, or if it gives `None`, a question suspends the
            thread until `answer` is called. It is asked one question at a time.
        supervisor: looks at each thread after every `supervise_every` steps, except the last, and
            may stop it: the thread is then completed with return code 1 and the reason.
        supervise_every: in steps.
    """

    def __init__(
        self,
        store: Store,
        *,
        locks: Path | None = None,
        limits: Limits | None = None,
        observer: Observer | None = None,
        asker: Asker | None = None,
        supervisor: SupervisorFn | None = None,
        supervise_every: int = 3,
    ) -> None:
        self.store = store
        self._locks = locks
        self._limits = limits or Limits()
        self._signals = Signals(store, watch=locks is not None)
        self._around = Surroundings(
            store=store,
            locks=locks,
            signals=self._signals,
            observer=observer,
            asker=_in_turn(asker) if asker is not None else None,
            supervisor=supervisor,
            supervise_every=supervise_every,
            host=Host,
        )

    @in_own_task
    async def start(
        self,
        workflow: Workflow,
        prompt: str,
        *,
        workspace: Path | None = None,
        name: str = "workflow",
        bundle: Hash | None = None,
        budget: Budget | None = None,
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
            budget: what it draws from together with others; one of its own if not given.

        Raises:
            NotADirectoryError: the workspace is not a folder.
            StoreError: the store failed; what was committed is kept.
        """
        thread_id = new_thread_id()
        ctx = ThreadContext(
            thread_id=thread_id,
            start=StartStep(
                prompt=prompt,
                workspace=await _folder(workspace),
                timestamp_ms=now_ms(),
            ),
            bundle_hash=bundle,
        )
        async with owning(self._locks, thread_id):
            run = Run(self._around, workflow, budget or Budget(self._limits), ctx)
            await run.begin(name)
            return await run.to_the_end()

    @in_own_task
    async def resume(
        self,
        workflow: Workflow,
        thread_id: ThreadId,
        *,
        fresh: bool = False,
        bundle: Hash | None = None,
        workspace: Path | None = None,
        budget: Budget | None = None,
    ) -> ThreadResult:
        """Go on with a thread where its last run ended, in the middle of a turn if need be.

        Recorded model replies and tool results are used again, not made again. A child thread that
        its turn has is taken up with it. A child can be taken up alone too, while the threads above
        it aren't being run; they go on with what it came to.

        Args:
            workflow: what to run: what the thread began with, or something else on purpose. For a
                child it is the child's own; `workflow_of_child` finds it.
            thread_id: the thread.
            fresh: begin the unfinished turn anew. The earlier attempt stays in the record; a child
                thread that it has is cancelled.
            bundle: the stored bundle that `workflow` came from, if it is another than before.
            workspace: the folder to work in, if it is another.
            budget: what it draws from together with others; one of its own if not given.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadBusy: it, or a thread above it, is being run elsewhere.
            ThreadNotResumable: it is completed, or a stored value no longer fits its role.
            NotADirectoryError: the workspace is not a folder, or no longer.
        """
        above = await read_lineage(self.store, await read_thread(self.store, thread_id))
        async with AsyncExitStack() as owned:
            for each in [*(thread.thread_id for thread in above), thread_id]:
                await owned.enter_async_context(owning(self._locks, each))
            stored = await read_thread(self.store, thread_id)
            if stored.status.state == "completed":
                raise ThreadNotResumable(
                    f"thread {thread_id} is completed; fork it or start a new one"
                )
            context_of(stored, workflow)  # before anything is written
            folder = await _folder(workspace or stored.workspace)
            moved = folder if folder != stored.workspace and workspace is not None else None
            if fresh and stored.turn is not None:
                writer = TurnWriter(self.store, thread_ref(thread_id, "turn"), stored.turn)
                await writer.append(TurnRecord(key="", at_ms=now_ms(), kind="attempt"))
                await cancel_below(self.store, thread_id)
            other = bundle if bundle != stored.start.bundle else None
            if other is not None or moved is not None:
                await commit_branch(
                    self.store, stored, stored.head, thread_id, bundle=other, workspace=moved
                )
            budget = budget or Budget(self._limits)
            tree = await read_tree(self.store, above[0].thread_id if above else thread_id)
            for part in tree.walk():
                budget.take_up(part.thread.thread_id, part.charged)
            own = next(each for each in tree.walk() if each.thread.thread_id == thread_id)
            run = Run(
                self._around,
                workflow,
                budget,
                context_of(own.thread, workflow),
                lineage=[(thread.thread_id, thread.start.workflow) for thread in above],
            )
            await run.take_up(own.thread, own.attempts)
            return await run.to_the_end()

    async def fork(
        self,
        thread_id: ThreadId,
        *,
        at_step: int | None = None,
        prompt: str | None = None,
        workspace: Path | None = None,
        bundle: Hash | None = None,
        name: str | None = None,
    ) -> ThreadId:
        """Make a thread that shares the first steps of another; `resume` runs it.

        It takes the same few bytes however long the thread is.

        Args:
            thread_id: any thread, running or not.
            at_step: how many steps to keep; all committed ones if not given.
            prompt: the task from here on, if it is another.
            workspace: the folder to work in, if it is another.
            bundle: the stored bundle to go on with, if it is another.
            name: what to call that.

        Raises:
            ThreadNotFound: there is none of this id.
            ForkError: the thread has not so many steps.
            NotADirectoryError: the workspace is not a folder.
        """
        stored = await read_thread(self.store, thread_id)
        kept = len(stored.steps) if at_step is None else at_step
        if not 0 <= kept <= len(stored.steps):
            raise ForkError(
                f"thread {thread_id} has {len(stored.steps)} steps; keep from 0 to as many"
            )
        parent = stored.head
        if kept < len(stored.steps):
            parent = (await self.store.get(stored.steps[kept].hash)).refs[0]
        fork_id = new_thread_id()
        await commit_branch(
            self.store,
            stored,
            parent,
            fork_id,
            origin=thread_id,
            reason=f"forked from {thread_id} after {kept} steps; resume it",
            prompt=prompt,
            workspace=await _folder(workspace) if workspace is not None else None,
            bundle=bundle,
            name=name,
        )
        return fork_id

    async def pause(self, thread_id: ThreadId, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Suspend a thread, whoever runs it, at once; `resume` goes on.

        A model call or tool that is at work is cancelled, its processes are killed.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadNotResumable: it is completed.
            ThreadBusy: its owner does not react within `timeout_s`.
        """
        await self._stop(thread_id, "pause", timeout_s)

    async def cancel(self, thread_id: ThreadId, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End a thread as cancelled, whoever runs it, at once.

        A model call or tool that is at work is cancelled, its processes are killed.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadNotResumable: it is completed.
            ThreadBusy: its owner does not react within `timeout_s`.
        """
        await self._stop(thread_id, "cancel", timeout_s)

    async def delete(self, thread_id: ThreadId) -> list[ThreadId]:
        """Delete a thread and all that it started, for good. Forks of it stay whole.

        Its objects stay on the disk until `Store.collect_garbage` finds that nothing leads there.

        Returns:
            The ids of what was deleted, its own first. A child that a fork shares is kept.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadBusy: it is being run.
            ThreadNotDeletable: another thread started it, and has its value.
            StoreError: it can't be read, or not written. Nothing is deleted then.
        """
        if self._signals.runs_here(thread_id):
            raise ThreadBusy(thread_id)
        async with owning(self._locks, thread_id):
            deleted = await delete_thread(self.store, thread_id)
            forget(self._locks, deleted)
        return deleted

    async def questions(self, thread_id: ThreadId) -> dict[str, Question]:
        """Return what a thread waits to be told, by key.

        Raises:
            ThreadNotFound: there is none of this id.
        """
        stored = await read_thread(self.store, thread_id)
        return TurnRecords.of(await read_turn(self.store, stored.turn)).pending

    async def answer(self, thread_id: ThreadId, key: str | None, answer: Answer) -> int:
        """Answer a question of a suspended thread, for good. `resume` goes on with it.

        Args:
            thread_id: the thread.
            key: the question's; `None` where there is only one.
            answer: what was decided.

        Returns:
            How many questions are left.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadBusy: it is being run.
            AlreadyAnswered: the question has an answer.
            QuestionError: nothing is asked under this key, or several things and none is given.
        """
        async with owning(self._locks, thread_id, patience_s=ANSWER_PATIENCE_S):
            while True:
                stored = await read_thread(self.store, thread_id)
                entries = await read_turn(self.store, stored.turn)
                pending = TurnRecords.of(entries).pending
                if key is None and len(pending) != 1:
                    raise QuestionError("", list(pending), "say which question is answered")
                journal = StoreJournal(
                    self.store,
                    thread_ref(thread_id, "turn"),
                    _unheard,
                    entries=entries,
                    last=stored.turn,
                )
                try:
                    await journal.answer(next(iter(pending)) if key is None else key, answer)
                except RefConflict:  # somebody else answered something at the same moment
                    continue
                return len(journal.pending)

    async def replay(
        self,
        workflow: Workflow,
        thread_id: ThreadId,
        *,
        on_request: Callable[[ReplayedRequest], None] | None = None,
    ) -> Replay:
        """Carry a thread out again from its records alone, and compare all that comes of it.

        Nothing is performed and nothing is written.

        Args:
            workflow: what the thread was run with.
            thread_id: the thread.
            on_request: gets the bytes of each request as it is rebuilt.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadNotResumable: the workflow has not the roles, or other schemas.
            JournalMismatch: something else was asked for, or came out, than before.
        """
        return await replay_thread(self.store, workflow, thread_id, on_request)

    async def is_running(self, thread_id: ThreadId) -> bool:
        """Whether some process runs the thread now. A dead owner's lock is free at once."""
        return self._locks is not None and is_owned(self._locks, thread_id)

    async def state(self, stored: StoredThread) -> ShownState:
        """The state of a thread: what is recorded, but `interrupted` where its process is gone."""
        if stored.status.state != "running" or await self.is_running(stored.thread_id):
            return stored.status.state
        now = await read_thread(self.store, stored.thread_id)  # it may have ended meanwhile
        return "interrupted" if now.status.state == "running" else now.status.state

    async def _stop(self, thread_id: ThreadId, signal: Signal, timeout_s: float) -> None:
        """Have the owner end the run, or if there is none, record the end."""
        stored = await read_thread(self.store, thread_id)
        deadline = anyio.current_time() + timeout_s
        wanted = ("cancelled", "") if signal == "cancel" else ("suspended", "paused")
        while True:
            here = self._signals.send_here(thread_id, signal)
            try:
                if not here:
                    async with owning(self._locks, thread_id, patience_s=0):
                        await self._mark_stopped(thread_id, signal)
                        return
            except RefConflict:
                pass  # it ended by itself at this moment: see how
            except ThreadBusy:
                status = thread_ref(thread_id, "status")
                same = RefMove(status, stored.status_hash, stored.status_hash)
                await self._signals.send(thread_id, signal, status=same)
                if anyio.current_time() > deadline:
                    raise
            await anyio.sleep(_RETRY_S)
            stored = await read_thread(self.store, thread_id)
            if (stored.status.state, stored.status.cause) == wanted:
                return

    async def _mark_stopped(self, thread_id: ThreadId, signal: Signal) -> None:
        """Record the end of a thread that nobody runs."""
        stored = await read_thread(self.store, thread_id)
        if stored.status.state == "completed":
            await self._signals.remove_with(thread_id, lambda moves: self.store.commit([], moves))
            raise ThreadNotResumable(f"thread {thread_id} is completed")
        status = await stopped_status(self.store, stored, signal)
        move = RefMove(thread_ref(thread_id, "status"), stored.status_hash, status.hash)
        await self._signals.remove_with(
            thread_id, lambda moves: self.store.commit([status], [move, *moves])
        )
        if signal == "cancel":
            await cancel_below(self.store, thread_id)


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


async def _folder(workspace: Path | None) -> Path:
    """The workspace as an absolute path.

    Raises:
        NotADirectoryError: it is not a folder.
    """
    return await to_thread.run_sync(_absolute, workspace or Path())


def _absolute(workspace: Path) -> Path:
    folder = workspace.resolve()
    if not folder.is_dir():
        raise NotADirectoryError(f"the workspace {str(folder)!r} is not a folder; create it")
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise NotADirectoryError(
            f"the workspace {str(folder)!r} has a name that is not UTF-8; rename it"
        ) from error
    return folder


def _in_turn(asker: Asker) -> Asker:
    """Ask one question at a time, whichever thread has it."""
    asking = anyio.Lock()

    async def ask(key: str, question: Question) -> Answer | None:
        async with asking:
            return await asker(key, question)

    return ask


async def _unheard(event: Event) -> None:
    del event
