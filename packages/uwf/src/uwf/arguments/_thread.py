"""`show` and `thread …`: threads, one or many."""

from __future__ import annotations

import argparse
from pathlib import Path

from uwf.arguments._group import CommandGroup
from uwf.arguments._run import THREAD_HELP, add_new_place, add_resume_command
from uwf.arguments._types import count, numbers, since

STATES = ("running", "interrupted", "suspended", "failed", "cancelled", "completed")


def add_show_command(add: CommandGroup) -> None:
    """Add `show`, which is a command and one of `thread`."""
    sub = add(
        "show",
        "_show:show",
        "show the steps, values and cost of a thread",
        example="latest --turns",
    )
    sub.add_argument("thread", nargs="?", default="latest", help=THREAD_HELP)
    sub.add_argument(
        "--turns",
        action="store_true",
        help="show the transcript: replies, tool calls, results, decisions",
    )
    transcript = sub.add_argument_group("transcript (each of these means --turns too)")
    transcript.add_argument("--full", action="store_true", help="shorten nothing")
    transcript.add_argument(
        "--role",
        dest="roles",
        action="append",
        default=[],
        metavar="NAME",
        help="show the turns of this role only (may be given several times)",
    )
    transcript.add_argument(
        "--step",
        dest="steps",
        type=numbers,
        action="append",
        default=[],
        metavar="N[-M]",
        help="show this step only, or the steps N to M (may be given several times)",
    )
    transcript.add_argument(
        "--requests",
        action="store_true",
        help="show what the model was told between its replies. Runs the code of the workflow "
        "again from the records",
    )


def add_thread_commands(above: CommandGroup) -> None:
    """Add `thread` and its commands."""
    add = above.group(
        "thread",
        "work with threads: list, show, resume, follow, join, answer, pause, cancel, delete, fork, "
        "replay, compare, request, export, import",
    )
    _add_list(add)
    add_show_command(add)
    add_resume_command(add)
    sub = _add_for_one(
        add, "follow", "_follow:follow", "show what a thread does until it ends", exit_codes=True
    )
    sub.add_argument("--from-start", action="store_true", help="show all earlier steps first")
    sub = add("join", "_follow:join", "wait until threads end", example="latest", exit_codes=True)
    sub.add_argument("threads", nargs="+", metavar="thread", help=THREAD_HELP)
    _add_answer(add)
    _add_for_one(add, "pause", "_thread:pause", "suspend a running thread now")
    _add_for_one(add, "cancel", "_thread:cancel", "cancel a thread now")
    sub = _add_for_one(add, "delete", "_thread:delete", "delete a thread and its child threads")
    sub.add_argument("--yes", dest="assume_yes", action="store_true", help="delete without asking")
    _add_fork(add)
    _add_for_one(
        add,
        "replay",
        "_thread:replay",
        "run a thread again from its records, without a model, and compare",
    )
    sub = _add_for_one(
        add,
        "compare",
        "_compare:compare",
        "show where two threads differ: the first other request, and step by step",
        example="latest 01K",
    )
    sub.add_argument("other", metavar="other-thread", help="the thread to compare it with")
    sub = _add_for_one(
        add,
        "request",
        "_thread:request",
        "print the exact bytes of a request to the model",
        example="latest 1",
    )
    sub.add_argument("number", type=int, help="the number of the request; the first is 1")
    _add_exchange(add)
    _add_files(add)


def _add_files(add: CommandGroup) -> None:
    step = "counted from 1, as `uwf show` does; one more is the unfinished turn (default: the {})"
    sub = _add_for_one(
        add,
        "changes",
        "_files:changes",
        "show what a step changed in the workspace, as a diff",
        example="latest 2",
    )
    sub.add_argument("step", nargs="?", type=int, help=step.format("whole thread"))
    sub.add_argument("--names", action="store_true", help="only the paths and the count of lines")
    sub = _add_for_one(
        add,
        "files",
        "_files:files",
        "list the files of the workspace as a step left them, or get them back",
        example="latest 2 --to before",
    )
    sub.add_argument("step", nargs="?", type=int, help=step.format("end of the thread"))
    sub.add_argument("--to", type=Path, metavar="DIR", help="put them into this empty folder")
    sub.add_argument(
        "--version",
        dest="given",
        metavar="HASH",
        help="the files of this version instead of those of a step",
    )


def _add_exchange(add: CommandGroup) -> None:
    sub = _add_for_one(
        add,
        "export",
        "_exchange:export",
        "write a thread with its child threads into one file, without keys",
        example="latest --to review.uwf",
    )
    sub.add_argument(
        "--to", type=Path, metavar="FILE", help="the file to write (default: standard output)"
    )
    sub.add_argument(
        "--with-secrets",
        action="store_true",
        help="write it even if the value of a configured key is in it",
    )
    sub = add(
        "import",
        "_exchange:import_",
        "take a thread out of a file, verified, all of it or nothing",
        example="review.uwf",
    )
    sub.add_argument("file", type=Path, help="what `uwf thread export` has written")


def _add_for_one(
    add: CommandGroup,
    name: str,
    command: str,
    help: str,
    *,
    example: str = "latest",
    exit_codes: bool = False,
) -> argparse.ArgumentParser:
    """Add a command for one thread, which has to be named."""
    sub = add(name, command, help, example=example, exit_codes=exit_codes)
    sub.add_argument("thread", help=THREAD_HELP)
    return sub


def _add_list(add: CommandGroup) -> None:
    sub = add(
        "list",
        "_threads:threads",
        "list the threads, newest first, with their cost and end",
        example="--state failed --since 2d",
    )
    sub.add_argument("--state", choices=STATES, metavar="STATE", help=f"one of {', '.join(STATES)}")
    sub.add_argument("--workflow", metavar="NAME", help="the name that they were started under")
    sub.add_argument("--tag", metavar="TAG", help="a tag from `uwf run --tag`")
    sub.add_argument(
        "--since",
        dest="since_ms",
        type=since,
        metavar="TIME",
        help="started since then: a duration such as 30min, 2h or 3d, or a date such as "
        "2026-11-30 or 2026-11-30T18:00",
    )
    sub.add_argument(
        "--children", action="store_true", help="list the threads that other threads started, too"
    )
    sub.add_argument(
        "--limit", type=count, default=50, metavar="N", help="list at most N (default: 50)"
    )


def _add_answer(add: CommandGroup) -> None:
    sub = _add_for_one(
        add, "answer", "_thread:answer", "answer a question of a thread", example="latest --approve"
    )
    sub.add_argument("key", nargs="?", help="the key of the question, if there are several")
    decision = sub.add_mutually_exclusive_group(required=True)
    decision.add_argument(
        "--approve", dest="approved", action="store_true", default=True, help="answer yes"
    )
    decision.add_argument("--deny", dest="approved", action="store_false", help="answer no")
    decision.add_argument(
        "--arguments",
        metavar="JSON",
        help="answer yes, and run the call with these arguments instead: one JSON object",
    )
    sub.add_argument("--text", default="", help="a text for the model, such as the reason")


def _add_fork(add: CommandGroup) -> None:
    sub = _add_for_one(
        add,
        "fork",
        "_thread:fork",
        "copy the first steps of a thread into a new thread",
        example="latest --at-step 2",
    )
    sub.add_argument(
        "--at-step", type=int, metavar="N", help="copy the first N steps (default: all)"
    )
    sub.add_argument("--prompt", help="give the new thread another task")
    add_new_place(sub)
