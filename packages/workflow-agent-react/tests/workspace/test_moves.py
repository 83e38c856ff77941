"""Files are moved and deleted inside the workspace, and nothing is replaced or followed."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace import _moves
from workflow_agent_react.workspace._files import write_file
from workflow_agent_react.workspace._moves import delete_file, move_file
from workflow_agent_react.workspace._workspace import Workspace
from workflow_protocol import Work, working


def move(root: Path, path: str, to: str) -> str:
    with Workspace(root) as workspace:
        return move_file(workspace, path, to)


def delete(root: Path, path: str) -> str:
    with Workspace(root) as workspace:
        return delete_file(workspace, path)


def append(root: Path, path: str, content: str) -> str:
    with Workspace(root) as workspace:
        return write_file(workspace, path, content, append=True)


@pytest.fixture(params=["one step", "two steps"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "two steps":  # as on systems without renameat2
        monkeypatch.setattr(_moves, "_renameat2", lambda: None)
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "outside").write_text("outside")
    (folder / "a").write_text("a")
    (folder / "b").write_text("b")
    (folder / "dir").mkdir()
    (folder / "dir/in").write_text("in")
    (folder / "up").symlink_to("..")
    (folder / "out").symlink_to("../outside")
    return folder


def test_a_file_is_moved_with_its_mode_into_a_new_folder(root: Path) -> None:
    (root / "a").chmod(0o750)
    work = Work()

    with working(work):
        assert move(root, "a", "new/deep/a") == "moved a to new/deep/a"

    assert not (root / "a").exists()
    assert (root / "new/deep/a").read_text() == "a"
    assert stat.S_IMODE((root / "new/deep/a").stat().st_mode) == 0o750
    assert work.changed_paths == ("a", "new/deep/a")


def test_what_was_moved_and_deleted_is_told_by_its_real_path(root: Path) -> None:
    (root / "link").symlink_to("dir")
    work = Work()
    with working(work):
        move(root, "link/in", "link/on")
        delete(root, "link/on")

    assert work.changed_paths == ("dir/in", "dir/on", "dir/on")


def test_a_link_is_moved_and_deleted_itself(root: Path) -> None:
    move(root, "out", "dir/out")
    assert os.readlink(root / "dir/out") == "../outside"
    delete(root, "dir/out")

    assert not os.path.lexists(root / "dir/out")
    assert (root.parent / "outside").read_text() == "outside"


def test_an_empty_folder_is_deleted(root: Path) -> None:
    delete(root, "dir/in")

    assert delete(root, "dir/") == "deleted the empty folder dir"
    assert not (root / "dir").exists()


@pytest.mark.parametrize(
    ("path", "to", "reason"),
    [
        ("a", "b", "there is 'b' already"),
        ("a", "a", "there is 'a' already"),
        ("a", "dir", "such as 'dir/a'"),
        ("a", "dir/", "such as 'dir/a'"),
        ("a", "out", "there is 'out' already"),
        ("a", "up/a", "outside"),
        ("a", "../a", "outside"),
        ("a", "/a", "outside"),
        ("up/outside", "c", "outside"),
        ("dir", "other", "is a folder"),
        (".", "other", "is a folder"),
        ("none", "c", "there is no 'none'"),
        ("a", "b/c", "isn't one"),
        ("a", ".git/hooks/pre-commit", "belongs to git"),
        ("a", ".GIT", "belongs to git"),
        ("a", "x\0", "null character"),
    ],
)
def test_a_move_that_is_refused_changes_nothing(
    root: Path, path: str, to: str, reason: str
) -> None:
    before = everything(root.parent)

    with pytest.raises(ToolError, match=reason):
        move(root, path, to)

    assert everything(root.parent) == before


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("dir", "isn't empty; delete what list_files shows"),
        (".", "folder"),
        ("..", "outside"),
        ("up", None),
        ("up/outside", "outside"),
        ("none", "there is no 'none'"),
        ("a/", "isn't one"),
    ],
)
def test_nothing_but_what_is_named_is_deleted(root: Path, path: str, reason: str | None) -> None:
    before = everything(root.parent)

    if reason is None:
        delete(root, path)
        before.pop(str(root / path))
    else:
        with pytest.raises(ToolError, match=reason):
            delete(root, path)

    assert everything(root.parent) == before


def test_what_git_reads_is_neither_moved_nor_deleted(tmp_path: Path) -> None:
    for words in (["init", "-q"], ["config", "core.hooksPath", "tools/hooks"]):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    subprocess.run(["git", "-C", tmp_path, "init", "-q", "--bare", "bare"], check=True)
    (tmp_path / "tools/hooks").mkdir(parents=True)
    (tmp_path / "tools/hooks/pre-commit").write_text("true")
    (tmp_path / "a").write_text("a")
    (tmp_path / "part/objects").mkdir(parents=True)
    (tmp_path / "part/refs").mkdir()
    before = everything(tmp_path)

    held = [".git/config", ".git/HEAD", "bare/config", "bare/HEAD", "tools/hooks/pre-commit"]
    for path in held:
        with pytest.raises(ToolError, match="git"):
            move(tmp_path, path, "x")
        with pytest.raises(ToolError, match="git"):
            delete(tmp_path, path)
    for to in ("part/HEAD", "tools/hooks/post-commit", "bare/hooks/update"):
        with pytest.raises(ToolError, match="git"):
            move(tmp_path, "a", to)

    assert everything(tmp_path) == before


def test_pipes_stay(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ToolError, match="not a regular file"):
        move(tmp_path, "pipe", "b")
    with pytest.raises(ToolError, match="not a regular file"):
        delete(tmp_path, "pipe")


def test_a_file_that_comes_to_the_new_place_meanwhile_stays(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = _moves._refuse_taken  # pyright: ignore[reportPrivateUsage] - what the race slips past

    def and_then_it_comes(*place: object) -> None:
        looked(*place)  # pyright: ignore[reportArgumentType] - handed on as it came
        (root / "c").write_text("c")

    monkeypatch.setattr(_moves, "_refuse_taken", and_then_it_comes)
    with pytest.raises(ToolError, match="there is 'c' already"):
        move(root, "a", "c")

    assert (root / "a").read_text() == "a"
    assert (root / "c").read_text() == "c"


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"one\n", "two\n", b"one\ntwo\n"),
        (b"one\r\ntwo\n\r\n", "x\ny\r\n", b"one\r\ntwo\n\r\nx\r\ny\r\n"),
        (b"", "a\r\n", b"a\r\n"),
        ("\ufeffgrün\n".encode("utf-16-le"), "blau\n", "\ufeffgrün\nblau\n".encode("utf-16-le")),
        (b"\xef\xbb\xbfone\n", "é", b"\xef\xbb\xbfone\n\xc3\xa9"),
        (b"\x00\x01bin", "x", None),
    ],
)
def test_what_is_added_leaves_the_rest_byte_by_byte(
    tmp_path: Path, before: bytes, content: str, after: bytes | None
) -> None:
    (tmp_path / "f").write_bytes(before)

    if after is None:
        with pytest.raises(ToolError):
            append(tmp_path, "f", content)
        assert (tmp_path / "f").read_bytes() == before
        return
    added = len(after) - len(before)
    assert append(tmp_path, "f", content).startswith(f"added {added} byte")
    assert (tmp_path / "f").read_bytes() == after


def test_adding_to_a_line_without_an_end_is_said(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"one")

    assert append(tmp_path, "f", "two") == (
        "added 3 bytes to f (it has 6 bytes now; it had no newline at its end, so the last line "
        "goes on)"
    )
    assert append(tmp_path, "new", "x") == "wrote 1 byte to new (new file)"


def everything(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in folder.rglob("*"):
        if path.is_symlink():
            found[str(path)] = ("link", os.readlink(path))
        else:
            found[str(path)] = path.read_bytes() if path.is_file() else "folder"
    return found
