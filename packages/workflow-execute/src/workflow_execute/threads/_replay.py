"""Carries recorded turns out again, offline: nothing is performed, every input is compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import anyio
import msgspec

from workflow_cas import Store
from workflow_execute._differences import compare, is_same_but_for_order
from workflow_execute._errors import JournalMismatch
from workflow_execute._supervisor import completion_of
from workflow_execute._workflow import AnyWorkflow, encoded_value
from workflow_execute.threads._context import context_of, typed_step
from workflow_execute.threads._read import (
    StoredStep,
    StoredThread,
    read_thread,
    read_turn,
)
from workflow_execute.threads._replay_journal import ReplayedRequest, ReplayJournal
from workflow_protocol import (
    Completion,
    Failure,
    RoleStep,
    ThreadContext,
    ThreadId,
    is_same_value,
    next_role,
    schema_of,
)

T = TypeVar("T")
_WAIT_S = 1.0  # a role whose time was over may have waited for something that isn't recorded
SetOptions = Callable[[Sequence[str]], AbstractContextManager[object]]
"""Lets the `run_options` of a run hold while a block lasts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What carrying a thread out again came to: the same as before, or an error said otherwise."""

    steps: int
    """Finished steps that were compared."""
    effects: int
    """Recorded results that were used."""
    requests: int
    """Inputs whose bytes were compared with their digest."""
    completion: Completion | None
    """How the thread ended, if it is completed."""


async def replay_thread(
    store: Store,
    workflow: AnyWorkflow,
    thread_id: ThreadId,
    on_request: Callable[[ReplayedRequest], None] | None = None,
    set_options: SetOptions | None = None,
) -> Replay:
    """Carry a thread out again from its records alone, and compare all that comes of it.

    A fork is replayed from where it begins; what precedes it belongs to the thread it came from.

    Args:
        store: holds the thread. It is only read.
        workflow: what the thread was run with.
        thread_id: the thread.
        on_request: gets the bytes of each input as it is rebuilt.
        set_options: lets what was set for a run alone hold while a turn of that run is replayed.

    Raises:
        ThreadNotFound: there is none of this id.
        ThreadNotResumable: the workflow has not the roles, or other schemas.
        JournalMismatch: something else was asked for, or came out, than before.
    """
    stored = await read_thread(store, thread_id)
    whole = context_of(stored, workflow)
    ctx = replace(whole, steps=whole.steps[: stored.own_from])
    effects = requests = 0
    for step in stored.steps[stored.own_from :]:
        entries = await read_turn(store, step.turn)
        journal = ReplayJournal(step.record.step, entries, on_request, step.failure)
        with _set(set_options, step.record.run_options):
            await _replay_step(workflow, ctx, step, journal)
        ctx = replace(ctx, steps=(*ctx.steps, typed_step(step, workflow)))
        effects, requests = effects + journal.used, requests + journal.compared
    journal = ReplayJournal(len(ctx.steps), await read_turn(store, stored.turn), on_request)
    with _set(set_options, stored.status.run_options):
        completion = await _replay_unfinished(workflow, ctx, journal)
    if stored.status.state == "completed":
        recorded = Completion(
            return_code=stored.status.return_code or 0, summary=stored.status.summary
        )
        if completion != recorded:
            raise JournalMismatch("completion", f"it was {recorded}, now it is {completion}")
    return Replay(
        steps=len(stored.steps) - stored.own_from,
        effects=effects + journal.used,
        requests=requests + journal.compared,
        completion=completion,
    )


def _set(set_options: SetOptions | None, options: Sequence[str]) -> AbstractContextManager[object]:
    return nullcontext() if set_options is None else set_options(options)


async def check_unfinished_turn(
    store: Store, workflow: AnyWorkflow, stored: StoredThread, folder: Path
) -> None:
    """Make sure that a workflow asks, in the unfinished turn, for what is recorded.

    Args:
        folder: the workspace that it would go on in.

    Raises:
        ThreadNotResumable: the workflow has not the roles, or other schemas.
        JournalMismatch: it asks for something else.
    """
    if stored.turn is not None:
        ctx = context_of(stored, workflow)
        ctx = replace(ctx, start=msgspec.structs.replace(ctx.start, workspace=folder))
        journal = ReplayJournal(len(ctx.steps), await read_turn(store, stored.turn), None)
        await _replay_unfinished(workflow, ctx, journal)


async def _replay_unfinished(
    workflow: AnyWorkflow, ctx: ThreadContext, journal: ReplayJournal
) -> Completion | None:
    """Carry a turn out again as far as it came, and give the end of the thread if that is one.

    Raises:
        JournalMismatch: it asks for something else than is recorded.
    """
    try:
        completion = completion_of(journal.decision)
        if completion is not None:
            return completion
        outcome = await workflow.advance(replace(ctx, journal=journal))
    except Exception:  # noqa: BLE001 - it ends where the records do, and a role may wrap that
        outcome = None
    if journal.mismatch is not None:  # whatever the role has made of it
        raise journal.mismatch
    return outcome if isinstance(outcome, Completion) else None


async def _replay_step(
    workflow: AnyWorkflow, ctx: ThreadContext, step: StoredStep, journal: ReplayJournal
) -> None:
    """Carry one finished turn out again.

    Raises:
        JournalMismatch: it isn't the step that is recorded.
    """
    place = f"step {step.record.step}"
    role = next_role(workflow.definition, ctx)
    now = "the end" if role is None else role.name
    if now != step.record.role:
        raise JournalMismatch(place, f"the next role was {step.record.role!r}, now it is {now!r}")
    limit = step.failure.limit if step.failure is not None else ""
    if limit and step.turn is None:  # it was reached before the role did anything
        return
    outcome: RoleStep | Completion | None = None
    with anyio.move_on_after(_WAIT_S if limit == "max_seconds" else None):
        outcome = await workflow.advance(replace(ctx, journal=journal))
    if isinstance(outcome, RoleStep) and (not limit or outcome.failure is not None):
        _compare_step(workflow, place, step, outcome)
    if journal.mismatch is not None:  # whatever the role has made of it
        raise journal.mismatch
    if journal.unused and not limit:  # where its time was over, something may not have been used
        unused = ", ".join(sorted(journal.unused))
        raise JournalMismatch(place, f"these recorded effects were not used: {unused}")


def _compare_step(workflow: AnyWorkflow, place: str, step: StoredStep, outcome: RoleStep) -> None:
    """Compare what came of a turn with what is recorded.

    Raises:
        JournalMismatch: it is something else.
    """
    before, now = step.failure, outcome.failure
    if before is not None or now is not None:
        if before is None or now is None or before.type != now.type:
            raise JournalMismatch(place, f"it {_how(before)} before, and now it {_how(now)}")
    else:
        schema = schema_of(workflow.definition.role(outcome.role).schema)
        if not is_same_value(schema, step.value, outcome.json):
            _compare(f"{place}, value", step.value, outcome.json)
        if outcome.content != encoded_value(
            schema, outcome.meta, outcome.json
        ) or not is_same_but_for_order(step.content, outcome.content):
            _compare(f"{place}, content", step.content.encode(), outcome.content.encode())
    if before is not None and before.limit == "max_seconds":
        return  # what was told when the time was over may not have counted
    usage = (msgspec.json.encode(each) for each in (step.record.usage, outcome.usage))
    _compare(f"{place}, usage", *usage)
    artifacts = (msgspec.json.encode(each) for each in (step.record.artifacts, outcome.artifacts))
    _compare(f"{place}, artifacts", *artifacts)


def _how(failure: Failure | None) -> str:
    return "gave a value" if failure is None else f"failed with {failure.type}"


def _compare(what: str, recorded: bytes, now: bytes) -> None:
    difference = compare(recorded, now)
    if difference is not None:
        raise JournalMismatch(what, "it has changed", difference)
