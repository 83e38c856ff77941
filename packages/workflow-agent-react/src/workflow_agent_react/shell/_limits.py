"""What a command may use up, and the words for the model when it has."""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec

from workflow_util_agent.process import Limits, ProcessResult, limits_work

# Without control groups: for each process by itself, and for processes only in a sandbox, where
# they are counted apart since Linux 5.14. Shells differ in the letter for them.
_EACH = """
ulimit -d "$1" 2>/dev/null
[ -z "$2" ] || ulimit -u "$2" 2>/dev/null || ulimit -p "$2" 2>/dev/null
shift 2
exec "$@"
"""


class CommandLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a command with all its processes may have."""

    max_processes: int = 1024
    max_memory_bytes: int = 0
    """0: half of what this machine has."""
    max_tmp_bytes: int = 1 << 30
    """Of the sandbox's `/tmp`, and again of its `/dev/shm`."""

    def of_all(self) -> Limits:
        """The limits for its processes together."""
        return Limits(memory_bytes=self._memory(), processes=self.max_processes)

    def around(self, line: list[str], *, in_sandbox: bool) -> list[str]:
        """The command with limits for each of its processes, where there can be none for all."""
        if limits_work():
            return line
        processes = str(self.max_processes) if in_sandbox else ""
        return ["/bin/sh", "-c", _EACH, "sh", str(self._memory() // 1024), processes, *line]

    def told(self, ran: ProcessResult, *, in_sandbox: bool) -> list[str]:
        """What to say of limits that were hit, or may have been by what the output says."""
        return list(self._hits(ran, in_sandbox=in_sandbox))

    def _hits(self, ran: ProcessResult, *, in_sandbox: bool) -> Iterator[str]:
        memory, processes = _size(self._memory()), self.max_processes
        if "memory" in ran.hits:
            yield f"out of memory: a process was killed, for all may have {memory} together"
        elif not ran.limited and _says(ran, "Cannot allocate memory", "MemoryError"):
            yield f"perhaps the limit for memory: a process may have {memory}"
        if "processes" in ran.hits:
            yield f"too many processes: {processes} may run at a time, so some were not started"
        elif not ran.limited and in_sandbox and _says(ran, "fork", "Resource temporarily"):
            yield f"perhaps the limit for processes: {processes} may run at a time"
        if in_sandbox and _says(ran, "No space left on device", "Disk quota"):
            yield f"/tmp holds {_size(self.max_tmp_bytes)}; put more into the workspace"

    def _memory(self) -> int:
        if self.max_memory_bytes:
            return self.max_memory_bytes
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _says(ran: ProcessResult, *words: str) -> bool:
    return any(word in ran.output for word in words)


def _size(size: int) -> str:
    return f"{size / (1 << 30):.3g} GiB" if size >= 1 << 30 else f"{size / (1 << 20):.3g} MiB"
