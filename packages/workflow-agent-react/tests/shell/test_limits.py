import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from workflow_agent_react.shell._limits import CommandLimits
from workflow_agent_react.shell._sandbox import (
    SandboxFolders,
    SandboxMode,
    sandbox_fault,
    sandboxed,
)
from workflow_agent_react.shell._shell import Shell
from workflow_util_agent import _cgroups
from workflow_util_agent.process import ProcessResult, limits_work

needs_groups = pytest.mark.skipif(not limits_work(), reason="control groups can't be made here")
needs_sandbox = pytest.mark.skipif(bool(sandbox_fault()), reason=sandbox_fault())
MODES = pytest.mark.parametrize("sandbox", ["off", pytest.param("require", marks=needs_sandbox)])

LIMITS = CommandLimits(max_processes=30, max_memory_bytes=100 << 20, max_tmp_bytes=4 << 20)
GREEDY = "/usr/bin/python3 -c 'x = bytearray(400 << 20)'"
MANY = "for i in $(seq 60); do sleep 1000 >/dev/null 2>&1 & done"


async def run(workspace: Path, command: str, sandbox: SandboxMode) -> str:
    shell = Shell(sandbox=sandbox, env={}, limits=LIMITS)
    return await shell.run(workspace, command, timeout_s=20)


@needs_groups
@MODES
async def test_too_much_memory_is_told_with_the_limit(tmp_path: Path, sandbox: SandboxMode) -> None:
    text = await run(tmp_path, f"{GREEDY}; echo after", sandbox)

    assert "after\n" in text
    told = "[out of memory: a process was killed, for all may have 100 MiB together]\n[exit code 0"
    assert told in text


@needs_groups
@MODES
async def test_too_many_processes_are_told_with_the_limit(
    tmp_path: Path, sandbox: SandboxMode
) -> None:
    text = await run(tmp_path, MANY, sandbox)

    assert "[too many processes: 30 may run at a time, so some were not started]\n[exit" in text


TOGETHER = """
import os, signal
for _ in range(6):
    if not os.fork():
        held = bytearray(30 << 20)
        signal.pause()
os.wait()
"""


@needs_groups
@MODES
async def test_what_many_processes_hold_counts_together(
    tmp_path: Path, sandbox: SandboxMode
) -> None:
    (tmp_path / "together.py").write_text(TOGETHER)

    assert "[out of memory: " in await run(tmp_path, "/usr/bin/python3 together.py", sandbox)


@needs_sandbox
@pytest.mark.parametrize("folder", ["/tmp", "/var/tmp", "/dev/shm"])
async def test_a_full_tmp_is_told_with_its_size(tmp_path: Path, folder: str) -> None:
    text = await run(tmp_path, f"head -c 9M /dev/zero > {folder}/x", "require")

    assert "No space left on device\n[/tmp holds 4 MiB; put more into the workspace]\n" in text


@MODES
async def test_without_groups_each_process_is_limited(
    tmp_path: Path, sandbox: SandboxMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cgroups, "group_parents", lambda: ())

    text = await run(tmp_path, GREEDY, sandbox)

    assert "MemoryError\n[perhaps the limit for memory: a process may have 100 MiB]\n[exit" in text


@needs_sandbox
def test_without_groups_the_processes_of_a_sandbox_are_limited_but_for_those_of_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_cgroups, "group_parents", lambda: ())
    line = LIMITS.around(["/bin/sh", "-c", MANY], in_sandbox=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        command = sandboxed(Path(folder), line, SandboxFolders(), max_tmp_bytes=1 << 20)
        ran = subprocess.run(
            command.words,
            pass_fds=command.fds,
            user=65534 if os.geteuid() == 0 else None,  # the limit doesn't bind root
            extra_groups=[] if os.geteuid() == 0 else None,
            capture_output=True,
            text=True,
            check=False,
        )
        command.close()

    assert "fork" in ran.stderr
    result = ProcessResult(output=ran.stderr, exit_code=2, wall_s=0)
    assert LIMITS.told(result, in_sandbox=True) == [
        "perhaps the limit for processes: 30 may run at a time"
    ]


@MODES
async def test_a_command_within_its_limits_says_nothing_of_them(
    tmp_path: Path, sandbox: SandboxMode
) -> None:
    text = await run(tmp_path, "echo ok", sandbox)

    assert text.startswith("ok\n[exit code 0, ")


def test_by_default_memory_is_half_of_what_the_machine_has() -> None:
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")

    limits = CommandLimits().of_all()

    assert (limits.memory_bytes, limits.processes) == (machine // 2, 1024)
