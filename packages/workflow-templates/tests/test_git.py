"""Trees and commits by git, with what a repository's own settings would run."""

from pathlib import Path

import pytest

from workflow_templates import Author, GitFailed
from workflow_templates._git import Repository

from .developers import git, make_project

ADA = Author(name="Ada", email="ada@localhost", timestamp_s=1_000_000_000)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    make_project(tmp_path)
    return Repository(tmp_path)


def test_a_commit_that_is_made_again_is_the_same(repository: Repository) -> None:
    base = repository.head()
    (repository.folder / "new\tname.txt").write_text("1")
    tree = repository.take_tree(base)

    first = repository.commit(tree, base, "Add a name\n", ADA)
    second = repository.commit(tree, base, "Add a name\n", ADA)

    assert first == second == repository.head()
    assert repository.changed(repository.tree_of(base), tree) == {"new\tname.txt": "A"}
    assert git(repository.folder, "status", "--short") == ""


def test_a_commit_is_refused_where_another_one_came_between(repository: Repository) -> None:
    base = repository.head()
    (repository.folder / "a").write_text("1")
    tree = repository.take_tree(base)
    git(repository.folder, "commit", "-q", "--allow-empty", "-m", "Between")

    with pytest.raises(GitFailed, match="somebody committed meanwhile"):
        repository.commit(tree, base, "Mine\n", ADA)


def test_no_hook_or_monitor_of_the_repository_runs(repository: Repository) -> None:
    folder = repository.folder
    trap = folder / ".git" / "trap"
    trap.write_text("#!/bin/sh\ntouch ran\n")
    trap.chmod(0o755)
    for hook in ("pre-commit", "reference-transaction", "post-index-change", "post-commit"):
        (folder / ".git" / "hooks" / hook).symlink_to(trap)
    git(folder, "config", "core.fsmonitor", str(trap))
    git(folder, "config", "diff.external", str(trap))
    (folder / "a").write_text("1")

    base = repository.head()
    tree = repository.take_tree(base)
    repository.diff(repository.tree_of(base), tree)
    repository.commit(tree, base, "Add\n", ADA)

    assert not list(folder.rglob("ran"))


def test_the_first_commit_has_no_parent(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("1")
    repository = Repository(tmp_path)

    made = repository.commit(repository.take_tree(""), "", "Begin\n", ADA)

    assert repository.head() == made
    assert git(tmp_path, "log", "--format=%P") == ""


@pytest.mark.parametrize("claimed", ["", "HEAD", "main", "1a2b3c4", "a" * 40, "--help", "A" * 40])
def test_only_a_whole_hash_of_a_commit_is_known(repository: Repository, claimed: str) -> None:
    assert not repository.knows(claimed)
    assert repository.knows(repository.head())
    assert not repository.knows(repository.tree_of(repository.head()))


def test_a_folder_below_the_top_is_refused(repository: Repository) -> None:
    (repository.folder / "below").mkdir()

    with pytest.raises(GitFailed, match="give that folder"):
        Repository(repository.folder / "below").check()
