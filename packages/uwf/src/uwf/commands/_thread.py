"""What can be done with a thread that exists: `thread fork`, `replay`, `cancel` and so on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from anyio import to_thread

from uwf._errors import Failed, UsageError
from uwf._overrides import serve_recorded
from uwf._settings import kept_files
from uwf.commands._detach import remove_logs
from uwf.commands._hints import resume_command
from uwf.commands._run import (
    check_workspace,
    import_workflow,
    input_words,
    read_prompt,
    store_bundle,
    workflow_of,
)
from uwf.commands._versions import naming_changes, tell_changes
from uwf.commands._workflows import open_bundle
from uwf.terminal._ask import is_about_call, read_arguments
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output
from uwf.terminal._view import shorten
from workflow_cas import Store, open_store
from workflow_execute import (
    Engine,
    Replay,
    ReplayedRequest,
    ThreadNotFound,
    find_thread,
    read_lineage,
    read_thread,
    read_tree,
)
from workflow_protocol import Answer, ThreadId
from workflow_register import find_home, store_path

_Work = Callable[[Engine, ThreadId], Awaitable[int]]


def fork(
    output: Output,
    thread: str,
    *,
    at_step: int | None,
    prompt: str | None,
    workspace: Path | None,
    bundle: Path | None,
) -> int:
    """Make a thread that shares the first steps of another, and print its id."""
    other = open_bundle(bundle) if bundle is not None else None
    check_workspace(workspace)
    task = read_prompt(prompt) if prompt is not None else None

    async def work(engine: Engine, thread_id: ThreadId) -> int:
        bundle_hash, workflow, given = None, None, task
        if other is not None:
            workflow = import_workflow(other)
            bundle_hash = await store_bundle(engine.store, other)
        elif task is not None:
            stored = await read_thread(engine.store, thread_id)
            if stored.start.bundle is not None:  # else only a resume from Python knows it
                workflow, _ = await workflow_of(engine.store, stored)
        if workflow is not None and task is not None:
            given = await to_thread.run_sync(input_words, workflow, task)
        fork_id = await engine.fork(
            thread_id,
            at_step=at_step,
            prompt=given,
            workflow=workflow,
            workspace=workspace,
            bundle=bundle_hash,
            name=Path(other.manifest.entry).stem if other else None,
        )
        folder = (await read_thread(engine.store, fork_id)).workspace
        data = {"thread": fork_id, "origin": thread_id, "workspace": str(folder)}
        output.data(data, fork_id)
        output.say(f"It works in {folder}")
        output.say(f"To run it: `uwf thread resume {fork_id}`")
        return 0

    return _with_thread(thread, work)


def replay(output: Output, thread: str) -> int:
    """Carry a thread out again from its records, offline, and compare everything."""

    async def work(engine: Engine, thread_id: ThreadId) -> int:
        done = await _replay(output, engine, thread_id)
        output.data(
            {
                "thread": thread_id,
                "steps": done.steps,
                "effects": done.effects,
                "requests": done.requests,
            },
            f"identical: {done.steps} steps, {done.effects} recorded results, "
            f"{done.requests} requests",
        )
        return 0

    return _with_thread(thread, work)


def request(output: Output, thread: str, number: int) -> int:
    """Print the exact bytes of a thread's n-th request to a model, the first being 1."""
    found: list[ReplayedRequest] = []
    count = 0

    def keep(each: ReplayedRequest) -> None:
        nonlocal count
        count += 1
        if count == number:
            found.append(each)

    async def work(engine: Engine, thread_id: ThreadId) -> int:
        await _replay(output, engine, thread_id, keep)
        if not found:
            raise UsageError(
                f"thread {thread_id} has {count} requests; there is no request {number}"
            )
        (only,) = found
        if output.json:
            text = only.data.decode(errors="replace")
            output.record({"step": only.step, "key": only.key, "request": text})
        else:
            output.raw(only.data)
        return 0

    return _with_thread(thread, work)


def pause(output: Output, thread: str) -> int:
    """Suspend a thread, whichever process runs it."""

    async def work(engine: Engine, thread_id: ThreadId) -> int:
        await engine.pause(thread_id)
        output.data({"thread": thread_id, "state": "suspended"}, f"{thread_id} is paused")
        return 0

    return _with_thread(thread, work)


def cancel(output: Output, thread: str) -> int:
    """End a thread as cancelled, whichever process runs it."""

    async def work(engine: Engine, thread_id: ThreadId) -> int:
        await engine.cancel(thread_id)
        output.data({"thread": thread_id, "state": "cancelled"}, f"{thread_id} is cancelled")
        return 0

    return _with_thread(thread, work)


def delete(output: Output, thread: str, *, assume_yes: bool) -> int:
    """Delete a thread and all that it started, if the person wants that."""

    async def work(engine: Engine, thread_id: ThreadId) -> int:
        if not assume_yes and not await _confirm_deletion(output, engine.store, thread_id):
            raise Failed(1, "nothing was deleted")
        deleted = await engine.delete(thread_id)
        remove_logs(deleted)
        children = len(deleted) - 1
        below = f", and its {children} child threads" if children else ""
        output.data({"thread": thread_id, "deleted": deleted}, f"{thread_id} is deleted{below}")
        output.say("To free the space: `uwf cas gc`")
        return 0

    return _with_thread(thread, work)


async def _confirm_deletion(output: Output, store: Store, thread_id: ThreadId) -> bool:
    """Ask whether a thread shall be deleted.

    Raises:
        UsageError: there is nobody to ask.
    """
    if sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            f"thread {thread_id} would be deleted for good; add --yes to delete it without asking"
        )
    tree = await read_tree(store, thread_id)
    children = sum(1 for _ in tree.walk()) - 1
    below = f" and its {children} child threads" if children else ""
    started = tree.thread.start
    output.say(f"thread {thread_id}, {started.workflow}: {shorten(tree.thread.prompt, 60)}")
    output.say(f"Delete it{below} for good? [y/N]")
    reply = await to_thread.run_sync(sys.stdin.buffer.readline, abandon_on_cancel=True)
    return reply.strip().lower() in {b"y", b"yes"}


def answer(
    output: Output,
    thread: str,
    key: str | None,
    *,
    approved: bool,
    arguments: str | None,
    text: str,
) -> int:
    """Answer a question of a thread, also one that a terminal shows at this moment."""
    instead = _arguments(arguments)
    given = Answer(approved=approved, text=text, arguments=instead)

    async def work(engine: Engine, thread_id: ThreadId) -> int:
        if instead:
            await _check_about_call(engine, thread_id, key)
        left = await engine.answer(thread_id, key, given)
        output.data(
            {"thread": thread_id, "approved": approved, "questions_left": left},
            "approved" if approved else "denied",
        )
        top = await _root_thread(engine.store, thread_id)
        if left:
            output.say(f"{left} more questions: `uwf show {thread_id}`")
        elif await engine.is_running(top):
            output.say(f"Thread {top} is running and takes the answer. If it has stopped by then: "
                       f"`{resume_command(top)}`")  # fmt: skip
        else:
            output.say(f"To continue: `{resume_command(top)}`")
        return 0

    return _with_thread(thread, work)


def _arguments(given: str | None) -> str:
    """The arguments to run a call with, where some are given.

    Raises:
        UsageError: they are none.
    """
    if given is None:
        return ""
    if (arguments := read_arguments(given)) is None:
        raise UsageError(f"--arguments takes one JSON object, not {given[:100]!r}")
    return arguments


async def _check_about_call(engine: Engine, thread_id: ThreadId, key: str | None) -> None:
    """Refuse arguments for a question that has no call.

    Raises:
        UsageError: it has none.
    """
    for each in await engine.questions(thread_id):
        if key in {None, each} and not is_about_call(each):
            raise UsageError(
                f"the question {each!r} is not about a tool call, so it takes no --arguments; "
                "answer with --approve or --deny"
            )


async def _root_thread(store: Store, thread_id: ThreadId) -> ThreadId:
    """The thread that waits for this one, however far above; it alone takes all below it up."""
    above = await read_lineage(store, await read_thread(store, thread_id))
    return above[0].thread_id if above else thread_id


async def _replay(
    output: Output,
    engine: Engine,
    thread_id: ThreadId,
    on_request: Callable[[ReplayedRequest], None] | None = None,
) -> Replay:
    """Replay a thread, each turn with the models that were given for its run."""
    thread = await read_thread(engine.store, thread_id)
    workflow, environment = await workflow_of(engine.store, thread)
    with naming_changes(tell_changes(output, environment, "the thread began")):
        return await engine.replay(
            workflow, thread_id, on_request=on_request, set_options=serve_recorded
        )


def _with_thread(thread: str, work: _Work) -> int:
    home = find_home()
    if not store_path(home).exists():
        raise ThreadNotFound(thread)

    async def main() -> int:
        async with open_store(store_path(home)) as store:
            engine = Engine(store, locks=home / "locks", **kept_files(home))
            return await work(engine, await find_thread(store, thread))

    with contextlib.redirect_stdout(sys.stderr):  # a replay runs the roles, which may print
        return run_async(main)
