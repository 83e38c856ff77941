"""`thread export` and `thread import`: a thread as one file."""

from __future__ import annotations

import sys
from pathlib import Path

from uwf._errors import UsageError
from uwf._store import open_existing
from uwf.commands._hints import resume_command
from uwf.terminal._loop import run_async
from uwf.terminal._output import Output
from workflow_cas import open_store
from workflow_execute import (
    ImportReport,
    ThreadFileReport,
    ThreadNotFound,
    export_thread,
    find_thread,
    import_thread,
    read_thread,
)
from workflow_register import configured_secrets, find_home, store_path


def export(output: Output, thread: str, *, to: Path | None, with_secrets: bool) -> int:
    """Write a thread into a file, or to standard output where that is no terminal."""
    home = find_home()
    if not store_path(home).exists():
        raise ThreadNotFound(thread)
    if to is None and output.json:
        raise UsageError("standard output can't hold both JSON and the file; name a file with --to")
    if to is None and output.width is not None:
        raise UsageError(
            "a thread file is not text; name a file with --to, or redirect the output: "
            f"`uwf thread export {thread} --to {thread}.uwf`"
        )
    secrets = {} if with_secrets else configured_secrets(home)

    async def main() -> ThreadFileReport:
        async with open_existing(home) as store:
            thread_id = await find_thread(store, thread)
            return await export_thread(
                store,
                thread_id,
                to if to is not None else sys.stdout.buffer,
                secrets=secrets,
                with_secrets=with_secrets,
            )

    report = run_async(main)
    children = len(report.threads) - 1
    below = f" with {children} child threads" if children else ""
    text = f"{report.thread_id}{below}: {report.objects} objects, {report.bytes} bytes"
    if to is not None:
        output.data({"file": str(to), **_shown(report)}, f"{to}: {text}")
    keys = (
        "Keys were not looked for, so it may hold some."
        if with_secrets
        else "It holds no configuration, no keys and no files of the workspace."
    )
    output.say(
        "The file holds the task, all replies and tool results, and the code of the workflow. "
        + keys
    )
    return 0


def import_(output: Output, file: Path) -> int:
    """Take a thread out of a file into the store."""
    home = find_home()
    home.mkdir(parents=True, exist_ok=True)

    async def main() -> tuple[ImportReport, bool]:
        async with open_store(store_path(home)) as store:
            done = await import_thread(store, file)
            status = (await read_thread(store, done.thread_id)).status
            return done, status.state == "completed"

    done, is_completed = run_async(main)
    children = len(done.new) + len(done.known) - 1
    below = f" with {children} child threads" if children else ""
    said = f"{done.thread_id}{below} is imported" if done.new else (
        f"{done.thread_id}{below} is here already, the same"
    )  # fmt: skip
    output.data(
        {
            "thread": done.thread_id,
            "new": done.new,
            "known": done.known,
            "objects": done.objects,
            "bytes": done.bytes,
            "bundle": done.has_bundle,
        },
        said,
    )
    if done.has_bundle:
        output.say(
            "The file brings the code of its workflow, which `uwf thread resume` and "
            "`uwf thread replay` run; use them only if you trust where it comes from."
        )
    if not is_completed:
        output.say(f"To continue, in a folder of this machine: "
                   f"`{resume_command(done.thread_id)} --workspace DIR`")  # fmt: skip
    return 0


def _shown(report: ThreadFileReport) -> dict[str, object]:
    return {
        "thread": report.thread_id,
        "threads": report.threads,
        "objects": report.objects,
        "bytes": report.bytes,
    }
