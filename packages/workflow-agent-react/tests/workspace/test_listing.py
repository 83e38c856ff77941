import os
from pathlib import Path

import pytest

from workflow_agent_react._errors import OutsideWorkspace
from workflow_agent_react.workspace._listing import MAX_LISTED, list_files
from workflow_agent_react.workspace._names import printable
from workflow_agent_react.workspace._workspace import Workspace


def listed(root: Path, path: str = ".", *, depth: int = 3) -> list[str]:
    with Workspace(root) as workspace:
        return list_files(workspace, path, depth=depth).split("\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "proj"
    (root / "src" / "app").mkdir(parents=True)
    (root / "README.md").write_text("# Title\nfoo(bar) and more\n")
    (root / "src" / "app" / "main.py").write_bytes(b"import os\r\n\r\ndef main():\r\n    pass\r\n")
    (root / "src" / "util.js").write_text("function main() {}\n")
    (root / "data.bin").write_bytes(b"def main\0")
    (root / ".gitignore").write_text("*.log\n")
    (root / "x.log").write_text("def main\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("def main of somebody else\n")
    (root / "out").symlink_to("../outside")
    (root / "same.py").symlink_to("src/app/main.py")
    os.mkfifo(root / "pipe")
    return root


def test_a_listing_shows_folders_files_and_links_by_their_whole_path(root: Path) -> None:
    assert listed(root) == [
        ".gitignore",
        "README.md",
        "data.bin",
        "out (link)",
        "pipe (not a regular file)",
        "same.py (link)",
        "src/",
        "src/app/",
        "src/app/main.py",
        "src/util.js",
    ]
    assert listed(root, "src/app") == ["src/app/main.py"]
    assert listed(root, "./src/", depth=1) == ["src/app/", "src/app/main.py", "src/util.js"]


def test_a_tree_that_is_not_small_is_shown_to_the_depth_that_was_asked(tmp_path: Path) -> None:
    for number in range(21):
        (tmp_path / f"d{number:02}").mkdir()
        (tmp_path / f"d{number:02}/f").touch()

    assert listed(tmp_path, depth=1) == [
        *[f"d{number:02}/" for number in range(21)],
        "(21 folders not opened; call list_files with one of the folders as path)",
    ]


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    assert listed(tmp_path) == ["(. is empty)"]


def test_a_link_out_is_not_listed_through(root: Path) -> None:
    with pytest.raises(OutsideWorkspace):
        listed(root, "out")


def test_a_large_tree_is_cut_below_and_not_above(tmp_path: Path) -> None:
    for name in ("a", "b"):
        for number in range(200):
            (tmp_path / name / f"{number:03}").mkdir(parents=True)
            (tmp_path / name / f"{number:03}" / "file").touch()
    (tmp_path / "z").touch()

    shown = listed(tmp_path)

    assert len(shown) == MAX_LISTED + 1
    assert shown[0] == "a/"
    assert "a/199/" in shown
    assert shown[-2] == "z"
    assert shown[-1] == (
        "(103 more in 'b', and more below what is listed; "
        "call list_files with one of the folders as path)"
    )


def test_a_name_that_breaks_lines_is_shown_on_one(tmp_path: Path) -> None:
    (tmp_path / "a\nb\x1b").touch()
    os.close(os.open(os.fsencode(tmp_path) + b"/\xff", os.O_CREAT))

    assert listed(tmp_path) == ["a\\nb\\x1b", "\\udcff"]
    assert printable("grün") == "grün"
