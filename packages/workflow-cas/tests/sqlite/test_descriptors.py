"""A process that may open no more files, by a real limit."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import errno, os, resource, sys
from contextlib import ExitStack
from pathlib import Path
import anyio
from workflow_cas import StoreError, content, open_store

async def use(path, name, **options):
    async with open_store(path, **options) as store:
        if not options:
            await store.commit([content(name.encode())])
        await store.get(content(b"there" if options else name.encode()).hash)
        await store.verify()

async def main(folder):
    path = folder / "store.sqlite3"
    async with open_store(path) as store:
        await store.commit([content(b"there")])
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    for left in range(9):
        for what in (path, folder / f"new{left}" / "store.sqlite3"):
            for options in ({}, {"read_only": True}) if what is path else ({},):
                taken = []
                while True:
                    try:
                        taken.append(os.open(os.devnull, os.O_RDONLY))
                    except OSError as error:
                        assert error.errno == errno.EMFILE
                        break
                for fd in taken[:left]:
                    os.close(fd)
                try:
                    await use(what, f"{left}", **options)
                    outcome = "ok"
                except StoreError as error:
                    outcome = f"{type(error).__name__}: {error}"
                except BaseException as error:
                    outcome = f"untyped {error!r}"
                for fd in taken[left:]:
                    os.close(fd)
                print(left, what.parent.name, sorted(options), outcome)

anyio.run(main, Path(sys.argv[1]))
"""


@pytest.mark.timeout(60)
def test_too_few_file_descriptors_are_named_by_every_way_to_use_a_store(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 27
    for line in lines:
        outcome = line.partition("] ")[2]
        named = outcome.startswith("StoreError: ") and (
            "too few file descriptors are left" in outcome or "there is no such file" in outcome
        )
        assert outcome == "ok" or named, line
    assert lines[0].partition("] ")[2].startswith("StoreError: ")
    assert lines[-1].endswith("ok")
