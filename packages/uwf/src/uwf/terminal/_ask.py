"""Asks a person on the terminal, while a thread waits."""

from __future__ import annotations

import os
import sys
import termios
from typing import TextIO

import anyio
import msgspec

from uwf.terminal._style import printable
from uwf.terminal._view import View
from workflow_execute import Asker, Asking
from workflow_protocol import Answer, JsonObject


def can_ask() -> bool:
    """Whether somebody can be asked. It has to be found out before a view stands in for stderr."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)  # None: closed


def ask_on_terminal(view: View) -> Asker:
    """Give what asks the person in front of the terminal. Other output waits meanwhile."""

    async def ask(asking: Asking) -> Answer | None:
        with view.quiet() as screen:
            try:
                return await _ask(asking, screen)
            except anyio.get_cancelled_exc_class():  # answered elsewhere, or the thread is stopped
                screen.write("\n")
                raise

    return ask


def is_about_call(key: str) -> bool:
    """Whether a question is about a tool's call, whose arguments a person may change."""
    return "ask" in key.split("/")


def read_arguments(text: str) -> str | None:
    """The arguments that a person gives instead of the model's; `None` if they are none."""
    try:
        return msgspec.json.encode(msgspec.json.decode(text, type=JsonObject)).decode()
    except (msgspec.DecodeError, UnicodeError):
        return None


async def _ask(asking: Asking, screen: TextIO) -> Answer | None:
    """Show the question until the reply can be understood; none at all decides later."""
    # What was typed before it was shown can't be meant for it.
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
    question, changes = asking.question, is_about_call(asking.key)
    role = f", role {asking.role}" if asking.role else ""
    shown = f"thread {asking.thread}{role}: {question.text}"
    print(printable(shown + (f"\n{question.details}" if question.details else "")), file=screen)
    other = "Type other arguments as one JSON object to change the call. " if changes else ""
    while True:
        print(f"Type y or n, then a reason if you like. {other}Press Enter to decide later: ",
              end="", file=screen, flush=True)  # fmt: skip
        # Not `input`: a thread that waits for a line can't be cancelled.
        await anyio.wait_readable(sys.stdin)
        line = os.read(sys.stdin.fileno(), 65_536).decode(errors="replace").strip()
        if not line:
            return None
        if changes and line.startswith("{"):
            if (arguments := read_arguments(line)) is not None:
                return Answer(approved=True, arguments=arguments)
            print("This is not one JSON object.", file=screen)
            continue
        word, _, reason = line.partition(" ")
        if word.lower() in {"y", "yes", "n", "no"}:
            return Answer(approved=word.lower() in {"y", "yes"}, text=reason.strip())
