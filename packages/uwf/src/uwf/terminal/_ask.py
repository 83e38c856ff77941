"""Asks a person on the terminal, while a thread waits."""

from __future__ import annotations

import os
import sys
import termios

import anyio

from uwf.terminal._output import printable
from uwf.terminal._view import View
from workflow_execute import Asker
from workflow_protocol import Answer, Question


def can_ask() -> bool:
    """Whether somebody can be asked. It has to be found out before a view stands in for stderr."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)  # None: closed


def ask_on_terminal(view: View) -> Asker:
    """Give what asks the person in front of the terminal."""

    async def ask(key: str, question: Question) -> Answer | None:
        with view.quiet():
            return await _ask(question)

    return ask


async def _ask(question: Question) -> Answer | None:
    """Show the question until the reply can be understood; none at all decides later."""
    # What was typed before it was shown can't be meant for it.
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    shown = question.text + (f"\n{question.details}" if question.details else "")
    print(printable(shown), file=sys.stderr)
    while True:
        print("Type y or n, then a reason if you like. Press Enter to decide later: ",
              end="", file=sys.stderr, flush=True)  # fmt: skip
        # Not `input`: a thread that waits for a line can't be cancelled.
        await anyio.wait_readable(sys.stdin)
        line = os.read(sys.stdin.fileno(), 65_536).decode(errors="replace").strip()
        if not line:
            return None
        word, _, reason = line.partition(" ")
        if word.lower() in {"y", "yes", "n", "no"}:
            return Answer(approved=word.lower() in {"y", "yes"}, text=reason.strip())
