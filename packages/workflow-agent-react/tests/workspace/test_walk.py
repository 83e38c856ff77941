import os
import subprocess
from pathlib import Path

import pytest

from workflow_agent_react.workspace._walk import walk
from workflow_agent_react.workspace._workspace import Workspace
from workflow_workspace import Effort


def seen(root: Path, folder: str = ".") -> list[str]:
    with Workspace(root) as workspace:
        return [entry.path for entry in walk(workspace, folder)]


def make(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).touch()


def test_the_order_is_by_name_with_folders_before_what_is_in_them(tmp_path: Path) -> None:
    make(tmp_path, "b/z", "b/a/x", "a", "b.txt", "c", ".git/config", "d/.git/x")

    assert seen(tmp_path) == ["a", "b", "b/a", "b/a/x", "b/z", "b.txt", "c", "d"]


def test_links_are_told_and_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "in/file")
    (tmp_path / "link").symlink_to("in")
    (tmp_path / "up").symlink_to("..")
    os.mkfifo(tmp_path / "pipe")

    with Workspace(tmp_path) as workspace:
        kinds = {entry.path: entry.kind for entry in walk(workspace, ".")}

    assert kinds == {
        "in": "folder",
        "in/file": "file",
        "link": "link",
        "up": "link",
        "pipe": "other",
    }


def test_what_is_ignored_is_what_git_ignores(tmp_path: Path) -> None:
    """Compares with `git check-ignore`, file by file."""
    rules = {
        ".gitignore": "*.log\n!keep.log\nbuild/\n/top\ndocs/*.pdf\n**/tmp\na/**/z\n# no\n\\#yes\n",
        "sub/.gitignore": "!deep.log\n*.txt\n/only\ninner/\n",
        "sub/inner/.gitignore": "!back.txt\n",
        "sub/more/.gitignore": "!*.txt\n",
    }
    names = ["x.log", "keep.log", "deep.log", "top", "z", "tmp", "a.txt", "back.txt", "#yes"]
    names += ["p.pdf", "only", "build"]
    folders = ["", "sub/", "sub/inner/", "sub/more/", "build/", "docs/", "docs/x/", "a/", "a/b/c/"]
    make(tmp_path, *(f"{f}{n}" for f in folders for n in names if f"{f}{n}" != "build"))
    for path, text in rules.items():
        (tmp_path / path).write_text(text)
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    listed = subprocess.run(
        ["git", "-C", tmp_path, "ls-files", "-z", "--others", "--exclude-standard"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout

    files = {path for path in seen(tmp_path) if (tmp_path / path).is_file()}

    assert files == set(listed.rstrip("\0").split("\0"))


@pytest.mark.parametrize(
    ("rules", "kept"),
    [
        (b"\xef\xbb\xbf*.log\n", ["b.txt"]),
        (b"*.log\r\n*.txt\r\n", []),
        ("x\x0cy\u2028b.txt\n*.log".encode(), ["b.txt"]),
        (b"#".ljust(64 * 1024 - 2, b"x") + b"\n*.log\n", ["a.log", "b.txt"]),
    ],
)
def test_rules_are_lines_as_git_has_them_and_none_is_cut(
    tmp_path: Path, rules: bytes, kept: list[str]
) -> None:
    make(tmp_path, "a.log", "b.txt")
    (tmp_path / ".gitignore").write_bytes(rules)

    assert seen(tmp_path) == [".gitignore", *kept]


def test_an_ignored_folder_is_shown_when_it_is_asked_for(tmp_path: Path) -> None:
    make(tmp_path, "dist/a.js", "dist/b.map", "dist/sub/c.js")
    (tmp_path / ".gitignore").write_text("dist/\n*.js\n")
    (tmp_path / "dist" / ".gitignore").write_text("*.map\n")

    assert seen(tmp_path) == [".gitignore"]
    assert seen(tmp_path, "dist") == ["dist/.gitignore", "dist/a.js", "dist/sub", "dist/sub/c.js"]
    assert seen(tmp_path, "dist/sub") == ["dist/sub/c.js"]


def test_a_gitignore_that_leads_out_is_no_rule(tmp_path: Path) -> None:
    root = tmp_path / "proj"
    make(root, "a")
    (tmp_path / "rules").write_text("a\n")
    (root / ".gitignore").symlink_to("../rules")

    assert seen(root) == [".gitignore", "a"]


def test_stars_are_matched_without_trying_each_way(tmp_path: Path) -> None:
    make(tmp_path, "a" * 200, "a" * 200 + "b", "b.log")
    (tmp_path / ".gitignore").write_text("*a" * 100 + "*b\n*.log\n")

    assert seen(tmp_path) == [".gitignore", "a" * 200]


def steps(root: Path) -> int:
    """What the rules of a walk took."""
    effort = Effort()
    with Workspace(root) as workspace:
        assert list(walk(workspace, ".", effort=effort))
    return Effort().steps - effort.steps


@pytest.mark.parametrize(
    "rule", ["*a" * 20 + "b", "**/a/" * 6 + "b", "[!b]*" * 20 + "c", "*[a-z]" * 20, "a*" * 30 + "b"]
)
def test_what_rules_take_grows_with_their_number_and_the_length_of_names(
    tmp_path: Path, rule: str
) -> None:
    make(tmp_path, "a" * 120, "a/a/a/a/" + "a" * 100)
    counts: list[int] = []
    for number in (10, 20, 40):
        (tmp_path / ".gitignore").write_text(f"{rule}\n" * number)
        counts.append(steps(tmp_path))
    assert counts[2] - counts[1] <= 2.1 * (counts[1] - counts[0])
    assert counts[2] <= 40 * (3 * len(rule) + 700) + 100


@pytest.mark.parametrize("nested", [pytest.param(False, marks=pytest.mark.slow), True])
def test_all_rules_together_are_bounded_and_then_nothing_more_is_left_out(
    tmp_path: Path, *, nested: bool
) -> None:
    rules = "*a*b*c*d*e*f*g*h\n" * 3_000 + "*.log\n"
    names = [f"{number}{'a' * 200}" for number in range(30)]
    for folder in [f"f{number}" for number in range(20)] if nested else ["."]:
        make(tmp_path, *(f"{folder}/{name}" for name in names), f"{folder}/z.log")
        (tmp_path / folder / ".gitignore").write_text(rules)
    effort = Effort()
    with Workspace(tmp_path) as workspace:
        paths = [entry.path for entry in walk(workspace, ".", effort=effort)]
    assert effort.is_spent
    assert effort.steps > -100_000  # it stopped within a file
    assert paths[-1].endswith("z.log")


def test_a_broken_rule_does_not_undo_the_others(tmp_path: Path) -> None:
    make(tmp_path, "a.log", "b")
    (tmp_path / ".gitignore").write_bytes(b"!\n\xff\xfe\n*.log\n//\n[\n")

    assert seen(tmp_path) == [".gitignore", "b"]


def test_a_very_deep_tree_is_walked_to_a_bound(tmp_path: Path) -> None:
    make(tmp_path, "/".join(["d"] * 100))

    assert len(seen(tmp_path)) == 65
