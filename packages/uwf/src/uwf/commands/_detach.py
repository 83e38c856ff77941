"""Runs a command in a process of its own, which outlives this one and the terminal."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from uwf._errors import Failed
from uwf.terminal._output import Output
from workflow_register import find_home

_POLL_S = 0.02
_MOST_LINES = 20


class _Line(msgspec.Struct):
    event: str = ""
    thread: str = ""
    parents: tuple[str, ...] = ()


_decode = msgspec.json.Decoder(_Line).decode


def run_detached(output: Output, words: Sequence[str], *, given: str = "") -> int:
    """Start `uwf` with these words, and print the id of its thread once it is at work.

    Its JSON lines and whatever else it says go to a file in `logs` of the home folder, whose name
    begins with the thread's id. `given` is what it reads from standard input: an argument may be
    too long for the system, and is seen by all users of the machine.

    Raises:
        Failed: it ended before the thread was at work; says why.
    """
    logs = _logs()
    logs.mkdir(parents=True, exist_ok=True)
    name = f"{time.strftime('%Y%m%d-%H%M%S')}-{time.time_ns() % 10**9:09}.log"
    path = logs / f"run-{name}"
    with tempfile.TemporaryFile() as task, path.open("xb") as log:
        task.write(given.encode())
        task.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-m", "uwf", "--json", *words],
            stdin=task,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    while True:
        ended = process.poll()
        if thread := _thread_in(path):
            path = path.rename(logs / f"{thread}-{name}")
            output.data({"thread": thread, "log": str(path), "pid": process.pid}, thread)
            return 0
        if ended is not None:
            said = path.read_text(encoding="utf-8", errors="replace").splitlines()
            words_said = "\n".join(each for each in said[-_MOST_LINES:] if each[:1] != "{")
            raise Failed(
                ended if ended > 0 else 1,
                f"the run ended before its thread was at work; its log is {path}\n"
                f"{words_said}".rstrip(),
            )
        time.sleep(_POLL_S)


def remove_logs(thread_ids: Iterable[str]) -> None:
    """Remove what the detached runs of threads have said."""
    for each in thread_ids:
        for path in _logs().glob(f"{each}-*.log"):
            path.unlink(missing_ok=True)


def _logs() -> Path:
    return find_home() / "logs"


def _thread_in(path: Path) -> str:
    """The thread whose beginning the log tells, if it does."""
    for line in path.read_bytes().split(b"\n")[:-1]:
        try:
            told = _decode(line)
        except msgspec.MsgspecError:
            continue
        if told.event == "ThreadStarted" and not told.parents:
            return told.thread
    return ""
