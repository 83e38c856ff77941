import ctypes
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from workflow_util_agent import _family
from workflow_util_agent._family import (
    ProcessEntry,
    from_proc,
    from_ps,
    kill_family,
    processes,
)

SUBREAPER = 36
SOURCES = pytest.mark.parametrize("source", [from_proc, from_ps])
Source = Callable[[], Iterator[ProcessEntry]]


def start(script: str) -> "subprocess.Popen[bytes]":
    """A shell that adopts orphans, as the supervisor does, and has written a line."""
    process = subprocess.Popen(
        ["sh", "-c", script],
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"
    return process


@SOURCES
def test_the_table_has_this_process_and_its_parent(source: Source) -> None:
    (own,) = [entry for entry in source() if entry.pid == os.getpid()]

    assert (own.parent, own.session, own.ended) == (os.getppid(), os.getsid(0), False)


@SOURCES
@pytest.mark.parametrize(
    "script",
    [
        "echo started; sleep 1000 & sleep 1000",
        "setsid sleep 1000 & echo started; sleep 1000",
        "setsid sh -c 'setsid sleep 1000 & sleep 1000' & echo started; kill -STOP $$",
        "sh -c 'sleep 1000 &'; echo started; sleep 1000",  # an orphan
    ],
)
def test_a_family_is_killed_whatever_its_sessions_and_whoever_is_stopped(
    script: str, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_family, "processes", lambda: list(source()))
    with start(script) as process:
        kill_family(process.pid)

        assert process.stdout is not None
        assert process.stdout.read() == b""  # nobody holds it any more
        assert process.wait() == -9


def test_a_process_that_has_ended_is_no_longer_waited_for() -> None:
    with start("echo started; sh -c 'exit 0' & exec sleep 1000") as process:
        while not any(entry.ended for entry in processes() if entry.parent == process.pid):
            pass
        kill_family(process.pid)

        assert process.wait() == -9


def test_a_name_cannot_make_a_process_look_like_another(tmp_path: Path) -> None:
    program = tmp_path / "x) Z 1 1 1"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([program, "1000"]) as process:
        (entry,) = [entry for entry in processes() if entry.pid == process.pid]
        process.kill()

    assert (entry.parent, entry.session, entry.ended) == (os.getpid(), os.getsid(0), False)
