"""`show` and `thread list`: what happened, read from the store."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import msgspec

from uwf._store import open_existing
from uwf.commands._sandbox_use import commands_without_sandbox
from uwf.commands._thread_usage import ThreadUsage, read_thread_usage
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output, age, pretty
from uwf.terminal._style import STATES, Styled, Words
from uwf.terminal._table import Column
from uwf.terminal._view import shorten
from workflow_cas import Store
from workflow_execute import (
    SUPERVISOR_KEYS,
    Engine,
    StoredStep,
    StoredThread,
    ThreadNotFound,
    find_thread,
    list_threads,
    read_thread,
    read_turn,
)
from workflow_protocol import Hash, Question, ThreadId, Usage, WorkflowError
from workflow_register import find_home, store_path


def show(output: Output, thread: str, *, turns: bool) -> int:
    """Print a thread: how it stands, its steps, and with `turns` all that was recorded."""
    if not store_path(find_home()).exists():
        raise ThreadNotFound(thread)

    async def main() -> None:
        async with open_existing(find_home()) as store:
            found = await read_thread(store, await find_thread(store, thread))
            engine = _engine(store)
            state = await engine.state(found)
            questions = await engine.questions(found.thread_id)
            records = (
                [await _turn_records(store, step.turn) for step in found.steps] if turns else []
            )
            unfinished = await _turn_records(store, found.turn) if turns else []
            used = await read_thread_usage(store, found)
            unconfined = await commands_without_sandbox(store, found)
        output.data(
            _as_data(
                found, state, questions, used, unconfined, [*records, unfinished] if turns else None
            ),
            _as_text(
                found, state, questions, used, unconfined, [*records, unfinished] if turns else None
            )
            + (f"\n\n{found.status.traceback.rstrip()}" if output.traceback else ""),
        )

    run_async(main)
    return 0


def threads(output: Output) -> int:
    """List the threads, newest first; one that can't be read does not hide the others."""

    async def main() -> None:
        ids: list[ThreadId] = []
        if store_path(find_home()).exists():
            async with open_existing(find_home()) as store:
                ids = await list_threads(store)
                now_ms = time.time_ns() // 1_000_000
                rows = [await _list_row(store, each, now_ms) for each in reversed(ids)]
                output.table(_LIST_COLUMNS, rows)
        if not ids:
            output.say("there is no thread yet; start one with `uwf run`")

    run_async(main)
    return 0


_LIST_COLUMNS = (
    Column("thread"),
    Column("state"),
    Column("started", align="right"),
    Column("workflow"),
    Column("prompt", folds=True),
)


async def _list_row(
    store: Store, thread_id: ThreadId, now_ms: int
) -> tuple[object, Sequence[Words]]:
    try:
        thread = await read_thread(store, thread_id)
        state = await _engine(store).state(thread)
    except WorkflowError as error:
        reason = shorten(str(error), 60)
        return (
            {"thread": thread_id, "state": "corrupt", "reason": str(error)},
            [thread_id, Styled("corrupt", STATES["corrupt"]), "", "", reason],
        )
    return (
        {
            "thread": thread_id,
            "workflow": thread.start.workflow,
            "state": state,
            "started_at_ms": thread.start.at_ms,
            "steps": len(thread.steps),
            "prompt": thread.prompt,
        },
        [
            thread_id,
            Styled(state, STATES[state]),
            Styled(age(thread.start.at_ms, now_ms), "dim"),
            thread.start.workflow,
            shorten(thread.prompt),
        ],
    )


def _engine(store: Store) -> Engine:
    return Engine(store, locks=find_home() / "locks")


Record = dict[str, object]


async def _turn_records(store: Store, last: Hash | None) -> list[Record]:
    """The records of one turn, as data."""
    return [
        {
            "key": entry.record.key,
            "kind": entry.record.kind,
            "effect": entry.record.effect,
            "at_ms": entry.record.at_ms,
            "result": None if entry.data is None else _json_or_text(entry.data),
        }
        for entry in await read_turn(store, last)
    ]


def _json_or_text(data: bytes) -> object:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return data.decode("utf-8", "replace")


def _as_data(
    thread: StoredThread,
    state: str,
    questions: Mapping[str, Question],
    used: ThreadUsage,
    unconfined: str | None,
    records: list[list[Record]] | None,
) -> Record:
    steps: list[Record] = []
    for number, step in enumerate(thread.steps):
        data: Record = {
            "role": step.record.role,
            "value": msgspec.Raw(step.value),
            "at_ms": step.record.at_ms,
            "elapsed_ms": step.record.elapsed_ms,
            "usage": step.record.usage,
            "hash": step.hash,
            "child_threads": step.record.child_threads,
        }
        if records is not None:
            data["turn"] = records[number]
            data["skipped_calls"] = [_skipped(each) for each in step.record.skipped_calls]
        steps.append(data)
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
            for key, asked in questions.items()
        ],
        "prompt": thread.prompt,
        "workspace": thread.start.workspace,
        "started_at_ms": thread.start.at_ms,
        "commands_without_sandbox": unconfined,
        "usage": used.usage,
        "cost": _cost(used),
        "tree": None
        if used.tree is None
        else {
            "usage": used.tree.usage,
            "cost": _cost(used.tree),
            "children": [
                {
                    "thread": each.thread_id,
                    "workflow": each.workflow,
                    "usage": each.own.usage,
                    "cost": _cost(each.own),
                }
                for each in used.children
            ],
        },
        "steps": steps,
    }
    if records is not None:
        whole["unfinished_turn"] = records[-1]
    return whole


def _as_text(
    thread: StoredThread,
    state: str,
    questions: Mapping[str, Question],
    used: ThreadUsage,
    unconfined: str | None,
    records: list[list[Record]] | None,
) -> str:
    status = thread.status
    code = "" if status.return_code is None else f" (return code {status.return_code})"
    lines = [
        f"thread     {thread.thread_id}",
        f"workflow   {thread.start.workflow}",
        f"state      {state}{code}",
        f"prompt     {thread.prompt}",
        f"workspace  {thread.start.workspace}",
        f"tokens     {_tokens(used.usage)}",
    ]
    if unconfined is not None:
        lines.append(f"sandbox    commands ran without one: {unconfined}")
    if (cost := _cost(used)) is not None:
        lines.append(f"cost       {cost:.4f}")
    lines += _tree_lines(used)
    if thread.origin is not None:
        lines.append(f"origin     {thread.origin}, the first {thread.own_from} steps")
    if thread.parent is not None:
        lines.append(f"parent     {thread.parent}")
    if status.summary:
        kind = f"{status.error}: " if status.error else ""
        place = f" (role {status.place})" if status.place and state == "failed" else ""
        lines.append(f"summary    {kind}{status.summary}{place}")
    if status.origin:
        lines.append(f"raised in  {status.origin}")
    if status.limit:
        lines.append(f"limit      limits.{status.limit}")
    for key, asked in questions.items():
        lines += ["", f"question   {key}: {asked.text}"]
        lines += [f"           {line}" for line in asked.details.splitlines()]
    for number, step in enumerate(thread.steps):
        lines += ["", *_step_lines(number, step)]
        if records is not None:
            lines += _turn_lines(records[number])
            lines += map(_skipped_line, step.record.skipped_calls)
    if records is not None and records[-1] and len(records) > len(thread.steps):
        watched = all(str(each["key"]).startswith(SUPERVISOR_KEYS) for each in records[-1])
        lines += ["", "supervisor" if watched else "unfinished turn", *_turn_lines(records[-1])]
    return "\n".join(lines)


def _tree_lines(used: ThreadUsage) -> list[str]:
    """What the thread and those below it took together, and each of these by itself."""
    if used.tree is None:
        return []
    parts = [("  in all", "its child threads included", used.tree)]
    parts += [("  child", f"{each.thread_id} {each.workflow}", each.own) for each in used.children]
    return [
        f"{label:<10} {_tokens(part.usage)}{_cost_words(part)}, {what}"
        for label, what, part in parts
    ]


def _cost_words(used: ThreadUsage) -> str:
    cost = _cost(used)
    return "" if cost is None else f", cost {cost:.4f}"


def _skipped_line(call: str) -> str:
    key, _, name = call.partition(" ")
    return f"    {key:<10} {name} (skipped: it came after the result)"


def _skipped(call: str) -> Record:
    """A call that was not made, by its key and the tool's name."""
    key, _, name = call.partition(" ")
    return {"key": key, "name": name}


def _step_lines(number: int, step: StoredStep) -> list[str]:
    record = step.record
    value = pretty(step.value).replace("\n", "\n  ")
    lines = [f"{number + 1}. {record.role}  ({record.elapsed_ms / 1000:.1f} s)", f"  {value}"]
    if step.content.encode() != step.value:
        lines.append(f"  {step.content}")
    lines += [f"  child thread {child_id}" for child_id in record.child_threads]
    return lines


def _turn_lines(records: list[Record]) -> list[str]:
    return [f"    {each['key']:<10} {shorten(_result_text(each), 150)}" for each in records]


def _result_text(record: Record) -> str:
    if record["kind"] in {"question", "answer"}:
        return f"{record['kind']} {msgspec.json.encode(record['result']).decode()}"
    if record["result"] is None and record["kind"] == "intent":
        return "(started, outcome unknown)"
    if record["kind"] == "lost":
        return "(stopped before its reply; counted with the largest possible cost)"
    return msgspec.json.encode(record["result"]).decode()


def _tokens(usage: Usage) -> str:
    return (
        f"{usage.input_tokens} in ({usage.cached_tokens} cached), "
        f"{usage.output_tokens} out, {usage.calls} model calls"
    )


def _cost(used: ThreadUsage) -> float | None:
    """What was paid, where the models had prices or the provider said it."""
    return used.micros / 1_000_000 if used.micros else None
