"""Which of many threads are run now."""

from pathlib import Path

import pytest

from workflow_execute.owners._locks import owned_among, owning
from workflow_protocol import ThreadId


@pytest.mark.parametrize("count", [3, 200])
async def test_of_many_threads_those_are_known_that_somebody_runs(
    tmp_path: Path, count: int
) -> None:
    ids = [ThreadId(f"T{number}") for number in range(count)]
    locks = tmp_path / "locks"
    assert owned_among(locks, ids) == set()  # there is no such folder yet
    async with owning(locks, "T0"), owning(locks, "T2"):
        for each in ids[3 : count // 2]:
            (locks / f"{each}.lock").touch()  # a run that is over
        assert owned_among(locks, ids) == {"T0", "T2"}
        assert owned_among(locks, ids[1:]) == {"T2"}
    assert owned_among(locks, ids) == set()
