"""Locks in a process that may open no more files."""

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from workflow_cas import StoreError
from workflow_execute.owners._locks import is_owned, owning


@pytest.fixture
def no_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
    taken: list[int] = []
    try:
        while len(taken) < used:
            try:
                taken.append(os.open(os.devnull, os.O_RDONLY))
            except OSError:
                break
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.skipif(sys.platform != "linux", reason="counts descriptors in /proc")
async def test_a_thread_that_cannot_be_locked_for_want_of_descriptors_says_so(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async with owning(tmp_path, "T"):
        pass
    request.getfixturevalue("no_descriptors")
    with pytest.raises(StoreError, match="too few file descriptors are left"):
        async with owning(tmp_path, "T"):
            pass
    with pytest.raises(StoreError, match="too few file descriptors are left"):
        is_owned(tmp_path, "T")
