"""What importing the package loads: a short command pays for it each time (scripts/bench)."""

import subprocess
import sys

SCRIPT = """
import sys
import httpx, msgspec
before = set(sys.modules)
import workflow_agent_react
print(*sorted(set(sys.modules) - before))
"""
HEAVY = {
    *("asyncio", "ctypes", "difflib", "email", "logging", "multiprocessing", "subprocess"),
    *("anyio.abc", "anyio._backends"),
    *("workflow_agent_react.tools._workspace_functions", "workflow_agent_react.shell._shell"),
}


def loaded() -> set[str]:
    """The modules that come on top of httpx and msgspec."""
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    return set(ran.stdout.split())


def test_importing_loads_no_library_that_a_role_may_never_need() -> None:
    names = {name.partition(".")[0] for name in loaded()} - sys.stdlib_module_names

    ours = {"workflow_agent_react", "workflow_protocol", "workflow_reactor", "workflow_util_agent"}
    assert names - ours <= {"anyio", "sniffio", "typing_extensions"}


def test_importing_loads_nothing_heavy() -> None:
    assert loaded() & HEAVY == set()
