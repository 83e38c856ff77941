"""Measure versions of a folder against git: a first one, an unchanged folder, one path, a restore.

    uv run python scripts/bench/versions.py [--directory DIR] [--repeats N] [--files N]

Both read the same folder: source files of 1 to 4 kB, and a `.gitignore` as of a Python project. Git
runs `git add -A && git write-tree` in a shell, ours `FolderVersions.take` and the commit of what it
gives, on a SQLite store with full durability (git doesn't sync its objects). The last lines are a
commit of another thread that waits while a first version is taken.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import anyio

from workflow_cas import Store, content, open_store
from workflow_protocol import Hash
from workflow_workspace import FolderVersions, restore

_WORDS = (
    "return",
    "self",
    "value",
    "def",
    "import",
    "None",
    "for",
    "name",
    "in",
    "path",
    "=",
    "if",
)
_GITIGNORE = """\
__pycache__/\n*.py[cod]\n*$py.class\n*.so\nbuild/\ndist/\n.eggs/\n*.egg-info/\n*.egg\n*.manifest\n*.spec
htmlcov/\n.tox/\n.coverage\n.coverage.*\n.cache\n*.cover\n.hypothesis/\n*.mo\n*.log\n.env\n.venv\nvenv/
"""


def make_folder(folder: Path, files: int) -> None:
    """Files in three levels of folders, so old that git and we trust their times."""
    draw = random.Random(files)
    for number in range(files):
        path = folder / f"part{number % 20}" / f"module{number % 400}" / f"file{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(" ".join(draw.choices(_WORDS, k=draw.randint(200, 800))), encoding="utf-8")
    (folder / ".gitignore").write_text(_GITIGNORE, encoding="utf-8")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    subprocess.run(["git", "config", "gc.auto", "0"], cwd=folder, check=True)


def git_s(folder: Path) -> float:
    """How long git takes for a tree of the folder."""
    began = time.perf_counter()
    command = "git add -A && git write-tree"
    subprocess.run(command, shell=True, cwd=folder, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


async def take_s(
    store: Store, versions: FolderVersions, base: Hash | None, paths: Sequence[str] | None = None
) -> tuple[Hash, float]:
    """A version, committed, and how long it took."""
    began = time.perf_counter()
    version = await versions.take(base, paths)
    if version.objects:
        await store.commit(version.objects)
    return version.hash, time.perf_counter() - began


async def measure(top: Path, files: int, seen: dict[str, list[float]]) -> None:
    """One round of everything, in a new folder."""
    folder = top / "work"
    folder.mkdir()
    make_folder(folder, files)
    await anyio.sleep(0.1)  # so that no file is of this tick of the clock
    git_first = git_s(folder)
    git_unchanged = git_s(folder)
    async with open_store(top / "store.db") as store:
        versions = FolderVersions(store, folder, cache=top / "known")
        first, first_s = await take_s(store, versions, None)
        await anyio.sleep(0.1)
        await take_s(store, versions, first)
        _, unchanged_s = await take_s(store, versions, first)
        _, process_s = await take_s(
            store, FolderVersions(store, folder, cache=top / "known"), first
        )
        (folder / "part1" / "new.py").write_text("new", encoding="utf-8")
        second, path_s = await take_s(store, versions, first, ["part1/new.py"])
        began = time.perf_counter()
        await restore(store, second, top / "restored")
        restore_s = time.perf_counter() - began
    async with open_store(top / "other.db") as store:
        waits: list[float] = []
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_commit_meanwhile, store, waits)
            await FolderVersions(store, folder).take(None)
            tasks.cancel_scope.cancel()
    for name, value in {
        "git: first": git_first,
        "git: unchanged": git_unchanged,
        "first": first_s,
        "first / git": first_s / git_first,
        "unchanged": unchanged_s,
        "unchanged / git": unchanged_s / git_unchanged,
        "unchanged, new process's first": process_s,
        "one path that is named": path_s,
        "restore": restore_s,
        "a commit meanwhile, median": statistics.median(waits),
        "a commit meanwhile, longest": max(waits),
    }.items():
        seen.setdefault(name, []).append(value)


async def _commit_meanwhile(store: Store, waits: list[float]) -> None:
    while True:
        began = time.perf_counter()
        await store.commit([content(os.urandom(500))])
        waits.append(time.perf_counter() - began)
        await anyio.sleep(0.002)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--directory", type=Path, default=None)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--files", type=int, default=10_000)
    asked = parser.parse_args()
    print(f"{platform.platform()}, {os.cpu_count()} processors, Python {platform.python_version()}")
    print(f"{asked.files} files; median (min .. max) of {asked.repeats}, seconds or a ratio")
    seen: dict[str, list[float]] = {}
    for _ in range(asked.repeats):
        with tempfile.TemporaryDirectory(dir=asked.directory) as top:
            anyio.run(measure, Path(top), asked.files, seen)
    for name, values in seen.items():
        print(f"{name:32} {statistics.median(values):.4f} ({min(values):.4f} .. {max(values):.4f})")


if __name__ == "__main__":
    main()
