"""The engine: starts, resumes, forks, stops, answers and replays threads on a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from anyio import to_thread

from workflow_cas import Store
from workflow_execute._budget import Budget, Limits
from workflow_execute._errors import ThreadBusy
from workflow_execute._failure import environment_secrets
from workflow_execute._records import ShownState
from workflow_execute._result import ThreadResult
from workflow_execute._supervisor import SupervisorFn
from workflow_execute._workflow import AnyWorkflow, Workflow
from workflow_execute.engine._answer import answer_question, one_at_a_time, read_questions
from workflow_execute.engine._begin import new_thread, run_new_thread
from workflow_execute.engine._present_files import look_at_files
from workflow_execute.engine._resume import resume_thread
from workflow_execute.engine._service import ServiceEngine
from workflow_execute.engine._stop import STOP_TIMEOUT_S, stop_thread
from workflow_execute.engine._workspace import remove_own_folders, resolve_workspace
from workflow_execute.journal._folders import FolderVersionsByPath
from workflow_execute.journal._questions import Asker
from workflow_execute.owners._cancellation import cancelled_by_anyio
from workflow_execute.owners._locks import is_owned, owning, remove_lock_files
from workflow_execute.owners._now import ThreadNow, read_now
from workflow_execute.owners._signals import Signals
from workflow_execute.run._services import Observer, RunServices
from workflow_execute.threads._branch import fork_thread
from workflow_execute.threads._delete import delete_thread
from workflow_execute.threads._read import StoredThread, read_thread
from workflow_execute.threads._replay import Replay, SetOptions, replay_thread
from workflow_execute.threads._replay_journal import ReplayedRequest
from workflow_execute.threads._summaries import find_summaries, labels_for
from workflow_execute.threads._summary import ThreadSummary
from workflow_execute.threads._tree import read_tree
from workflow_protocol import Answer, Hash, Question, ThreadId
from workflow_workspace import FileChange, Versioned

In = TypeVar("In")
Out = TypeVar("Out")

_VERSIONED = Versioned()


class Engine(ServiceEngine):
    """Runs threads on a store.

    `start` and `resume` run one until it ends; `submit` and `recover` run them in the background,
    inside of `async with engine.running():`.

    Example:
        ```python
        from uwf.examples.weather import run  # any workflow

        async with open_store("threads.sqlite3") as store:
            engine = Engine(store, limits=Limits(max_rounds=20))
            result = await engine.start(run, "What do I wear in Rome?")
            if result.state != "completed":  # a question, a limit, or a fault that passes
                result = await engine.resume(run, result.thread_id)
        ```

    Args:
        store: keeps everything; stays the caller's to close.
        locks: a folder for one lock file a thread, so that two processes can't run one thread.
            `None` where no other process can see the store.
        limits: for each thread, together with all that it starts.
        observer: hears every event, or several that do. It must be quick; what it raises is logged
            and dropped.
        asker: asks a person at once. Without one, or if it gives `None`, a question suspends the
            thread until `answer` is called. It is asked one question at a time.
        supervisor: looks at each thread after every `supervise_every` steps, except the last, and
            may stop it: the thread is then completed with return code 1 and the reason.
        supervise_every: in steps.
        run_options: what was set for its runs alone, such as another model, as people write it. It
            is kept in the status of each thread, until the next run.
        versions: what is kept of the files of the workspaces that its threads are given, with each
            effect that may change some; `None` to keep nothing. What needs no versions: a thread
            that is given no workspace.
        workspaces: a folder for what it makes itself: the folders of forks, and what it knows of
            unchanged files. Without it, a fork works in the folder of its origin.
        secrets: by name, values that no file which is kept may hold, besides those of the
            environment's variables that are named like keys.
        own_files: files and folders of the program's own, which versions leave out where they lie
            in a workspace, as they do `locks`, `workspaces` and the store's file.
    """

    def __init__(
        self,
        store: Store,
        *,
        locks: Path | None = None,
        limits: Limits | None = None,
        observer: Observer | Sequence[Observer] | None = None,
        asker: Asker | None = None,
        supervisor: SupervisorFn | None = None,
        supervise_every: int = 3,
        run_options: Sequence[str] = (),
        versions: Versioned | None = _VERSIONED,
        workspaces: Path | None = None,
        secrets: Mapping[str, str] | None = None,
        own_files: Sequence[Path] = (),
    ) -> None:
        if isinstance(cast("object", store), str | Path):
            raise TypeError(
                "the store is a path; open it by `async with open_store(path) as store:`, or take "
                "MemoryStore()"
            )
        self.store = store
        services = RunServices(
            store=store,
            locks=locks,
            signals=Signals(store, watch=locks is not None),
            observers=_observers(observer),
            asker=one_at_a_time(asker) if asker is not None else None,
            supervisor=supervisor,
            supervise_every=supervise_every,
            run_options=tuple(run_options),
            folders=_folders(store, versions, workspaces, secrets, locks, own_files),
        )
        super().__init__(services, limits or Limits())
        self._workspaces = workspaces

    @cancelled_by_anyio
    async def start(
        self,
        workflow: Workflow[In, Out],
        input: In,
        *,
        workspace: Path | None = None,
        name: str = "workflow",
        bundle: Hash | None = None,
        budget: Budget | None = None,
        tags: Iterable[str] | Mapping[str, str] = (),
    ) -> ThreadResult[Out]:
        """Begin a thread and run it until it completes, fails, is suspended or cancelled.

        A role's exception ends the run as `failed` and is in the result; cancellation is recorded
        and raised on.

        Args:
            workflow: what to run.
            input: the task: text, or a value of the workflow's `input` type, of which roles read
                the JSON.
            workspace: the folder to work in. If not given it is the current one, of whose files no
                versions are kept.
            name: what to call the workflow, for people and `recover`.
            bundle: the stored bundle that `workflow` came from.
            budget: what it draws from together with others; one of its own if not given.
            tags: what to find it by; those of a mapping are kept as `name=value`. Child threads
                get none of them.

        Raises:
            InputError: the input is of another type, or it or the name is not UTF-8; nothing has
                begun then.
            TypeError: the workflow is something else.
            NotADirectoryError: the workspace is not a folder.
            ValueError: a tag has other than letters, digits and `. _ : / = @ + -`, or is longer
                than 64 characters.
            StoreError: the store failed; what was committed is kept.
        """
        new = await new_thread(
            workflow, input, workspace=workspace, name=name, bundle=bundle, tags=tags
        )
        return await run_new_thread(self._services, new, budget or Budget(self._limits))

    @cancelled_by_anyio
    async def resume(
        self,
        workflow: Workflow[Any, Out],
        thread_id: ThreadId,
        *,
        fresh: bool = False,
        bundle: Hash | None = None,
        workspace: Path | None = None,
        restore_files: bool = False,
        budget: Budget | None = None,
    ) -> ThreadResult[Out]:
        """Go on with a thread where its last run ended, in the middle of a turn if need be.

        Recorded model replies and tool results are used again, not made again. A child thread that
        its turn has is resumed with it. A child can be resumed alone too, while the threads above
        it don't run; they go on with what it came to.

        Args:
            workflow: what to run: what the thread began with, or something else on purpose. For a
                child it is the child's own; `workflow_of_child` finds it.
            thread_id: the thread.
            fresh: start the unfinished turn again. The earlier attempt stays in the record; a child
                thread that it has is cancelled.
            bundle: the stored bundle that `workflow` came from, if it is another than before.
            workspace: the folder to work in, if it is another.
            restore_files: first put the files of the workspace back as the thread has left them,
                where others have changed some. How they are before is kept as a version. Else they
                stay as they are. Observers hear of it either way (`WorkspaceDiffers`).
            budget: what it draws from together with others; one of its own if not given.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadBusy: it, or a thread above it, is being run elsewhere.
            ThreadNotResumable: it is completed, or a stored value no longer fits its role.
            JournalMismatch: its unfinished turn, or that of a child, asks for something else than
                is recorded, because of another bundle, model or prompt. Nothing has changed then,
                but for files that were put back.
            NotADirectoryError: the workspace is not a folder, or no longer.
            NotVersioned: the files are to be put back, and how they are now can't be kept.
            RestoreError: some of them can't be put back.
        """
        return await resume_thread(
            self._services,
            workflow,
            thread_id,
            fresh=fresh,
            bundle=bundle,
            workspace=workspace,
            restore_files=restore_files,
            budget=budget or Budget(self._limits),
        )

    async def changed_files(
        self, thread_id: ThreadId, *, workspace: Path | None = None
    ) -> list[FileChange]:
        """Return which files are now not as a thread has left them; folders alone don't count.

        `before` is the file as it was left, `after` as it is. Nothing is told of a thread of which
        no version is known, such as one that has only read.

        Args:
            thread_id: the thread; while it runs, what it changes itself may be told.
            workspace: the folder to compare, if it isn't the thread's.

        Raises:
            ThreadNotFound: there is none of this id.
            NotADirectoryError: the workspace is not a folder, or no longer.
            NotVersioned: no versions are kept of it any more.
            StoreError: a part of a version is missing or damaged.
        """
        tree = await read_tree(self.store, thread_id)
        folder = await resolve_workspace(workspace or tree.thread.workspace)
        found = await look_at_files(self._services, tree, folder)
        return [] if found is None else list(found.changes)

    async def fork(
        self,
        thread_id: ThreadId,
        *,
        at_step: int | None = None,
        prompt: str | None = None,
        workflow: AnyWorkflow | None = None,
        workspace: Path | None = None,
        bundle: Hash | None = None,
        name: str | None = None,
    ) -> ThreadId:
        """Make a thread that shares the first steps of another; `resume` runs it.

        It takes the same few bytes however long the thread is. Where versions of its files are
        known, it works in a folder of its own, with the files as they were after these steps.

        Args:
            thread_id: any thread, running or not.
            at_step: how many steps to keep; all committed ones if not given.
            prompt: the task from here on, if it is another: text, or the JSON of an input.
            workflow: what it will be resumed with. What it is begun with is then checked now, not
                when it is resumed, and stored with its defaults.
            workspace: the folder to work in. An empty one gets the files as they were, any other is
                left as it is. If not given it is a new one in the engine's `workspaces`.
            bundle: the stored bundle to go on with, if it is another.
            name: what to call that.

        Raises:
            ThreadNotFound: there is none of this id.
            ForkError: the thread has not so many steps.
            InputError: the prompt is not UTF-8, or not of the workflow's `input` type.
            NotADirectoryError: the workspace is not a folder.
            RestoreError: the files can't be put there.
        """
        folder = await resolve_workspace(workspace) if workspace is not None else None
        return await fork_thread(
            self.store,
            thread_id,
            folders=self._workspaces,
            at_step=at_step,
            prompt=prompt,
            workflow=workflow,
            workspace=folder,
            bundle=bundle,
            name=name,
        )

    async def pause(self, thread_id: ThreadId, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Suspend a thread, whoever runs it, at once; `resume` goes on.

        A model call or tool that is at work is cancelled, its processes are killed.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadNotResumable: it is completed.
            ThreadBusy: its owner does not react within `timeout_s`.
        """
        await stop_thread(self._services, thread_id, "pause", timeout_s)

    async def cancel(self, thread_id: ThreadId, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End a thread as cancelled, whoever runs it, at once.

        A model call or tool that is at work is cancelled, its processes are killed.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadNotResumable: it is completed.
            ThreadBusy: its owner does not react within `timeout_s`.
        """
        await stop_thread(self._services, thread_id, "cancel", timeout_s)

    async def delete(self, thread_id: ThreadId) -> list[ThreadId]:
        """Delete a thread and all that it started, for good. Forks of it stay whole.

        Its objects stay on the disk until `Store.collect_garbage` finds that nothing leads there.
        The folders that were made for forks go with them.

        Returns:
            The ids of what was deleted, its own first. A child that a fork shares is kept.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadBusy: it is being run.
            ThreadNotDeletable: another thread started it, and has its value.
            StoreError: it can't be read, or not written. Nothing is deleted then.
        """
        locks = self._services.locks
        if self._services.signals.runs_here(thread_id):
            raise ThreadBusy(thread_id)
        async with owning(locks, thread_id):
            deleted = await delete_thread(self.store, thread_id)
            remove_lock_files(locks, deleted)
            await remove_own_folders(self._workspaces, deleted)
        return deleted

    async def questions(self, thread_id: ThreadId) -> dict[str, Question]:
        """Return what a thread waits to be told, by key.

        Raises:
            ThreadNotFound: there is none of this id.
        """
        return await read_questions(self.store, thread_id)

    async def answer(self, thread_id: ThreadId, key: str | None, answer: Answer) -> int:
        """Answer a question of a thread, for good, whoever runs it.

        Where a person is asked at this moment, that question is taken back; else `resume` goes on
        with the answer.

        Args:
            thread_id: the thread.
            key: the question's; `None` where there is only one.
            answer: what was decided.

        Returns:
            How many questions are left.

        Raises:
            ThreadNotFound: there is none of this id.
            AlreadyAnswered: the question has an answer; says which, and who gave it.
            QuestionError: nothing is asked under this key, or several things and none is given.
        """
        return await answer_question(self.store, thread_id, key, answer)

    async def replay(
        self,
        workflow: AnyWorkflow,
        thread_id: ThreadId,
        *,
        on_request: Callable[[ReplayedRequest], None] | None = None,
        set_options: SetOptions | None = None,
    ) -> Replay:
        """Carry a thread out again from its records alone, and compare all that comes of it.

        Nothing is performed and nothing is written.

        Args:
            workflow: what the thread was run with.
            thread_id: the thread.
            on_request: gets the bytes of each request as it is rebuilt.
            set_options: gets the `run_options` of the run that made each turn, and lets them hold
                while the turn is replayed, such as another model.

        Raises:
            ThreadNotFound: there is none of this id.
            ThreadNotResumable: the workflow has not the roles, or other schemas.
            JournalMismatch: something else was asked for, or came out, than before.
        """
        return await replay_thread(self.store, workflow, thread_id, on_request, set_options)

    async def list_threads(
        self,
        *,
        state: ShownState | None = None,
        workflow: str | None = None,
        tag: str | None = None,
        parent: ThreadId | None = None,
        top: bool = False,
        since_ms: int | None = None,
        after: ThreadId | None = None,
        limit: int | None = None,
    ) -> list[ThreadSummary]:
        """Return threads in short, those that began last first. See `read_summaries`."""
        return await find_summaries(
            self.store,
            labels_for(state=state, workflow=workflow, tag=tag, parent=parent, top=top),
            state=state,
            since_ms=since_ms,
            after=after,
            limit=limit,
            run_among=self._run_among,
        )

    async def is_running(self, thread_id: ThreadId) -> bool:
        """Whether some process runs the thread now. A dead owner's lock is free at once."""
        return self._services.locks is not None and is_owned(self._services.locks, thread_id)

    async def now(self, thread_id: ThreadId) -> ThreadNow | None:
        """Say what a thread does now, whichever process runs it: see `read_now`.

        `None` where nobody runs it, or without `locks`.
        """
        locks = self._services.locks
        return None if locks is None else await to_thread.run_sync(read_now, locks, thread_id)

    async def state(self, stored: StoredThread) -> ShownState:
        """The state of a thread: what is recorded, but `interrupted` where its process is gone."""
        if stored.status.state != "running" or await self.is_running(stored.thread_id):
            return stored.status.state
        now = await read_thread(self.store, stored.thread_id)  # it may have ended meanwhile
        return "interrupted" if now.status.state == "running" else now.status.state


def _folders(
    store: Store,
    versions: Versioned | None,
    workspaces: Path | None,
    secrets: Mapping[str, str] | None,
    locks: Path | None,
    own_files: Sequence[Path],
) -> FolderVersionsByPath | None:
    if versions is None:
        return None

    def values() -> list[bytes]:
        named = {**dict(environment_secrets()), **(secrets or {})}
        return [os.fsencode(value) for value in named.values()]

    caches = None if workspaces is None else workspaces / "known"
    return FolderVersionsByPath(
        store, versions, caches, values, _own_places(store, workspaces, locks, *own_files)
    )


def _own_places(store: Store, *places: Path | None) -> list[Path]:
    """The engine's own files and folders."""
    path = getattr(store, "path", None)
    files = (
        [path.with_name(f"{path.name}{end}") for end in ("", "-wal", "-shm")]
        if isinstance(path, Path)
        else []
    )
    return [*files, *(each for each in places if each is not None)]


def _observers(given: Observer | Sequence[Observer] | None) -> tuple[Observer, ...]:
    if given is None:
        return ()
    return (given,) if callable(given) else tuple(given)
