"""A run that is killed, whenever, ends in the same commit."""

import random
import sys
import time
from pathlib import Path

import anyio
import pytest

from .developers import git, make_project

SCRIPT = Path(__file__).with_name("killed_run.py")


async def finish(folder: Path) -> str:
    """Go on to the end; the commit."""
    command = [sys.executable, str(SCRIPT), str(folder)]
    done = await anyio.run_process(command, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return git(folder / "project", "rev-parse", "HEAD")


@pytest.mark.slow
@pytest.mark.timeout(180)
async def test_a_run_that_is_killed_at_any_instant_ends_in_the_same_commit(tmp_path: Path) -> None:
    make_project(tmp_path / "whole" / "project")
    begun = time.monotonic()
    expected = await finish(tmp_path / "whole")
    took_s = time.monotonic() - begun
    chance = random.Random(7)
    killed = 0
    for number in range(8):
        folder = tmp_path / str(number)
        make_project(folder / "project")
        for _ in range(2):
            process = await anyio.open_process([sys.executable, str(SCRIPT), str(folder)])
            with anyio.move_on_after(took_s * chance.uniform(0.3, 0.95)):
                await process.wait()
            if process.returncode is None:
                process.kill()
                killed += 1
            await process.aclose()
        assert await finish(folder) == expected
        assert git(folder / "project", "rev-list", "--count", "HEAD") == "2"
        assert git(folder / "project", "status", "--short") == ""
    assert killed >= 6
