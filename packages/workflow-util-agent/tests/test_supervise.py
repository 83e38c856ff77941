import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import workflow_util_agent._supervise

SCRIPT = str(Path(workflow_util_agent._supervise.__file__))


def start(*arguments: str, flags: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", *flags, SCRIPT, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def finish(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    """Wait without letting go of the lifeline."""
    assert process.stdout is not None
    assert process.stdin is not None
    with process:
        output = process.stdout.read()
        return process.wait(), output


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)],
)
def test_it_ends_as_the_command_does(command: str, code: int) -> None:
    assert finish(start("sh", "-c", command)) == (code, b"")


def test_it_starts_without_the_modules_that_take_longer_than_itself() -> None:
    code, output = finish(start("true", flags=["-X", "importtime"]))
    loaded = {line.rpartition("|")[2].strip() for line in output.decode().splitlines()}

    assert code == 0
    assert "select" in loaded
    assert loaded & {"collections", "contextlib", "enum", "functools", "re", "signal"} == set()


def test_a_command_that_is_not_there_is_told() -> None:
    assert finish(start("no-such-command")) == (
        127,
        b"no-such-command: No such file or directory\n",
    )


def test_the_command_has_no_input_no_terminal_and_the_usual_signals() -> None:
    process = start("sh", "-c", "cat; test -t 1 || echo no; ps -o sid= -p $$; yes | head -1")

    code, output = finish(process)

    lines = output.split()
    assert code == 0
    assert lines[0] == b"no"
    assert int(lines[1]) == process.pid != os.getsid(0)
    assert lines[2:] == [b"y"]


ESCAPES = [
    "sleep 1000 &",
    "setsid sleep 1000 &",
    "(setsid sleep 1000 &) &",
    "env -i setsid sh -c 'setsid sleep 1000 & sleep 1000' &",
    "nohup setsid sleep 1000 > /dev/null 2>&1 < /dev/null &",
    "trap '' TERM HUP; setsid sh -c \"trap '' TERM; sleep 1000\" &",
]


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("ends_by", ["itself", "lifeline"])
def test_nothing_gets_away(escape: str, ends_by: str) -> None:
    rest = "" if ends_by == "itself" else "sleep 1000"
    process = start("sh", "-c", f"{escape} \n echo started; {rest}")
    assert process.stdout is not None
    assert process.stdin is not None
    with process:
        assert process.stdout.readline() == b"started\n"
        family = [process.pid, *descendants(process.pid)]
        if ends_by == "lifeline":
            process.stdin.close()
        assert process.stdout.read() == b""  # nobody holds it any more
        assert process.wait(5) == (0 if ends_by == "itself" else 137)

    assert [pid for pid in family if is_running(pid)] == []


def descendants(pid: int) -> list[int]:
    found: list[int] = []
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True
    ).stdout
    parents = [tuple(map(int, line.split())) for line in listed.splitlines()]
    for child, parent in parents:
        if parent == pid:
            found += [child, *descendants(child)]
    return found


def test_when_the_caller_dies_the_command_does() -> None:
    caller = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, {SCRIPT!r}, 'sh', '-c',"
        " 'setsid sleep 1000 & echo $!; sleep 1000'], stdin=subprocess.PIPE)\n"
        "time.sleep(1000)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", caller], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert is_running(pid)

        process.send_signal(signal.SIGKILL)
        assert process.stdout.read() == b""

    deadline = time.monotonic() + 5
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(pid)


def test_when_the_caller_dies_a_command_that_stopped_the_supervisor_does() -> None:
    caller = (
        "import subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, {SCRIPT!r}, 'sh', '-c',"
        " 'kill -STOP $PPID; setsid sleep 1000 & echo $!; sleep 1000'], stdin=subprocess.PIPE)\n"
        "time.sleep(1000)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", caller], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert is_running(pid)

        process.send_signal(signal.SIGKILL)
        assert process.stdout.read() == b""  # nobody holds it any more


def test_when_the_supervisor_is_killed_the_command_is() -> None:
    process = start("sleep", "1000")
    assert process.stdout is not None
    with process:
        wait_for_children(process.pid)
        process.kill()
        assert process.stdout.read() == b""  # nobody holds it any more


def wait_for_children(pid: int) -> list[int]:
    while not (found := descendants(pid)):
        time.sleep(0.01)
    return found


def test_it_needs_nothing_that_python_lacks_on_macos() -> None:
    """`os.waitid` came to it with Python 3.13, and it has no /proc."""
    without = (
        "import os, runpy, sys\n"
        "del os.waitid\n"
        "listdir = os.listdir\n"
        "def listed(folder):\n"
        "    if folder == '/proc': raise FileNotFoundError(2, 'No such file', folder)\n"
        "    return listdir(folder)\n"
        "os.listdir, sys.platform = listed, 'darwin'\n"
        f"sys.argv = [{SCRIPT!r}, *sys.argv[1:]]\n"
        f"runpy.run_path({SCRIPT!r}, run_name='__main__')\n"
    )
    for script, code in (("sleep 1000 & exit 7", 7), ("sleep 1000 & kill -TERM $$", 143)):
        with subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", without, "sh", "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        ) as process:
            assert finish(process) == (code, b"")
