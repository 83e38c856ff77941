"""`thread compare`: where two threads part, and their steps side by side."""

from __future__ import annotations

import contextlib
import sys

import msgspec

from uwf._overrides import serve_recorded
from uwf._store import open_existing
from uwf.commands._run import workflow_of
from uwf.terminal._comparison import comparison_lines
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output
from uwf.terminal._transcript import lay_out
from workflow_cas import Store
from workflow_execute import Engine, ReplayedRequest, ThreadNotFound, find_thread, read_thread
from workflow_execute.transcript import (
    RecordedThread,
    RequestPlace,
    ThreadComparison,
    add_request_bytes,
    compare_threads,
    read_records,
)
from workflow_register import find_home, store_path


def compare(output: Output, thread: str, other: str) -> int:
    """Print the first request in which two threads differ, and their steps side by side."""
    if not store_path(find_home()).exists():
        raise ThreadNotFound(thread)

    async def main() -> None:
        async with open_existing(find_home()) as store:
            a, b = [await _read(store, each) for each in (thread, other)]
            comparison = await _with_bytes(store, compare_threads(a, b), a, b)
        lines = comparison_lines(comparison, a.thread, b.thread)
        output.data(comparison, lay_out(lines, output.width))

    run_async(main)
    return 0


async def _read(store: Store, prefix: str) -> RecordedThread:
    thread = await read_thread(store, await find_thread(store, prefix))
    return RecordedThread(thread, await read_records(store, thread))


async def _with_bytes(
    store: Store, comparison: ThreadComparison, a: RecordedThread, b: RecordedThread
) -> ThreadComparison:
    """Add where the requests differ; where they can't be rebuilt, why not."""
    request = comparison.request
    if request is None or request.a is None or request.b is None:
        return comparison
    sides = [await _rebuilt(store, a, request.a), await _rebuilt(store, b, request.b)]
    one, two = sides
    if isinstance(one, bytes) and isinstance(two, bytes):
        return add_request_bytes(comparison, one, two)
    reasons = [
        f"the bytes of request {place.number} of {each.thread.thread_id}: {why}"
        for each, place, why in ((a, request.a, one), (b, request.b, two))
        if isinstance(why, str)
    ]
    return msgspec.structs.replace(comparison, not_compared=(*comparison.not_compared, *reasons))


async def _rebuilt(store: Store, recorded: RecordedThread, place: RequestPlace) -> bytes | str:
    """The bytes of a request, or why they can't be had."""
    thread = recorded.thread
    if place.step <= thread.own_from:
        return f"step {place.step} belongs to the thread that it was forked from"
    found: dict[tuple[int, str], bytes] = {}
    wanted = (place.step - 1, place.key)

    def keep(request: ReplayedRequest) -> None:
        if (request.step, request.key) == wanted:
            found[wanted] = request.data

    try:
        with contextlib.redirect_stdout(sys.stderr):  # the roles may print
            workflow, _ = await workflow_of(store, thread)
            await Engine(store).replay(
                workflow, thread.thread_id, on_request=keep, set_options=serve_recorded
            )
    except Exception as error:  # noqa: BLE001 - the workflow's code may raise anything
        if wanted not in found:
            return f"the workflow could not be run again: {error or type(error).__name__}"
    return found.get(wanted, "the workflow does not ask for it any more")
