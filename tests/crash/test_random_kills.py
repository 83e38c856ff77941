"""Kills at any time at all, also inside SQLite's own writes."""

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from workflow_cas import open_store
from workflow_execute import list_threads, read_thread

MANY = Path(__file__).with_name("many.py")
KILLS = 15
THREADS = 8


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", [1, 2])
async def test_eight_threads_of_one_process_survive_kills_at_random_times(
    tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    killed = 0
    while True:
        process = subprocess.Popen(  # noqa: ASYNC220 - nothing else runs here
            [sys.executable, str(MANY), str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        with process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            if killed < KILLS:
                time.sleep(dice.uniform(0, 0.08))  # noqa: ASYNC251 - the time is the point
                process.kill()
                killed += process.wait() != 0
            if process.wait() == 0:
                break

    async with open_store(tmp_path / "store.sqlite3") as store:
        assert (await store.verify()).ok
        threads = [await read_thread(store, each) for each in await list_threads(store)]
    assert [thread.status.state for thread in threads] == ["completed"] * THREADS
    assert [[step.value for step in thread.steps] for thread in threads] == [
        [b"3", b"4", b"1"]
    ] * THREADS
    assert killed >= 5
    for number in range(THREADS):
        lines = (tmp_path / str(number) / "ledger").read_text(encoding="utf-8").splitlines()
        ledger = Counter(lines)
        assert {n: ledger[f"charge {n}"] for n in range(1, 7)} == dict.fromkeys(range(1, 7), 1)
        assert len({line for line in lines if line.startswith("put")}) == 4
