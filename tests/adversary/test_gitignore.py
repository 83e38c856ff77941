"""Generated rules against real git, and rules that are made to take long."""

import os
import random
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from workflow_agent_react.search._search import search_files
from workflow_agent_react.workspace._listing import list_files
from workflow_agent_react.workspace._walk import walk
from workflow_agent_react.workspace._workspace import Workspace
from workflow_workspace import Effort, Rules

PIECES = [
    b"a", b"b", b"ab", b"*", b"**", b"***", b"?", b"/", b"/", b"/", b"[ab]", b"[!a]", b"[^a/]",
    b"[a-c]", b"[c-a]", b"[]a]", b"[", b"]", b"[[:alpha:]]", b"[[:space:]]", b"[[:x:]]", b"[[:a]",
    b"[a-", b"[--a]", b"[a\\]]", b"[:", b"\\", b"\\a", b"\\*", b"\\/", b" ", b"\\ ", b"!", b"#",
    b".", b"x.log", b"*.log", b"-", b"\t", "é".encode(), b"[\xc3]", b"\xff", b"\x0b",
    b"**/", b"/**",
]  # fmt: skip
NAMES = [
    b"a", b"b", b"ab", b"abc", b"aab", b"x.log", b"*", b"a b", b"c ", b" ", b"[", b"]", b"-", b"\\",
    b"!a", b"#", b"A", "é".encode(), b"\xff", b"\x0b", b"a" * 200,
]  # fmt: skip


def pattern(rng: random.Random) -> bytes:
    made = b"".join(rng.choices(PIECES, k=rng.randint(1, 6)))
    made = (b"!" if rng.random() < 0.2 else b"") + (b"/" if rng.random() < 0.2 else b"") + made
    return made + rng.choice([b"", b"", b"", b"/", b"  ", b"\r"])


def rules(rng: random.Random) -> bytes:
    lines = [pattern(rng) for _ in range(rng.randint(1, 5))]
    return rng.choice([b"", b"\xef\xbb\xbf"]) + rng.choice([b"\n", b"\r\n"]).join(lines)


def fill(rng: random.Random, root: bytes) -> None:
    """Some files, and rules at the top and in some of the folders."""
    for _ in range(25):
        file = os.path.join(root, *rng.choices(NAMES, k=rng.randint(1, 4)))
        try:
            os.makedirs(os.path.dirname(file), exist_ok=True)
            with open(file, "ab"):
                pass
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    folders = [folder for folder, _, _ in os.walk(root)]
    for folder in [root, *rng.sample(folders, k=min(2, len(folders)))]:
        with open(os.path.join(folder, b".gitignore"), "wb") as file:
            file.write(rules(rng))


@pytest.mark.parametrize("seed", range(3))
def test_generated_rules_ignore_what_git_ignores(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    top = os.fsencode(tmp_path)
    for number in range(60):
        fill(rng, os.path.join(top, b"r%d" % number))
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    command = ["git", "-C", tmp_path, "ls-files", "-z", "--others", "--exclude-standard"]
    listed = subprocess.run(command, check=True, capture_output=True).stdout

    with Workspace(tmp_path) as workspace:
        effort = Effort()
        found = {e.path for e in walk(workspace, ".", effort=effort) if e.kind == "file"}
    assert not effort.is_spent
    assert {os.fsencode(path) for path in found} == set(filter(None, listed.split(b"\0")))


HOSTILE = {
    "stars": b"*a*a*a*a*a*a*a*b\n" * 3_800,
    "one long rule": b"*a" * 32_000 + b"b",
    "folders": b"**/a/**/a/**/b\n" * 4_000,
    "a long path": b"**/" + b"a*/" * 1_300 + b"b\n" + b"**/a*/" * 9_000,
    "negated sets": b"\n".join([b"[!b]*" * 16 + b"c"] * 750),
    "large sets": b"*[\x01-\xfe]c\n" * 8_000,
    "suffixes": b"\n".join(b"*%b%d" % (b"x" * (i % 250), i) for i in range(450)),
    "names": b"\n".join(b"n%d" % i for i in range(9_000)),
    "again and again": b"*a*\n!*a*\n" * 7_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_rules_that_are_made_to_take_long_stop_within_their_bound(
    tmp_path: Path, kind: str
) -> None:
    effort = Effort(2_000_000)
    made = Rules.of(HOSTILE[kind], effort)
    long = "/".join(["a" * 250] * 16).encode()
    while not effort.is_spent:
        before = effort.steps
        for path in (long, b"src/a.py", b"a" * 255):
            made.decide(path, folder=False, effort=effort)
        assert before - effort.steps >= 3  # so it comes to an end
        if kind in {"one long rule", "names", "suffixes"} and effort.steps < 1_500_000:
            break
    assert effort.steps > -300_000


@pytest.mark.slow
async def test_a_hostile_gitignore_holds_up_no_search_and_the_model_is_told(
    tmp_path: Path,
) -> None:
    for number in range(300):
        folder = tmp_path / f"f{number % 20}" / ("a" * 200)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{'a' * 240}{number}").write_text("needle")
    for number, data in enumerate(HOSTILE.values()):
        (tmp_path / f"f{number}" / ".gitignore").write_bytes(data)
    (tmp_path / ".gitignore").write_bytes(HOSTILE["stars"])
    began = time.monotonic()
    text = await search_files(partial(Workspace, tmp_path), "needle")
    assert time.monotonic() - began < 20
    assert "some rules of .gitignore were not applied" in text
    with Workspace(tmp_path) as workspace:
        assert "some rules of .gitignore were not applied" in list_files(workspace, depth=9)
