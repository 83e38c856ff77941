"""What to do next with a thread that has stopped."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from workflow_execute import Limits, ThreadResult
from workflow_protocol import ThreadId


def next_steps(
    result: ThreadResult,
    limits: Limits,
    config: Path,
    *,
    entry: Path | None,
    models: Sequence[str] = (),
) -> list[str]:
    """The lines that end a run, with the commands as one would type them.

    Args:
        result: how the run ended.
        limits: what held for it.
        config: where they are set.
        entry: the script or archive that it ran, if it was given by its path.
        models: the options that set its models for this run.
    """
    resume = resume_command(result.thread_id, models=models)
    match result.state:
        case "failed":
            # A script is likely to be changed first, and the thread has the bundle of before.
            again = resume_command(result.thread_id, entry, models=models)
            lines = [f"To continue: `{again}` (--fresh starts the unfinished turn again)"]
            if result.origin:
                lines.append(f"For the traceback: `uwf show {result.thread_id} --traceback`")
            return lines
        case "suspended" if result.cause == "limit":
            return _raise_limit(result.limit, limits, config, resume)
        case "suspended" if result.cause == "question":
            asking = result.waits_for or (result.thread_id,)
            answers = [f"To answer: `uwf thread answer {each} --approve|--deny`" for each in asking]
            return [*answers, f"To continue: `{resume}`"]
        case "suspended" | "cancelled":
            return [f"To continue: `{resume}`"]
        case _:
            return []


def resume_command(
    thread_id: ThreadId | str, entry: Path | None = None, *, models: Sequence[str] = ()
) -> str:
    """The command that goes on with a thread."""
    bundle = ["--bundle", str(entry)] if entry is not None else []
    return shlex.join(["uwf", "thread", "resume", thread_id, *bundle, *models])


def _raise_limit(name: str, limits: Limits, config: Path, resume: str) -> list[str]:
    if name == "prices":
        return [f"Add the price to `limits.prices` in {config}, then continue: `{resume}`"]
    value = getattr(limits, name, None)
    now = f", now {value:g}," if isinstance(value, int | float) else ""
    option = f"--limit {name.removeprefix('max_')}=N"
    return [
        f"Raise `limits.{name}`{now} in {config}, then continue: `{resume}`",
        f"Or raise it for one run: `{resume} {option}`",
    ]
