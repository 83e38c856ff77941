import os
import threading
from pathlib import Path

import pytest

from workflow_register._files import locked, read_regular, write_atomically


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_atomically(tmp_path / "folder", b"new", mode=0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_lock_that_is_held_times_out_and_is_free_afterwards(tmp_path: Path) -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(tmp_path / "lock", timeout_s=5):
            held.set()
            done.wait(5)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(5)
    with (
        pytest.raises(TimeoutError, match="lock is locked"),
        locked(tmp_path / "lock", timeout_s=0),
    ):
        pass
    done.set()
    with locked(tmp_path / "lock", timeout_s=5):
        pass
    thread.join(5)


def test_only_a_regular_file_is_read_and_a_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"some bytes")
    assert read_regular(tmp_path / "file", 4) == b"some"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match=r"this is not a regular file: .*pipe"):
        read_regular(tmp_path / "pipe", 4)
    with pytest.raises(IsADirectoryError):
        read_regular(tmp_path, 4)
    with pytest.raises(OSError, match="not a regular file"):
        read_regular(Path("/dev/zero"), 4)
