"""`thread list`: threads in short, found by the store's index."""

from __future__ import annotations

import time
from collections.abc import Sequence

from uwf._store import open_existing
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output, age
from uwf.terminal._style import STATES, Styled, Words
from uwf.terminal._table import Column
from uwf.terminal._view import shorten
from workflow_execute import ShownState, ThreadSummary, read_summaries
from workflow_register import find_home, store_path

_COLUMNS = (
    Column("thread"),
    Column("state"),
    Column("started", align="right"),
    Column("workflow"),
    Column("model"),
    Column("tokens", align="right"),
    Column("cost", align="right"),
    Column("prompt", folds=True),
    Column("end", folds=True),
)


def threads(
    output: Output,
    *,
    state: ShownState | None,
    workflow: str | None,
    tag: str | None,
    since_ms: int | None,
    children: bool,
    limit: int,
) -> int:
    """List the threads that are asked for, newest first.

    Args:
        since_ms: the Unix milliseconds from which on they were started.
        children: list also those that another thread started.
        limit: how many at most.
    """
    home = find_home()

    async def main() -> None:
        found: list[ThreadSummary] = []
        if store_path(home).exists():
            async with open_existing(home) as store:
                found = await read_summaries(
                    store,
                    state=state,
                    workflow=workflow,
                    tag=tag,
                    top=not children,
                    since_ms=since_ms,
                    limit=limit + 1,  # one more, to know whether there is one
                    locks=home / "locks",
                )
        now_ms = time.time_ns() // 1_000_000
        output.table(_COLUMNS, [(_as_data(each), _row(each, now_ms)) for each in found[:limit]])
        if len(found) > limit:
            output.say(f"these are the newest {limit}; --limit N lists more")
        elif not found and any(each is not None for each in (state, workflow, tag, since_ms)):
            output.say("no thread is like this; `uwf thread list` lists the newest ones")
        elif not found:
            output.say("there is no thread yet; start one with `uwf run`")

    run_async(main)
    return 0


def _as_data(thread: ThreadSummary) -> dict[str, object]:
    return {
        "thread": thread.thread_id,
        "workflow": thread.workflow,
        "state": thread.state,
        "started_at_ms": thread.started_ms,
        "updated_at_ms": thread.updated_ms,
        "steps": thread.steps,
        "prompt": thread.prompt,
        "cause": thread.cause or None,
        "limit": thread.limit or None,
        "role": thread.role or None,
        "return_code": thread.return_code,
        "summary": thread.summary,
        "error": thread.error or None,
        "models": thread.models,
        "usage": thread.usage,
        "tokens": thread.tokens,
        "cost": thread.cost_micros / 1_000_000 if thread.cost_micros else None,
        "children": thread.children,
        "parent": thread.parent,
        "origin": thread.origin,
        "tags": thread.tags,
    }


def _row(thread: ThreadSummary, now_ms: int) -> Sequence[Words]:
    return [
        thread.thread_id,
        Styled(thread.state, STATES[thread.state]),
        Styled(age(thread.started_ms, now_ms), "dim"),
        thread.workflow,
        ", ".join(thread.models),
        f"{thread.tokens}" if thread.tokens else "",
        f"{thread.cost_micros / 1_000_000:.4f}" if thread.cost_micros else "",
        shorten(thread.prompt),
        shorten(_end(thread)),
    ]


def _end(thread: ThreadSummary) -> str:
    """How it ended, or what it waits for."""
    code = f"return code {thread.return_code}: " if _ended_otherwise(thread) else ""
    error = f"{thread.error}: " if thread.error else ""
    return f"{code}{error}{thread.summary}"


def _ended_otherwise(thread: ThreadSummary) -> bool:
    return thread.state == "completed" and bool(thread.return_code)
