"""Bundles as real files: whole, read-only, mended when changed, and removed when not needed."""

import os
import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from workflow_cas import content
from workflow_register import remove_unpacked
from workflow_register._files import locked
from workflow_register.bundles import _unpack
from workflow_register.bundles._archive import Bundle, pack
from workflow_register.bundles._unpack import unpack

FILES = {"prompts/a.md": b"Be kind.", "prompts/deep/b.md": b"", "c.bin": bytes(range(256))}
BUNDLE = pack("entry.py", {"entry.py": b"x = 1\n", "pkg/__init__.py": b""}, FILES)
ALL = {**BUNDLE.sources, **FILES}


def read(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if not path.is_dir() or path.is_symlink()
    }


def test_a_bundle_is_unpacked_once_and_read_only(tmp_path: Path) -> None:
    path = unpack(BUNDLE, tmp_path / "unpacked")
    assert path == tmp_path / "unpacked" / content(BUNDLE.data).hash
    assert read(path) == ALL
    assert {each.stat().st_mode & 0o222 for each in path.rglob("*")} == {0}
    inode = path.stat().st_ino
    assert unpack(BUNDLE, tmp_path / "unpacked").stat().st_ino == inode
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def overwrite(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(b"Be mean.")
    path.chmod(0o444)


def replace_by_link(path: Path) -> None:
    path.parent.chmod(0o755)
    other = path.parents[3] / "other.md"
    other.write_bytes(b"Be kind.")
    path.unlink()
    path.symlink_to(other)


def add_beside(path: Path) -> None:
    path.parent.chmod(0o755)
    (path.parent / "more.py").write_text("")


def link_folder(path: Path) -> None:
    path.parents[1].chmod(0o755)
    moved = path.parents[3] / "moved"
    path.parent.chmod(0o755)
    path.parent.rename(moved)
    path.parent.symlink_to(moved)


def link_all(path: Path) -> None:
    moved = path.parents[3] / "moved"
    path.parents[1].rename(moved)
    path.parents[1].symlink_to(moved)


def make_file_of_all(path: Path) -> None:
    path.parents[1].rename(path.parents[3] / "moved")
    path.parents[1].write_text("no folder")


def remove(path: Path) -> None:
    path.parent.chmod(0o755)
    path.unlink()


def make_writable(path: Path) -> None:
    path.chmod(0o644)


CHANGES: list[Callable[[Path], object]] = [
    overwrite,
    replace_by_link,
    add_beside,
    link_folder,
    link_all,
    make_file_of_all,
    remove,
    make_writable,
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_what_somebody_changed_is_mended_and_what_it_linked_to_is_left_alone(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    path = unpack(BUNDLE, tmp_path / "unpacked")
    change(path / "prompts" / "a.md")
    outside = {each: each.read_bytes() for each in tmp_path.glob("*.md")}
    again = unpack(BUNDLE, tmp_path / "unpacked")
    assert again == path
    assert not path.is_symlink()
    assert read(path) == ALL
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    assert {each: each.read_bytes() for each in tmp_path.glob("*.md")} == outside


def test_many_at_once_come_to_one_whole_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        paths = set(pool.map(unpack, [BUNDLE] * 16, [tmp_path] * 16))
    assert len(paths) == 1
    assert read(paths.pop()) == ALL
    assert len(list(tmp_path.iterdir())) == 1


def test_a_whole_folder_stays_in_its_place_whatever_others_thought_of_it_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inodes: list[int] = []

    @contextmanager
    def late(folder: Path, *, timeout_s: float) -> Generator[None]:
        monkeypatch.setattr(_unpack, "locked", locked)
        inodes.append(unpack(BUNDLE, folder).stat().st_ino)  # another is quicker
        with locked(folder, timeout_s=timeout_s):
            yield

    monkeypatch.setattr(_unpack, "locked", late)
    assert [unpack(BUNDLE, tmp_path).stat().st_ino] == inodes


def test_the_caches_of_python_are_deleted_and_the_folder_stays(tmp_path: Path) -> None:
    path = unpack(BUNDLE, tmp_path)
    inode = path.stat().st_ino
    for folder in (path, path / "pkg", path / "prompts" / "deep"):
        mode = folder.stat().st_mode
        folder.chmod(0o755)
        (folder / "__pycache__").mkdir()
        (folder / "__pycache__" / "entry.cpython-311.pyc").write_bytes(b"other code")
        folder.chmod(mode)
    again = unpack(BUNDLE, tmp_path)
    assert read(again) == ALL
    assert again.stat().st_ino == inode
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    assert not list(path.rglob("__pycache__"))


KILLED = """
import os, signal, sys
from pathlib import Path
from workflow_register import remove_unpacked
from workflow_register.bundles._unpack import unpack
from workflow_register._files import locked
from workflow_register.bundles import _unpack
from workflow_register.bundles._archive import read_bundle

bundle = read_bundle(Path(sys.argv[1]).read_bytes())
for number in range(100):
    folder = Path(sys.argv[2]) / str(number)
    child = os.fork()
    if child == 0:
        left = number
        def count(event, args):
            global left
            if event in {"open", "os.mkdir", "os.chmod", "os.rename"}:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(count)
        unpack(bundle, folder)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    path = unpack(bundle, folder)
    assert {name: (path / name).read_bytes() for name in bundle.files} == bundle.files, number
    remove_unpacked(folder, keep=frozenset({path.name}), keep_newer_than_s=0)
    assert [each.name for each in folder.iterdir()] == [path.name], number
    if status == 0:
        print(number)
        break
"""


def test_a_process_that_is_killed_at_any_point_leaves_no_half_folder(tmp_path: Path) -> None:
    (tmp_path / "bundle.zip").write_bytes(BUNDLE.data)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "bundle.zip"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 15


def test_a_folder_that_cannot_be_written_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FileExistsError, match="file"):
        unpack(BUNDLE, tmp_path / "file")


def test_what_nobody_needs_is_removed_and_what_was_just_used_is_not(tmp_path: Path) -> None:
    def other(number: int) -> Bundle:
        return pack("entry.py", {"entry.py": b"x = %d\n" % number}, FILES)

    kept, used, old = (unpack(other(number), tmp_path) for number in range(3))
    (tmp_path / ".partial-left").mkdir()
    (tmp_path / "file").write_text("")
    for path in (kept, old, tmp_path / ".partial-left", tmp_path / "file"):
        os.utime(path, (1, 1))
    keep = frozenset({content(other(0).data).hash})
    gone = [".partial-left", old.name, "file"]
    dry = remove_unpacked(tmp_path, keep=keep, keep_newer_than_s=60, dry_run=True)
    assert sorted(dry) == sorted(gone)
    assert old.exists()
    removed = remove_unpacked(tmp_path, keep=keep, keep_newer_than_s=60)
    assert sorted(removed) == sorted(gone)
    assert {each.name for each in tmp_path.iterdir()} == {kept.name, used.name}
    assert remove_unpacked(tmp_path / "none", keep=keep, keep_newer_than_s=0) == []
