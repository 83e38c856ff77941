"""A run in a process of its own that is killed in the middle of a turn, to show what is left."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence

import msgspec

from uwf.terminal._output import Output
from uwf.terminal._screen import Screen
from uwf.terminal._view import progress_view
from workflow_protocol import Event, ToolFinished

_decode = msgspec.json.Decoder(Event).decode


def run_and_kill(output: Output, words: Sequence[str], *, after: str) -> tuple[int, bool]:
    """Run `uwf` with these words, show its events, and kill it when a tool has done its work.

    Args:
        output: gets the events as JSON lines, if it takes such.
        words: of the command.
        after: the tool after whose first success it is killed.

    Returns:
        Its exit code, and whether it was killed.
    """
    command = [sys.executable, "-m", "uwf", "--json", *words]
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said
        ) as process,
        progress_view(Screen(sys.stderr), live=not output.json) as view,
    ):
        assert process.stdout is not None
        try:
            for line in process.stdout:
                try:
                    event = _decode(line)
                except msgspec.MsgspecError:  # an event that this version does not know
                    continue
                view.show(event)
                output.record(event)
                if isinstance(event, ToolFinished) and event.ok and event.name == after:
                    process.kill()
                    process.wait()
                    return 1, True
        finally:
            process.kill()  # if it is still there: this process was interrupted
        process.wait()
        if process.returncode != 0:
            said.seek(0)
            output.say(said.read().decode(errors="replace").rstrip())
        return process.returncode, False
