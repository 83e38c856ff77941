"""`show`: what happened in a thread, read from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from uwf._store import open_existing
from uwf.commands._files import ShownChange, read_changes, summary_of
from uwf.commands._sandbox_use import commands_without_sandbox
from uwf.commands._show_text import children_words, cost_of, head_text, step_text
from uwf.commands._thread_usage import ThreadUsage, read_thread_usage
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output
from uwf.terminal._shorten import Cut
from uwf.terminal._style import Styled
from uwf.terminal._transcript import TranscriptLines, lay_out
from workflow_cas import Store
from workflow_execute import (
    Engine,
    StoredThread,
    ThreadNotFound,
    files_of_step,
    find_thread,
    read_thread,
)
from workflow_execute.transcript import Turn, pending_questions, read_records
from workflow_protocol import Question
from workflow_register import find_home, store_path

MOST_SHOWN = 20
"""Of the paths that a step changed."""


def show(
    output: Output,
    thread: str,
    *,
    turns: bool,
    full: bool,
    roles: Sequence[str],
    steps: Sequence[range],
    requests: bool,
) -> int:
    """Print a thread: how it stands, its steps, and with `turns` all that was recorded.

    Args:
        full: shorten nothing.
        roles: tell the turns of these roles alone.
        steps: tell these steps alone, counted from 1.
        requests: tell also what the models were told between their replies.
    """
    if not store_path(find_home()).exists():
        raise ThreadNotFound(thread)

    async def main() -> None:
        async with open_existing(find_home()) as store:
            found = await read_thread(store, await find_thread(store, thread))
            records = await read_records(store, found)
            shown = _Shown(
                thread=found,
                state=await _engine(store).state(found),
                questions=pending_questions(records[-1]),
                used=await read_thread_usage(store, found, records),
                unconfined=commands_without_sandbox(records),
                changed=await _read_changed(store, found),
            )
            if turns or full or roles or steps or requests:
                from uwf.commands._transcript import select_turns, tell

                transcript = await tell(output, store, found, records, requests=requests)
                shown.turns = select_turns(transcript, roles, steps)
        traceback = f"\n\n{found.status.traceback.rstrip()}" if output.traceback else ""
        told = None
        if shown.turns is not None and not output.json:
            told = TranscriptLines(
                cut=None if full else Cut(),
                children=children_words(shown.used),
                has_requests=requests,
            )
        output.data(_as_data(shown), [*_as_text(shown, told, output.width), traceback])

    run_async(main)
    return 0


@dataclass(kw_only=True)
class _Shown:
    """What is shown of a thread."""

    thread: StoredThread
    state: str
    questions: Mapping[str, Question]
    used: ThreadUsage
    unconfined: str | None
    changed: Sequence[Sequence[ShownChange]]
    """What each step changed in the workspace."""
    turns: Sequence[Turn] | None = None
    """Its turns with all that is recorded, if that is asked for."""


async def _read_changed(store: Store, found: StoredThread) -> list[list[ShownChange]]:
    """What each step changed; nothing is read of a thread without versions."""
    if not any(step.files for step in found.steps):
        return [[] for _ in found.steps]
    around = [await files_of_step(store, found, number) for number in range(len(found.steps))]
    return [await read_changes(store, each, diffs=False, most=MOST_SHOWN) for each in around]


def _indented(words: Sequence[Styled | str]) -> list[Styled | str]:
    """Lines of their own below a step."""
    return ["  ", *(f"{each}  " if each == "\n" else each for each in words)]


def _engine(store: Store) -> Engine:
    return Engine(store, locks=find_home() / "locks")


Record = dict[str, object]


def _as_data(shown: _Shown) -> Record:
    thread, state, used = shown.thread, shown.state, shown.used
    steps: list[Record] = [
        {
            "role": step.record.role,
            "value": msgspec.Raw(step.value if step.failure is None else b"null"),
            "failure": step.failure,
            "at_ms": step.record.at_ms,
            "elapsed_ms": step.record.elapsed_ms,
            "usage": step.record.usage,
            "hash": step.hash,
            "child_threads": step.record.child_threads,
            "artifacts": [
                {"name": each.name, "value": msgspec.Raw(each.json.encode())}
                for each in step.record.artifacts
            ],
            "changes": [
                {"path": each.path, "kind": each.kind, "added": each.added, "deleted": each.deleted}
                for each in changed
            ],
        }
        for step, changed in zip(thread.steps, shown.changed, strict=True)
    ]
    whole: Record = {
        "thread": thread.thread_id,
        "origin": thread.origin,
        "parent": thread.parent,
        "workflow": thread.start.workflow,
        "bundle": thread.start.bundle,
        "state": state,
        "return_code": thread.status.return_code,
        "summary": thread.status.summary,
        "error": thread.status.error or None,
        "raised_in": thread.status.origin or None,
        "traceback": thread.status.traceback or None,
        "limit": thread.status.limit or None,
        "role": thread.status.place or None,
        "questions": [
            {"key": key, "text": asked.text, "details": asked.details}
            for key, asked in shown.questions.items()
        ],
        "prompt": thread.prompt,
        "run_options": list(thread.status.run_options),
        "workspace": thread.start.workspace,
        "started_at_ms": thread.start.at_ms,
        "commands_without_sandbox": shown.unconfined,
        "usage": used.usage,
        "cost": cost_of(used),
        "tree": None
        if used.tree is None
        else {
            "usage": used.tree.usage,
            "cost": cost_of(used.tree),
            "children": [
                {
                    "thread": each.thread_id,
                    "workflow": each.workflow,
                    "usage": each.own.usage,
                    "cost": cost_of(each.own),
                }
                for each in used.children
            ],
        },
        "steps": steps,
    }
    if shown.turns is not None:
        whole["turns"] = shown.turns
    return whole


def _as_text(shown: _Shown, told: TranscriptLines | None, width: int | None) -> list[Styled | str]:
    """How the thread stands, and its steps or, with `told`, its turns."""
    words = head_text(
        shown.thread,
        shown.state,
        shown.used,
        unconfined=shown.unconfined,
        questions=shown.questions,
        width=width,
    )
    if told is None or shown.turns is None:
        for number, step in enumerate(shown.thread.steps):
            words += ["\n\n", *step_text(number, step, width)]
            if shown.changed[number]:
                words += ["\n", *_indented(summary_of(shown.changed[number], MOST_SHOWN))]
        return words
    for turn in shown.turns:
        words += ["\n\n", *lay_out(told.turn(turn), width)]
    return words
