"""The tools that write leave alone what makes git run a program."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from workflow_agent_react._errors import ToolError
from workflow_agent_react.workspace._files import patch_file, write_file
from workflow_agent_react.workspace._patch import Edit
from workflow_agent_react.workspace._workspace import Workspace

HOST = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
EVIL = "[core]\n\tfsmonitor = touch {ran}; false\n\tbare = false\n\tworktree = ..\n"


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", folder, *words], env=HOST, capture_output=True, check=False)


def everything(root: Path) -> dict[str, bytes]:
    files = [path for path in root.rglob("*") if path.is_file()]
    return {os.fspath(path): path.read_bytes() for path in files}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "proj"
    git(tmp_path, "init", "-q", "proj")
    (root / "sub").mkdir()
    (root / "link").symlink_to(".git")
    (root / "sub" / "up").symlink_to("../.git/config")
    git(root, "init", "-q", "nested")
    git(root, "init", "-q", "--bare", "bare")
    return root


IN_GIT = [
    *(".git/config", ".git/config.worktree", ".git/hooks/pre-commit", ".git/commondir"),
    *(".git/gitdir", ".git/objects/info/alternates", ".git/info/attributes", ".git/HEAD"),
    *(".git/modules/x/config", ".git/worktrees/x/commondir", "nested/.git/config"),
    *("sub/.git", "sub/.git/config", "new/.git/hooks/x", "link/config", "sub/up", "./.git//config"),
    *("sub/../.git/config", ".GIT/config", ".g\u200bit/config", ".git/new", "bare/config"),
    *("bare/hooks/post-update", "bare/new", "bare/objects/info/alternates"),
]


@pytest.mark.parametrize("path", IN_GIT)
def test_nothing_of_git_is_written(repository: Path, path: str) -> None:
    before = everything(repository)

    with (
        Workspace(repository) as workspace,
        pytest.raises(ToolError, match=r"belongs to git|bare git repository"),
    ):
        write_file(workspace, path, "x\n")

    assert everything(repository) == before
    assert not (repository / "sub" / ".git").exists()
    assert not (repository / "new" / ".git").exists()


@pytest.mark.parametrize("path", [".git/config", "nested/.git/config", "bare/config", "sub/up"])
def test_nothing_of_git_is_patched(repository: Path, path: str) -> None:
    before = everything(repository)

    with Workspace(repository) as workspace, pytest.raises(ToolError, match="git"):
        patch_file(workspace, path, [Edit("[core]", "[core]\n\tfsmonitor = x", replace_all=False)])

    assert everything(repository) == before


PIECES = {"HEAD": "ref: refs/heads/main\n", "config": EVIL, "objects/x": "", "refs/x": ""}


@pytest.mark.parametrize(
    "order",
    [
        ["HEAD", "config", "objects/x", "refs/x"],
        ["objects/x", "refs/x", "config", "HEAD"],
        ["refs/x", "HEAD", "objects/x", "config"],
    ],
)
@pytest.mark.parametrize("folder", [".", "planted", "a/b"])
def test_no_repository_can_be_put_together(
    tmp_path: Path, order: Sequence[str], folder: str
) -> None:
    root, ran = tmp_path / "proj", tmp_path / "ran"
    root.mkdir()
    refused: list[str] = []
    with Workspace(root) as workspace:
        for name in order:
            try:
                write_file(workspace, f"{folder}/{name}", PIECES[name].format(ran=ran))
            except ToolError as error:
                refused.append(str(error))

    git(root / folder, "status")
    assert not ran.exists()
    assert refused
    assert "git runs what its config says" in refused[0]


def test_what_the_configuration_names_is_left_to_a_person(repository: Path) -> None:
    (repository / "hooks").mkdir()
    for name in ("included", "clean.sh", "hooks/pre-commit", "status", "mine"):
        (repository / name).write_text("old\n")
    git(repository, "config", "include.path", "../included")
    git(repository, "config", "core.hooksPath", "hooks")
    git(repository, "config", "filter.x.clean", "sh clean.sh %f")
    git(repository, "config", "alias.st", "status")

    with Workspace(repository) as workspace:
        for name in ("included", "clean.sh", "hooks/pre-commit", "hooks/new"):
            with pytest.raises(ToolError, match="named by git's configuration"):
                write_file(workspace, name, "x")
        for name in ("status", "mine", "new"):
            write_file(workspace, name, "x")


def test_files_beside_git_are_written(repository: Path) -> None:
    names = [".gitignore", ".gitattributes", ".gitmodules", ".github/workflows/x.yml", "a.git"]
    names += ["git/config", "sub/HEAD", "sub/refs/x", "config", "hooks/pre-commit"]

    with Workspace(repository) as workspace:
        for name in names:
            write_file(workspace, name, "x")

    assert [(repository / name).read_text() for name in names] == ["x"] * len(names)


def test_a_file_in_a_worktree_inside_the_workspace_is_written(repository: Path) -> None:
    git(
        repository, "-c", "user.name=x", "-c", "user.email=x", "commit", "--allow-empty", "-qm", "x"
    )
    git(repository, "worktree", "add", "-q", "tree")

    with Workspace(repository) as workspace:
        write_file(workspace, "tree/file", "x")
        with pytest.raises(ToolError, match="belongs to git"):
            write_file(workspace, "tree/.git", "gitdir: evil")

    assert (repository / "tree" / "file").read_text() == "x"
