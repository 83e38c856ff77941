"""Carries out one command, and says what went wrong with it."""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TypeGuard

from uwf._errors import Failed, UsageError
from uwf.arguments._parser import make_parser, parse
from uwf.terminal._output import Output
from uwf.terminal._signals import StopSignals
from uwf.terminal._style import Styled
from workflow_protocol import WorkflowError

if TYPE_CHECKING:
    from workflow_cas import StoreError


_COMMANDS = {"verify": "uwf cas verify", "migrate_store": "uwf store migrate"}
"""What to type for the functions that errors of the store name."""


def run_command(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Ctrl-C, SIGTERM and SIGHUP raise on."""
    _make_streams_safe()
    StopSignals(_raise_interrupt).install()  # while an event loop runs, `run_async` does
    try:
        return _run(argv)
    except BrokenPipeError:  # the reader has gone, as in `uwf show | head`
        return 128 + signal.SIGPIPE
    except OSError:  # what went wrong could not be told
        return 1
    finally:
        _discard_broken_streams()


def _run(argv: Sequence[str] | None) -> int:
    output = Output()
    try:
        if "_ARGCOMPLETE" in os.environ:
            _complete_line()
        arguments = parse(argv)
        output = Output(json=arguments.json, traceback=arguments.traceback or _wants_traceback())
        if arguments.home is not None:
            os.environ["UWF_HOME"] = str(arguments.home.absolute())
        return _call_command(arguments, output)
    except Failed as error:
        if str(error):
            _report_error(output, error)
        return error.code
    except UsageError as error:
        _report_error(output, error)
        return 2
    except BrokenPipeError:
        raise
    except (WorkflowError, OSError) as error:
        _report_error(output, error)
        return 1


def _complete_line() -> NoReturn:
    """Answer the shell, which asks what may come next, and exit."""
    from uwf._completion import complete

    complete(make_parser())


def _make_streams_safe() -> None:
    """Let nothing that is printed fail: not on a stream that was closed, not by its encoding."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the end
            setattr(sys, name, nowhere)
        elif isinstance(stream, io.TextIOWrapper):  # what the terminal can't show is escaped
            stream.reconfigure(errors="backslashreplace")


def _discard_broken_streams() -> None:
    """Forget what can't be written: Python would try again at exit, and complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _call_command(arguments: argparse.Namespace, output: Output) -> int:
    """Import a command's module, now that it is needed, and call it with what was given."""
    options = {
        name: _decode_argument(name, value)
        for name, value in vars(arguments).items()
        if name not in {"command", "json", "home", "traceback"}
    }
    module, _, function = str(arguments.command).partition(":")
    command: Callable[..., int] = getattr(import_module(f"uwf.commands.{module}"), function)
    try:
        return command(output, **options)
    except SystemExit as error:  # of a tool, say: its code is not that of the workflow
        raise Failed(
            1,
            f"code of the workflow called sys.exit({error.code!r}); return a value instead",
        ) from error


def _decode_argument(name: str, value: object) -> object:
    """What was given as text, whatever the locale made of it. Paths may be any bytes.

    Raises:
        UsageError: it is no text.
    """
    if not isinstance(value, str) or name == "workflow":
        return value
    try:
        return os.fsencode(value).decode()
    except UnicodeError as error:
        raise UsageError(f"the {name.replace('_', '-')} is not valid UTF-8") from error


def _wants_traceback() -> bool:
    return os.environ.get("UWF_TRACEBACK", "") not in {"", "0"}


def _raise_interrupt() -> None:
    raise KeyboardInterrupt


def _report_error(output: Output, error: Exception) -> None:
    message = _error_message(error)
    if output.traceback:
        output.say("".join(traceback.format_exception(error)).rstrip())
    output.say([Styled("uwf:", "bad"), f" {message}"])
    output.record({"error": {"type": type(error).__name__, "message": message}})


def _error_message(error: Exception) -> str:
    """What went wrong and where, and for what the system says also what to do."""
    if not isinstance(error, OSError) or not error.strerror:
        said = str(error) or type(error).__name__
        for function, command in _COMMANDS.items():
            said = said.replace(f"`{function}`", f"`{command}`")
        return said + (_home_hint(str(error.path)) if _is_store_unusable(error) else "")
    if error.filename is None:
        if isinstance(error, FileNotFoundError) and _current_folder_is_deleted():
            return "the current folder was deleted; `cd` to another one and run this again"
        return error.strerror
    place = os.fsdecode(error.filename)
    return f"{place}: {error.strerror}{_home_hint(place)}"


def _home_hint(place: str) -> str:
    """What to do about a place in the home folder."""
    from workflow_register import find_home

    home = find_home()
    if not Path(place).is_relative_to(home):
        return ""
    return (
        f"; {home} is the folder for the files of uwf. Repair it, or choose another one with --home"
    )


def _is_store_unusable(error: Exception) -> TypeGuard[StoreError]:
    """Whether the store can't be used where it is, for a reason that another place hasn't."""
    from workflow_cas import StoreError, StoreReadOnly

    return isinstance(error, StoreReadOnly) or type(error) is StoreError


def _current_folder_is_deleted() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False
