"""Run a command and leave nothing of it behind. A script: `python -I -S _supervise.py COMMAND…`.

It starts for each command, so it imports nothing of the package, and not `signal`, `contextlib` or
`collections.abc`, which would double the 8 ms that an interpreter takes. Its stdin is a lifeline.
When a byte comes because the caller wants an end, or it closes because the caller died, everything
is killed.

`--join FILE` before the command, any number of times: the `cgroup.procs` of a group for it.
`--stdio IN OUT ERR` after these: open descriptors that become the command's standard streams.

Orphans of the command become children of this process, so that neither `setsid` nor a double fork
gets away (prctl(2), PR_SET_CHILD_SUBREAPER). A command may stop this process (`kill -STOP $PPID`):
the caller lets it go on, and when the caller dies the kernel does (PR_SET_PDEATHSIG). A sandbox
with a process namespace of its own needs none of this: see `_shell`. Ends with the command's exit
code, 128 + n for signal n.
"""

from __future__ import annotations

import os
import select
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # the part in C, without its enums

_LIFELINE = 0
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(arguments: list[str]) -> int:
    """Run the command until it ends or the lifeline closes."""
    groups: list[str] = []
    while arguments[0] == "--join":
        groups.append(arguments[1])
        arguments = arguments[2:]
    streams: list[int] = []
    if arguments[0] == "--stdio":
        streams, arguments = [int(each) for each in arguments[1:4]], arguments[4:]
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGCONT)  # it finds its lifeline closed then
    wake, alarm = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(alarm, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
    child = _start(arguments, groups, streams)
    code = _wait(child, wake)
    _end_all(child, wake)
    if code is None:
        _remove(groups)  # nobody else is left to do it
    return 128 + signal.SIGKILL if code is None else code


def _start(command: list[str], groups: list[str], streams: list[int]) -> int:
    parent = os.getpid()
    child = os.fork()
    if child:
        for each in streams:  # so that who reads sees where the command's own output ends
            os.close(each)
        return child
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(127)
        os.setpgid(0, 0)
        for group in groups:
            os.write(os.open(group, os.O_WRONLY), b"0")  # the process that writes
        for number, each in enumerate(streams or [os.open(os.devnull, os.O_RDONLY)]):
            os.dup2(each, number)
            os.close(each)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, which is inherited
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(127)


def _wait(child: int, wake: int) -> int | None:
    """The exit code; nothing if the caller died, which leaves the lifeline without a word."""
    while True:
        for pid, status in _reaped()[0]:
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
        ready, _, _ = select.select([_LIFELINE, wake], [], [])
        if wake in ready:
            _empty(wake)
        else:
            return 128 + signal.SIGKILL if os.read(_LIFELINE, 1) else None


def _end_all(child: int, wake: int) -> None:
    """Kill children until none is left; their own become children and are killed in turn."""
    _kill(-child)
    while _reaped()[1]:
        for pid in _children() if sys.platform == "linux" else [child]:
            _kill(pid)
        select.select([wake], [], [], 0.02)
        _empty(wake)


def _remove(groups: list[str]) -> None:
    for group in groups:
        for pause_s in (0.01, 0.1, 1.0):  # version 1 needs a moment after its last process
            try:
                os.rmdir(os.path.dirname(group))
                break
            except OSError:
                select.select([], [], [], pause_s)


def _kill(pid: int) -> None:
    try:  # noqa: SIM105 - see above
        os.kill(pid, signal.SIGKILL)
    except OSError:
        pass


def _reaped() -> tuple[list[tuple[int, int]], bool]:
    """The children that have ended, with their status, and whether there are others."""
    found: list[tuple[int, int]] = []
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            found.append(ended)
    except ChildProcessError:
        return found, False
    return found, True


def _children() -> list[int]:
    try:
        pids = map(int, filter(str.isdigit, os.listdir("/proc")))
    except OSError:
        return []
    return [pid for pid in pids if _is_mine(pid)]


def _is_mine(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # pid (name) state ppid …; the name may hold anything, brackets too
            return int(file.read().rpartition(b")")[2].split()[1]) == os.getpid()
    except (OSError, ValueError, IndexError):
        return False


def _empty(pipe: int) -> None:
    try:
        while os.read(pipe, 4096):
            pass
    except BlockingIOError:
        pass


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return  # only the process group is killed there, and a stopped one waits for its caller
    import ctypes

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    os._exit(main(sys.argv[1:]))  # nothing is buffered, and finalizing takes another millisecond
