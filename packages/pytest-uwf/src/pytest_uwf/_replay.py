"""Replays threads out of files, and records such files from real runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from anyio.from_thread import start_blocking_portal

from workflow_cas import MemoryStore, Store
from workflow_execute import (
    AnyWorkflow,
    Asker,
    Engine,
    JournalMismatch,
    Replay,
    ReplayedRequest,
    ThreadFileError,
    ThreadNotResumable,
    export_thread,
    open_thread_file,
    read_input,
    read_thread,
    workflow_of_child,
)
from workflow_protocol import ThreadId, WorkflowError
from workflow_register import configured_secrets, find_home

T = TypeVar("T")

_SHOWN_BYTES = 400


class ReplayDiffers(AssertionError):
    """A workflow does not come to what a thread in a file came to. `mismatch` says where first.

    It is `None` where the workflow lacks a role of the thread, or has another schema for it.
    """

    def __init__(
        self, path: Path, where: str, what: str, mismatch: JournalMismatch | None = None
    ) -> None:
        self.path = path
        self.mismatch = mismatch
        lines = [
            f"the workflow does not come to the same as {path}",
            f"where: {where}",
            f"what: {what}",
            *(_shown(mismatch) if mismatch is not None else ()),
            "if the change is meant, record the thread anew: run pytest with --uwf-record, or use "
            "`uwf thread export`",
        ]
        super().__init__("\n".join(lines))


def _shown(mismatch: JournalMismatch) -> Iterator[str]:
    """The first difference, with what is around it now."""
    difference = mismatch.difference
    if difference is None:
        return
    end = f" to {difference.at + difference.within}" if difference.within > 1 else ""
    yield f"first difference: at byte {difference.at}{end}"
    if difference.recorded is not None:
        yield f"recorded: {difference.recorded}"
    if mismatch.now is None:
        yield f"now: {difference.now}"
    else:
        begin = max(0, difference.at - _SHOWN_BYTES // 4)
        shown = mismatch.now[begin : begin + _SHOWN_BYTES].decode(errors="replace")
        yield f"now, from byte {begin}: {shown}"


class RecordingFailed(WorkflowError):
    """A run that was to be recorded failed or was cancelled. The file is as it was before."""


async def replay_file(path: Path, workflow: AnyWorkflow) -> Replay:
    """Carry the thread in a file out again from its records, and compare all that comes of it.

    Nothing is performed, imported or written. Child threads are compared too, where a
    `workflow_adapter` on the way down names their workflow.

    Args:
        path: what `export_thread` or `uwf thread export` wrote.
        workflow: what comes to the same, or doesn't. Its models are not asked, but name themselves
            in the requests: they have to be those of the run, or be put in place by `using`.

    Raises:
        ReplayDiffers: it comes to something else; says what the first difference is.
        ThreadFileError: the file is no thread file, or not whole.
    """
    async with open_thread_file(path) as file:
        replayed = await _replay(path, file, workflow, file.thread_id)
        for each in file.threads[1:]:
            thread = await read_thread(file, ThreadId(each.id))
            try:
                below = await workflow_of_child(file, workflow, thread)
            except ThreadNotResumable:  # a turn started it by `run_children`
                continue
            await _replay(path, file, below, thread.thread_id)
    return replayed


async def _replay(path: Path, file: Store, workflow: AnyWorkflow, thread_id: ThreadId) -> Replay:
    steps = (await read_thread(file, thread_id)).steps
    at = -1

    def keep(request: ReplayedRequest) -> None:
        nonlocal at
        at = request.step

    try:
        return await Engine(file).replay(workflow, thread_id, on_request=keep)
    except JournalMismatch as error:
        role = f", role {steps[at].record.role!r}" if 0 <= at < len(steps) else ""
        step = f"step {at}{role}, " if at >= 0 else ""
        where = f"thread {thread_id}, {step}{error.key}"
        raise ReplayDiffers(path, where, error.reason, error) from error
    except ThreadNotResumable as error:
        raise ReplayDiffers(path, f"thread {thread_id}", str(error)) from error


async def record_file(
    path: Path,
    workflow: AnyWorkflow,
    input: object,
    *,
    workspace: Path | None,
    asker: Asker | None,
) -> None:
    """Run a workflow and write its thread into a file.

    Raises:
        RecordingFailed: the run failed or was cancelled, or there is nothing to run it with.
        SecretInThread: the value of a key would be in the file.
    """
    if input is None:
        input = await _recorded_input(path, workflow)
    store = MemoryStore()
    result = await Engine(store, asker=asker).start(
        workflow, input, workspace=workspace, name=path.stem
    )
    if result.state not in {"completed", "suspended"}:
        raise RecordingFailed(
            f"{path} was not recorded: the run is {result.state}: {result.summary}"
        ) from result.error
    path.parent.mkdir(parents=True, exist_ok=True)
    await export_thread(store, result.thread_id, path, secrets=configured_secrets(find_home()))


async def _recorded_input(path: Path, workflow: AnyWorkflow) -> object:
    try:
        async with open_thread_file(path) as file:
            text = (await read_thread(file, file.thread_id)).prompt
    except (OSError, ThreadFileError) as error:
        raise RecordingFailed(
            f"{path} can't be recorded, as it is not known what to start with: give "
            "uwf_replay an `input`"
        ) from error
    return read_input(workflow, text)


class UwfReplay:
    """What the fixture `uwf_replay` gives: call it in any test, plain or async."""

    def __init__(self, *, folder: Path, record: bool, home: Path | None) -> None:
        self._folder = folder
        self._record = record
        self._home = home

    def __call__(
        self,
        file: str | Path,
        workflow: AnyWorkflow,
        *,
        input: object = None,
        workspace: Path | None = None,
        asker: Asker | None = None,
    ) -> Replay:
        """Replay the thread in a file against a workflow, offline, byte for byte.

        With `--uwf-record` the workflow is run first, on its real models, and the file is written
        anew; what the other arguments say counts only then.

        Args:
            file: relative to the folder of the test.
            workflow: what comes to the same.
            input: what to begin the run with; what the file's thread began with if not given.
            workspace: the folder to work in; the current one if not given.
            asker: answers the questions of the run, such as a `ScriptedPerson`.

        Returns:
            How many steps, recorded results and requests were compared.

        Raises:
            pytest.fail.Exception: it comes to something else, with the first difference.
            RecordingFailed: the run failed.
        """
        path = self._folder / file
        if not self._record and not path.exists():
            pytest.fail(
                f"there is no file {path}; make it with pytest --uwf-record, or with "
                f"`uwf thread export ID --to {file}`",
                pytrace=False,
            )

        async def work() -> Replay:
            if self._record:
                await record_file(path, workflow, input, workspace=workspace, asker=asker)
            return await replay_file(path, workflow)

        with _home_in_use(self._home):
            try:
                return _run_beside(work)
            except ReplayDiffers as error:
                told = str(error)
        pytest.fail(told, pytrace=False)


@contextmanager
def _home_in_use(home: Path | None) -> Generator[None]:
    """Look models up in this folder for a while."""
    if home is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "UWF_HOME", str(home))
        yield


def _run_beside(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run it to its end on a loop of its own, in this context: a test may be in a loop already.

    Ctrl-C cancels it.
    """
    with start_blocking_portal() as portal:
        return portal.call(work)
