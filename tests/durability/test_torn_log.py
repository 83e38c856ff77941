"""SQLite's log cut at every byte, as a crash of the machine may leave it: what was whole stays."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from workflow_cas import Store, open_store
from workflow_cas.sqlite._database import Connections
from workflow_execute import Engine, list_threads, read_thread
from workflow_protocol import Hash, ThreadId

from .torn_writer import ROUNDS, TEXT, writing

WRITER = Path(__file__).with_name("torn_writer.py")
SWEPT_BYTES = 96 * 1024
VALUE = "".join(f"{number} {TEXT}" + f"written {number}" * 2 for number in range(ROUNDS))


@dataclass(frozen=True)
class Commit:
    """What stands in the log once it has so many bytes."""

    size: int
    objects: frozenset[str]
    refs: dict[str, str]


@dataclass(frozen=True)
class Killed:
    """What a writer left that was killed: the tables alone in the file, all else in the log."""

    file: bytes
    log: bytes
    commits: list[Commit]
    """All of them, after the empty store."""

    def left_by(self, cut: int) -> Commit:
        """The last commit that is whole."""
        return next(each for each in reversed(self.commits) if each.size <= cut)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    """A writer that was killed with SIGKILL."""
    path = tmp_path_factory.mktemp("killed") / "store.sqlite3"
    done = subprocess.run([sys.executable, WRITER, path], stdout=subprocess.PIPE, check=False)
    assert done.returncode == -signal.SIGKILL
    commits = [Commit(0, frozenset(), {})]
    for line in map(json.loads, done.stdout.splitlines()):
        refs = {**commits[-1].refs, **dict(line["moves"])}
        commits.append(
            Commit(
                line["size"],
                commits[-1].objects | set(line["objects"]),
                {name: hash for name, hash in refs.items() if hash is not None},
            )
        )
    log = path.with_name(path.name + "-wal").read_bytes()
    assert len(log) == commits[-1].size > 2 * SWEPT_BYTES
    return Killed(path.read_bytes(), log, commits)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_cut_at_every_byte_leaves_exactly_the_commits_that_are_whole(
    killed: Killed, tmp_path: Path
) -> None:
    path, log = tmp_path / "store.sqlite3", tmp_path / "store.sqlite3-wal"
    path.write_bytes(killed.file)
    log.write_bytes(killed.log)
    seen: set[int] = set()
    for cut in range(len(killed.log), len(killed.log) - SWEPT_BYTES - 1, -1):
        os.truncate(log, cut)
        expected = killed.left_by(cut)
        seen.add(expected.size)
        assert _contents(path) == (expected.objects, expected.refs), cut
        if cut % 64 == 0:
            assert _contents_of_store(path) == (expected.objects, expected.refs), cut
        path.with_name(path.name + "-shm").unlink()  # whose process died with the machine
    assert path.read_bytes() == killed.file
    assert len(seen) >= 4


def _contents(path: Path) -> tuple[set[str], dict[str, str]]:
    """The hashes of all objects, and the refs, of a file that is opened as after a crash."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return _rows(connection)


def _contents_of_store(path: Path) -> tuple[set[str], dict[str, str]]:
    """The same as the store opens it, which looks first whether the file has its end."""
    connections = Connections(path, durability="full", read_only=True, busy_timeout_s=1)
    connections.open()
    try:
        with connections.reader() as connection:
            return _rows(connection)
    finally:
        connections.close()


def _rows(connection: sqlite3.Connection) -> tuple[set[str], dict[str, str]]:
    names = connection.execute("SELECT hash FROM name JOIN object USING (id)").fetchall()
    refs = connection.execute("SELECT name, hash FROM ref").fetchall()
    return {hash.hex() for (hash,) in names}, {name: hash.hex() for name, hash in refs}


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize("padding", [0, 512])
async def test_a_thread_goes_on_from_each_commit_that_the_cut_log_holds(
    killed: Killed, tmp_path: Path, padding: int
) -> None:
    path, log = tmp_path / "store.sqlite3", tmp_path / "store.sqlite3-wal"
    ends = [each.size for each in killed.commits if each.size][:: 1 if padding else 4]
    for cut in sorted({cut for end in ends for cut in (end - 1, end, end + 1)}):
        path.write_bytes(killed.file)
        log.write_bytes(killed.log[:cut] + bytes(padding))
        expected = killed.left_by(cut)
        async with open_store(path) as store:
            assert await store.refs() == expected.refs
            assert (await store.verify()).objects == len(expected.objects)
            for hash in expected.objects:
                assert (await store.get(Hash(hash))).hash == hash
            await _go_on(store)
            assert (await store.verify()).ok


async def _go_on(store: Store) -> None:
    """Run the thread to its end, as far as that may be done."""
    again: list[str] = []
    threads = await list_threads(store)
    if not threads:
        done = await Engine(store).start(writing(again), "p")
    elif await _is_completed(store, threads[0]):
        return
    else:
        done = await Engine(store).resume(writing(again), threads[0])
    if done.state == "failed":  # an unsafe effect was begun, and not finished in the log
        assert "was never recorded" in done.summary
    else:
        assert done.value == VALUE
    assert len(again) <= 4 * ROUNDS


async def _is_completed(store: Store, thread_id: ThreadId) -> bool:
    return (await read_thread(store, thread_id)).status.state == "completed"
