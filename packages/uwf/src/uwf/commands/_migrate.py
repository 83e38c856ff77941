"""`store migrate|reindex`: carries an older store over, and mends the index of threads."""

from __future__ import annotations

from uwf.terminal._loop import run_async
from uwf.terminal._output import Output
from workflow_cas import MigrationReport, migrate_store, open_store
from workflow_execute import repair_summaries, thread_entries
from workflow_register import find_home, store_path


def migrate(output: Output, *, dry_run: bool) -> int:
    """Carry the store over to the present format, or with `dry_run` only see whether it works."""
    path = store_path(find_home())
    if not path.exists():
        output.say(f"nothing is stored in {find_home()}")
        return 0

    async def main() -> None:
        report = await migrate_store(path, thread_entries, dry_run=dry_run)
        output.data(
            {
                "from_format": report.from_format,
                "to_format": report.to_format,
                "threads": report.entries,
                "problems": len(report.problems),
                "kept": None if report.kept is None else str(report.kept),
                "dry_run": dry_run,
            },
            _words(report, dry_run=dry_run),
        )
        if report.problems:
            output.say(
                f"The store has {len(report.problems)} problems, as it had before: "
                "`uwf cas verify` lists them"
            )
        if report.kept is not None:
            output.say(f"The old file is kept; delete it when you like: {report.kept}")

    run_async(main)
    return 0


def reindex(output: Output) -> int:
    """Compare the index of threads with the threads, and write anew what is wrong in it."""
    path = store_path(find_home())
    if not path.exists():
        output.say(f"nothing is stored in {find_home()}")
        return 0

    async def main() -> None:
        async with open_store(path) as store:
            mended = await repair_summaries(store)
            for thread, fault in mended:
                output.data({"thread": thread, "fault": fault}, f"mended {thread}: {fault}")
            if not mended:
                output.say("the index is right; nothing to do")

    run_async(main)
    return 0


def _words(report: MigrationReport, *, dry_run: bool) -> str:
    if report.from_format == report.to_format:
        return f"the store has format {report.to_format} already; nothing to do"
    done = "can be" if dry_run else "is"
    return (
        f"the store {done} carried over from format {report.from_format} to {report.to_format}: "
        f"{report.entries} threads"
    )
