from pathlib import Path

import pytest

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace._files import read_file
from workflow_agent_react.workspace._listing import list_files
from workflow_agent_react.workspace._workspace import Workspace


def refusal(root: Path, path: str) -> str:
    with Workspace(root) as workspace, pytest.raises(ToolError) as caught:
        read_file(workspace, path)
    return str(caught.value)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src" / "app").mkdir(parents=True)
    (tmp_path / "README.md").touch()
    (tmp_path / "src" / "app" / "main.py").touch()
    (tmp_path / "src" / "app" / "util.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("reame.md", "README.md"),
        ("readme.md", "README.md"),
        ("main.py", "src/app/main.py"),
        ("src/main.py", "src/app/main.py"),
        ("src/app/mian.py", "src/app/main.py"),
        ("utils.py", "src/app/util.py"),
    ],
)
def test_a_wrong_path_is_answered_with_what_was_probably_meant(
    root: Path, asked: str, meant: str
) -> None:
    assert refusal(root, asked).startswith(f"there is no {asked!r}; did you mean {meant!r}")


def test_a_path_like_nothing_is_answered_with_what_there_is(root: Path) -> None:
    (root / ".gitignore").write_text("*.log\n")
    (root / "x.log").touch()

    assert refusal(root, "nothing/alike.txt") == (
        "there is no 'nothing/alike.txt'; at the top there are '.gitignore', 'README.md', 'src/'"
    )
    for number in range(30):
        (root / f"f{number:02}").touch()
    assert refusal(root, "nothing/alike.txt").endswith("'f17' and 13 more")


def test_in_an_empty_workspace_there_is_nothing(tmp_path: Path) -> None:
    assert refusal(tmp_path, "a.txt") == "there is no 'a.txt'; the workspace is empty"


def test_other_failures_are_told_in_words(root: Path) -> None:
    (root / "loop").symlink_to("loop")

    assert refusal(root, "loop") == "'loop' is a link that leads in a circle"
    assert refusal(root, "README.md/x") == (
        "'README.md/x' is not a folder, or something on the way isn't one"
    )
    assert refusal(root, "n" * 300).endswith(": File name too long")


def test_a_folder_that_is_a_file_is_told(root: Path) -> None:
    with Workspace(root) as workspace, pytest.raises(ToolError, match="is not a folder"):
        list_files(workspace, "README.md")
