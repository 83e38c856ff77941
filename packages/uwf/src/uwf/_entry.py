"""Where `uwf` begins: an interrupt is one clear line from the first moment on."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if sys.platform == "win32":  # no fork, no signals, no descriptors of folders
        print("uwf: runs on Linux and macOS; on Windows, use it inside WSL", file=sys.stderr)
        return 1
    try:
        from uwf._main import run_command

        return run_command(argv)
    except BaseException as error:
        if not _is_interrupt(error):
            raise
        print("uwf: cancelled", file=sys.stderr, flush=True)
        return 130


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether this is Ctrl-C, or came of it: Python 3.11 wraps what a class raises when made."""
    return isinstance(error, KeyboardInterrupt) or (
        error is not None and _is_interrupt(error.__cause__)
    )
