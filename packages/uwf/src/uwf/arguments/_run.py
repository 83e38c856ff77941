"""`run` and `thread resume`: what starts a thread and what goes on with it."""

from __future__ import annotations

import argparse
from pathlib import Path

from uwf.arguments._group import CommandGroup
from uwf.arguments._types import LIMITS, limit, model_choice

THREAD_HELP = "the id, the first characters of the id, or `latest`"


def add_run_command(add: CommandGroup) -> None:
    """Add `run`."""
    sub = add(
        "run",
        "_run:run",
        "run a workflow until it ends",
        example="greet 'Say hello to Ada.'",
        exit_codes=True,
    )
    sub.add_argument(
        "workflow", help="a registered name, or the path of an entry script or a bundle"
    )
    sub.add_argument(
        "prompt",
        help="the task, or JSON where the workflow has an input type (`@FILE`: from a file). "
        "`-` reads it from standard input",
    )
    sub.add_argument(
        "--workspace", type=Path, metavar="DIR", help="the folder to work in (default: this folder)"
    )
    sub.add_argument(
        "--tag",
        dest="tags",
        action="append",
        default=[],
        metavar="TAG",
        help="a word to find the thread by: `uwf thread list --tag TAG` (may be given several "
        "times)",
    )
    _add_run_options(sub)


def add_resume_command(add: CommandGroup) -> None:
    """Add `resume`."""
    sub = add(
        "resume",
        "_run:resume",
        "continue a thread that is not completed",
        example="latest",
        exit_codes=True,
    )
    sub.add_argument("thread", nargs="?", default="latest", help=THREAD_HELP)
    sub.add_argument(
        "--fresh", action="store_true", help="start the unfinished turn again from its beginning"
    )
    sub.add_argument(
        "--restore-files",
        action="store_true",
        help="first put the files of the workspace back as the thread has left them; how they are "
        "now is kept as a version",
    )
    add_new_place(sub)
    _add_run_options(sub)


def _add_run_options(sub: argparse.ArgumentParser) -> None:
    """Add how one run is made: detached, or not as workflow.yaml says."""
    sub.add_argument(
        "--detach",
        action="store_true",
        help="print the thread's id and return; the run goes on in a process of its own",
    )
    sub.add_argument(
        "--model",
        dest="models",
        action="append",
        type=model_choice,
        metavar="[SCENE=]PROVIDER/MODEL",
        help="the model of all roles, or of those that use a scene, in this run",
    )
    sub.add_argument(
        "--limit",
        dest="limits",
        action="append",
        type=limit,
        metavar="NAME=VALUE",
        help=f"a limit of this run: {', '.join(LIMITS)}. The value `none` lifts it",
    )


def add_new_place(sub: argparse.ArgumentParser) -> None:
    """Add what a thread may go on with instead of its own: another folder, other code."""
    sub.add_argument("--workspace", type=Path, metavar="DIR", help="continue in another folder")
    sub.add_argument(
        "--bundle", type=Path, metavar="PATH", help="continue with another bundle or entry script"
    )
