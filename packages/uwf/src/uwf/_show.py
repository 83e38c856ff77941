"""`show` and `threads`: what happened, read from the store."""

from __future__ import annotations

import time
from contextlib import AbstractAsyncContextManager

import anyio
import msgspec

from uwf._output import Output, age, pretty
from uwf._view import shorten
from workflow_cas import Store, open_store
from workflow_execute import (
    Engine,
    StoredStep,
    StoredThread,
    ThreadNotFound,
    find_thread,
    list_threads,
    read_thread,
    read_turn,
)
from workflow_protocol import Hash, ThreadId, Usage, WorkflowError
from workflow_register import find_home, store_path


def show(output: Output, prefix: str, *, turns: bool) -> int:
    """Print a thread: how it stands, its steps, and with `turns` all that was recorded."""

    async def main() -> None:
        async with _store() as store:
            thread = await read_thread(store, await find_thread(store, prefix))
            state = await _state(store, thread)
            records = [await _turns(store, step.record.turn) for step in thread.steps]
            unfinished = await _turns(store, thread.turn)
        output.data(
            _as_data(thread, state, records if turns else None),
            _as_text(thread, state, [*records, unfinished] if turns else None),
        )

    anyio.run(main)
    return 0


def threads(output: Output) -> int:
    """List the threads, newest first; one that can't be read does not hide the others."""

    async def main() -> None:
        async with _store() as store:
            ids = await list_threads(store)
            for thread_id in reversed(ids):
                await _list_one(output, store, thread_id)
        if not ids:
            output.say("there is no thread yet; begin with `uwf run`")

    anyio.run(main)
    return 0


def _store() -> AbstractAsyncContextManager[Store]:
    path = store_path(find_home())
    if not path.exists():
        raise ThreadNotFound("latest")
    return open_store(path)


async def _list_one(output: Output, store: Store, thread_id: ThreadId) -> None:
    try:
        thread = await read_thread(store, thread_id)
        state = await _state(store, thread)
    except WorkflowError as error:
        output.data(
            {"thread": thread_id, "state": "corrupt", "reason": str(error)},
            f"{thread_id}  corrupt      {shorten(str(error), 60)}",
        )
        return
    when = age(thread.start.at_ms, time.time_ns() // 1_000_000)
    output.data(
        {
            "thread": thread_id,
            "workflow": thread.start.workflow,
            "state": state,
            "started_at_ms": thread.start.at_ms,
            "steps": len(thread.steps),
            "prompt": thread.prompt,
        },
        f"{thread_id}  {state:<11}  {when:>10}  {thread.start.workflow}: "
        f"{shorten(thread.prompt, 50)}",
    )


async def _state(store: Store, thread: StoredThread) -> str:
    """The recorded state, but `interrupted` where a run left it at `running` and is gone."""
    if thread.status.state != "running":
        return thread.status.state
    engine = Engine(store, locks=find_home() / "locks")
    return "running" if await engine.is_running(thread.thread_id) else "interrupted"


Record = dict[str, object]


async def _turns(store: Store, last: Hash | None) -> list[Record]:
    """The records of one turn, as data."""
    return [
        {
            "key": record.key,
            "effect": record.effect,
            "at_ms": record.at_ms,
            "result": None if data is None else _json_or_text(data),
        }
        for record, data in await read_turn(store, last)
    ]


def _json_or_text(data: bytes) -> object:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError):
        return data.decode("utf-8", "replace")


def _as_data(thread: StoredThread, state: str, records: list[list[Record]] | None) -> Record:
    steps: list[Record] = []
    for number, step in enumerate(thread.steps):
        data: Record = {
            "role": step.record.role,
            "value": msgspec.Raw(step.value),
            "at_ms": step.record.at_ms,
            "elapsed_ms": step.record.elapsed_ms,
            "usage": step.record.usage,
            "hash": step.hash,
        }
        if records is not None:
            data["turn"] = records[number]
        steps.append(data)
    return {
        "thread": thread.thread_id,
        "workflow": thread.start.workflow,
        "bundle": thread.start.bundle,
        "state": state,
        "return_code": thread.status.return_code,
        "summary": thread.status.summary,
        "error": thread.status.error or None,
        "prompt": thread.prompt,
        "workspace": thread.start.workspace,
        "started_at_ms": thread.start.at_ms,
        "usage": _total(thread),
        "steps": steps,
    }


def _as_text(thread: StoredThread, state: str, records: list[list[Record]] | None) -> str:
    status = thread.status
    code = "" if status.return_code is None else f" (return code {status.return_code})"
    usage = _total(thread)
    lines = [
        f"thread     {thread.thread_id}",
        f"workflow   {thread.start.workflow}",
        f"state      {state}{code}",
        f"prompt     {thread.prompt}",
        f"workspace  {thread.start.workspace}",
        f"tokens     {usage.input_tokens} in ({usage.cached_tokens} cached), "
        f"{usage.output_tokens} out, {usage.calls} model calls",
    ]
    if status.summary:
        kind = f"{status.error}: " if status.error else ""
        lines.append(f"summary    {kind}{status.summary}")
    for number, step in enumerate(thread.steps):
        lines += ["", *_step_lines(number, step)]
        if records is not None:
            lines += _turn_lines(records[number])
    if records is not None and records[-1] and len(records) > len(thread.steps):
        lines += ["", "unfinished turn", *_turn_lines(records[-1])]
    return "\n".join(lines)


def _step_lines(number: int, step: StoredStep) -> list[str]:
    record = step.record
    value = pretty(step.value).replace("\n", "\n  ")
    lines = [f"{number + 1}. {record.role}  ({record.elapsed_ms / 1000:.1f} s)", f"  {value}"]
    if step.content.encode() != step.value:
        lines.append(f"  {step.content}")
    return lines


def _turn_lines(records: list[Record]) -> list[str]:
    return [f"    {each['key']:<10} {shorten(_result(each), 150)}" for each in records]


def _result(record: Record) -> str:
    if record["result"] is None:
        return "(started, outcome unknown)"
    return msgspec.json.encode(record["result"]).decode()


def _total(thread: StoredThread) -> Usage:
    return sum((step.record.usage for step in thread.steps), Usage())
