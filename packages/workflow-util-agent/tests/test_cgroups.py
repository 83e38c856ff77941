import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import anyio
import pytest

from workflow_util_agent import _cgroups
from workflow_util_agent._cgroups import (
    LimitedGroup,
    Limits,
    candidates,
    group_parents,
    limited_group,
    parent_of_kind,
)
from workflow_util_agent.process import ProcessResult, run_command

LIMITS = Limits(memory_bytes=64 << 20, processes=20)
needs_groups = pytest.mark.skipif(not group_parents(), reason="control groups can't be made here")


async def run(folder: Path, script: str, *, adopt: bool = True) -> ProcessResult:
    return await run_command(
        ["sh", "-c", script],
        cwd=folder,
        env={"PATH": os.environ["PATH"]},
        timeout_s=20,
        max_output_bytes=1000,
        adopt=adopt,
        limits=LIMITS,
    )


def groups(pid: int = os.getpid()) -> set[str]:
    return {
        name
        for parent in group_parents()
        for name in os.listdir(parent.folder)
        if name.startswith(f"uwf-{pid}-")
    }


GREEDY = f"{sys.executable} -c 'x = bytearray(300 << 20)'"


@needs_groups
@pytest.mark.parametrize("adopt", [True, False])
async def test_what_takes_too_much_memory_is_killed_and_told(tmp_path: Path, adopt: bool) -> None:
    ran = await run(tmp_path, f"{GREEDY}; echo $?", adopt=adopt)

    assert ran.output.splitlines()[-1] == "137"
    assert (ran.exit_code, ran.limited, ran.hits) == (0, True, ["memory"])


@needs_groups
@pytest.mark.parametrize("adopt", [True, False])
async def test_no_more_processes_can_be_started_than_the_limit_has(
    tmp_path: Path, adopt: bool
) -> None:
    ran = await run(
        tmp_path, "for i in $(seq 40); do sleep 1000 >/dev/null 2>&1 & done", adopt=adopt
    )

    assert "fork" in ran.output
    assert ran.hits == ["processes"]


@needs_groups
async def test_a_command_within_its_limits_hits_none_and_leaves_no_group(tmp_path: Path) -> None:
    ran = await run(tmp_path, "true")

    assert (ran.exit_code, ran.limited, ran.hits) == (0, True, [])
    assert groups() == set()


@needs_groups
async def test_what_killed_its_supervisor_and_left_its_session_is_found_in_the_group(
    tmp_path: Path,
) -> None:
    marker = f"1000.{os.getpid()}5"
    await run(tmp_path, f"setsid sleep {marker} & kill -KILL $PPID; sleep {marker}")

    found = await anyio.run_process(["pgrep", "-f", marker], check=False)
    assert found.returncode == 1
    assert groups() == set()


ENGINE = """
import sys, anyio
from pathlib import Path
from workflow_util_agent.process import Limits, run_command
script = "touch ready; sleep 1000"
anyio.run(lambda: run_command(
    ["sh", "-c", script], cwd=Path(sys.argv[1]), env={"PATH": "/usr/bin:/bin"}, timeout_s=60,
    max_output_bytes=1000, adopt=True,
    limits=Limits(memory_bytes=1 << 30, processes=100),
))
"""


@needs_groups
def test_when_the_engine_is_killed_its_groups_are_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ENGINE, tmp_path]) as engine:
        wait_until((tmp_path / "ready").exists)
        assert groups(engine.pid)
        engine.kill()

    wait_until(lambda: not groups(engine.pid))


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@needs_groups
def test_groups_of_a_killed_engine_are_removed_by_the_next() -> None:
    left = subprocess.run(
        [
            sys.executable,
            "-c",
            "import os\n"
            "from workflow_util_agent._cgroups import Limits, limited_group\n"
            "group = limited_group(Limits(memory_bytes=1 << 30, processes=100))\n"
            "print(*map(os.path.dirname, group.joins), flush=True)\n"
            "os.kill(os.getpid(), 9)\n",
        ],
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    assert left
    assert all(map(os.path.isdir, left))
    group_parents.cache_clear()

    group = limited_group(LIMITS)

    assert group is not None
    group.close()
    assert [folder for folder in left if os.path.exists(folder)] == []


async def test_without_groups_a_command_runs_and_says_that_it_is_not_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_cgroups, "group_parents", lambda: ())

    ran = await run(tmp_path, "echo x")

    assert (ran.output, ran.limited, ran.hits) == ("x\n", False, [])


def test_a_controller_that_is_off_makes_no_group_and_leaves_no_folder(tmp_path: Path) -> None:
    parent = parent_of_kind(str(tmp_path), "")  # a folder without the files of a group

    with pytest.raises(FileNotFoundError):
        LimitedGroup([parent], LIMITS)

    assert list(tmp_path.iterdir()) == []


V1 = "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu"
MEMORY = "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
DOCKER = "33 31 0:30 /docker/ab /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"
V2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V2_PART = "30 23 0:26 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw"


@pytest.mark.parametrize(
    ("mounts", "own", "kind", "expected"),
    [
        ([V1, MEMORY], ["4:memory:/a/b"], "memory", ["/a/b", "/a", ""]),
        ([V1, MEMORY], ["4:memory:/"], "memory", [""]),
        ([DOCKER], ["4:memory:/docker/ab"], "memory", [""]),
        ([DOCKER], ["4:memory:/docker/ab/c"], "memory", ["/c", ""]),
        ([DOCKER], ["4:memory:/elsewhere"], "memory", [""]),
        ([V1], ["4:memory:/a"], "memory", []),
        ([MEMORY], ["1:cpu:/a"], "memory", []),
        ([MEMORY], [], "memory", []),
    ],
)
def test_groups_of_version_1_are_looked_for_from_the_own_one_up(
    mounts: Sequence[str], own: Sequence[str], kind: str, expected: Sequence[str]
) -> None:
    assert list(candidates(mounts, own, kind)) == [
        f"/sys/fs/cgroup/memory{path}" for path in expected
    ]


@pytest.mark.parametrize(
    ("mounts", "own", "expected"),
    [
        ([V2], ["0::/user.slice/app.slice"], ["/user.slice/app.slice", "/user.slice", ""]),
        ([V2_PART], ["0::/a/b"], ["/b", ""]),
        ([MEMORY], ["0::/a"], []),
        ([V2], ["4:memory:/a"], []),
    ],
)
def test_groups_of_version_2_are_looked_for_from_the_own_one_up(
    mounts: Sequence[str], own: Sequence[str], expected: Sequence[str]
) -> None:
    assert list(candidates(mounts, own, "")) == [f"/sys/fs/cgroup{path}" for path in expected]
