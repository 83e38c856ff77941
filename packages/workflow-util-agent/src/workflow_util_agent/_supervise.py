"""Run a command and leave nothing of it behind. A script: `python -I -S _supervise.py COMMAND…`.

It imports nothing of the package: it starts in a few milliseconds, for each command. Its stdin is
a lifeline. When that closes, because the caller wants an end or died, everything is killed.
With `--adopt` first, orphans of the command become children of this process, so that neither
`setsid` nor a double fork gets away (prctl(2), PR_SET_CHILD_SUBREAPER); a sandbox with a process
namespace of its own needs no such thing. Ends with the command's exit code, 128 + n for signal n.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress

_LIFELINE = 0
_PR_SET_CHILD_SUBREAPER = 36


def main(arguments: Sequence[str]) -> int:
    """Run the command until it ends or the lifeline closes."""
    if arguments[0] == "--adopt":
        _adopt_orphans()
        arguments = arguments[1:]
    wake, alarm = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(alarm, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
    child = _start(arguments)
    code = _wait(child, wake)
    _end_all(child, wake)
    return code


def _start(command: Sequence[str]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, which is inherited
        os.execvp(command[0], list(command))
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _wait(child: int, wake: int) -> int:
    while True:
        for pid, status in _reaped():
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        ready, _, _ = select.select([_LIFELINE, wake], [], [])
        if wake in ready:
            _empty(wake)
        elif not os.read(_LIFELINE, 1):
            return 128 + signal.SIGKILL


def _end_all(child: int, wake: int) -> None:
    """Kill children until none is left; their own become children and are killed in turn."""
    with suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    while True:
        for _ in _reaped():
            pass
        children = _children()
        if not children:
            return
        for pid in children:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        select.select([wake], [], [], 0.02)
        _empty(wake)


def _reaped() -> Iterator[tuple[int, int]]:
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            yield ended


def _children() -> list[int]:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return []  # the usual case, without a look at all processes
    return [pid for pid in map(int, filter(str.isdigit, _listed("/proc"))) if _is_mine(pid)]


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_mine(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # pid (name) state ppid …; the name may hold anything, brackets too
            return int(file.read().rpartition(b")")[2].split()[1]) == os.getpid()
    except (OSError, ValueError, IndexError):
        return False


def _empty(pipe: int) -> None:
    with suppress(BlockingIOError):
        while os.read(pipe, 4096):
            pass


def _adopt_orphans() -> None:
    if sys.platform != "linux":
        return  # only the process group is killed there
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
