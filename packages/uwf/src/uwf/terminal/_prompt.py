"""Asks the person at the terminal one thing after another, and again where an answer is none."""

from __future__ import annotations

import getpass
import sys
import warnings
from collections.abc import Callable

from uwf._errors import Failed
from uwf.terminal._output import Output
from uwf.terminal._style import render, wants_colour


def ask_line(question: str) -> str:
    """One line, without the white space around it.

    Raises:
        Failed: the input has ended.
        KeyboardInterrupt: Ctrl-C.
    """
    print(render(question, colour=wants_colour(sys.stderr)), end="", file=sys.stderr, flush=True)
    line = sys.stdin.buffer.readline()  # whatever its bytes are
    if not line:
        print(file=sys.stderr)
        raise Failed(1, "the input ended; nothing was changed")
    return line.decode(errors="replace").strip()


def ask_until(output: Output, question: str, read: Callable[[str], str]) -> str:
    """Ask until `read` makes something of the answer. What it raises says what is wrong with it."""
    while True:
        try:
            return read(ask_line(question))
        except ValueError as error:
            output.say(f"  {error}")


def ask_yes(question: str, *, default: bool) -> bool:
    """Yes or no; an empty answer is the default."""
    while True:
        word = ask_line(f"{question} {'[Y/n]' if default else '[y/N]'} ").lower()
        if word in {"", "y", "yes", "n", "no"}:
            return default if not word else word.startswith("y")


def ask_secret(question: str) -> str:
    """One line that isn't echoed.

    Raises:
        Failed: the input has ended, or the terminal can't hide what is typed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass(question, stream=sys.stderr).strip()
    except (EOFError, getpass.GetPassWarning) as error:
        raise Failed(1, "nothing could be read without showing it; nothing was changed") from error
