"""Taking up the threads that dead or closed processes have left."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from workflow_cas import Store
from workflow_execute._errors import EngineNotRunning, ThreadBusy, ThreadNotFound
from workflow_execute._records import ShownState
from workflow_execute._workflow import AnyWorkflow, Workflow
from workflow_execute.engine._begin import name_of
from workflow_execute.engine._handle import ThreadHandle
from workflow_execute.threads._read import read_thread
from workflow_execute.threads._summaries import RunAmong, find_summaries, labels_for, read_summary
from workflow_execute.threads._summary import SHUT_DOWN, ThreadSummary
from workflow_protocol import ThreadId

Workflows = Mapping[str, Workflow[Any, object]] | Iterable[Workflow[Any, object]]
"""By name or by the hash of their bundle; without names they have those that `submit` gives."""
TakeUp = Callable[[AnyWorkflow, ThreadId], Awaitable[ThreadHandle[object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftThread:
    """A thread that nobody runs and that could not be taken up."""

    thread_id: ThreadId
    """The thread."""
    workflow: str
    """The name that it was started under."""
    reason: str
    """Why it could not, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What came of `Engine.recover`."""

    taken: tuple[ThreadHandle[object], ...]
    """The threads that this engine runs now, those that began first at the beginning."""
    left: tuple[LeftThread, ...]
    """The threads that nobody can run with these workflows, or on this machine."""


async def recover_threads(
    store: Store,
    workflows: Workflows,
    take_up: TakeUp,
    *,
    run_among: RunAmong,
    given_up: Mapping[ThreadId, str],
    limit: int | None,
) -> Recovery:
    """Take up what nobody runs. See `Engine.recover`."""
    known = _by_name(workflows)
    taken: list[ThreadHandle[object]] = []
    left: list[LeftThread] = []
    for thread in await _without_owner(store, run_among):
        if limit is not None and len(taken) >= limit:
            break
        if run_among([thread.thread_id]):  # another process is at it, too
            continue
        reason = given_up.get(thread.thread_id, "")
        if thread.parent is not None:
            reason = await _why_not_with_parent(store, thread.parent)
        elif not reason:
            reason = await _take_up(store, thread.thread_id, known, take_up, taken)
        if reason:
            left.append(
                LeftThread(thread_id=thread.thread_id, workflow=thread.workflow, reason=reason)
            )
    return Recovery(taken=tuple(taken), left=tuple(left))


def _by_name(workflows: Workflows) -> Mapping[str, AnyWorkflow]:
    if isinstance(workflows, Mapping):
        return cast("Mapping[str, AnyWorkflow]", workflows)
    return {name_of(each): each for each in workflows}


async def _without_owner(store: Store, run_among: RunAmong) -> Sequence[ThreadSummary]:
    """Threads whose process died or was shut down, the oldest first."""

    async def find(state: ShownState, *labels: str) -> list[ThreadSummary]:
        wanted = labels_for(state=state, workflow=None, tag=None, parent=None, top=False)
        return await find_summaries(
            store,
            [*wanted, *labels],
            state=state,
            since_ms=None,
            after=None,
            limit=None,
            run_among=run_among,
        )

    found = [*await find("interrupted"), *await find("suspended", SHUT_DOWN)]
    return sorted(found, key=lambda each: each.thread_id)


async def _take_up(
    store: Store,
    thread_id: ThreadId,
    workflows: Mapping[str, AnyWorkflow],
    take_up: TakeUp,
    taken: list[ThreadHandle[object]],
) -> str:
    """Take up one thread, or say why it can't be; empty where another process is quicker."""
    try:
        stored = await read_thread(store, thread_id)
        name, bundle = stored.start.workflow, stored.start.bundle
        workflow = (workflows.get(bundle) if bundle else None) or workflows.get(name)
        if workflow is None:
            known = ", ".join(map(repr, workflows)) or "none"
            return f"there is no workflow {name!r} among those that were given: {known}"
        taken.append(await take_up(workflow, thread_id))
    except (ThreadBusy, ThreadNotFound):
        return ""
    except EngineNotRunning:
        raise
    except Exception as error:  # noqa: BLE001 - the others are taken up all the same
        now = await read_summary(store, thread_id)
        is_done = now is None or (now.state != "running" and now.cause != "shutdown")
        return "" if is_done else f"{type(error).__name__}: {error}"
    return ""


async def _why_not_with_parent(store: Store, parent: ThreadId) -> str:
    """Why a child thread is left; empty where its parent thread goes on and takes it along."""
    above = await read_summary(store, parent)
    if above is None or above.state == "running" or above.cause == "shutdown":
        return ""
    return f"it is a child of thread {parent}, which is {above.state}: resume that"
