"""Kills migrations at points all over them, and looks at what they left: `python … FOLDER POINTS`.

Children are forked from this process, which has imported everything. A point is a call from Python
into SQLite or the system, or the return from it. Writes one JSON line.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import anyio
from test_migrate import NAMES, make_old_store, what_is_stored

from workflow_cas import Entry, Store, StoreFormat, migrate_store, open_store


async def make_entries(store: Store) -> Iterable[Entry]:
    return [Entry(name, b"said", ("label",)) for name in await store.refs()]


class Killer:
    """Counts calls in all threads, and dies at one of them."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.passed = 0

    def watch(self) -> None:
        threading.setprofile(self.step)
        sys.setprofile(self.step)

    def step(self, frame: object, event: str, what: object) -> None:
        if event in {"c_call", "c_return"}:
            self.passed += 1
            if self.passed == self.at:
                os.kill(os.getpid(), signal.SIGKILL)


def in_child(work: Callable[[], object]) -> int:
    """Run something in a fork; give its wait status."""
    if child := os.fork():
        return os.waitpid(child, 0)[1]
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - a fork must not go on as its parent would
        sys.stderr.write(f"{error!r}\n")
        os._exit(1)
    os._exit(0)


def migrate(path: Path, at: int, count: Path | None = None) -> None:
    killer = Killer(at)
    killer.watch()
    anyio.run(migrate_store, path, make_entries)
    if count is not None:
        count.write_text(str(killer.passed), encoding="utf-8")


async def faults(path: Path) -> list[str]:
    """What isn't as it should be after a death, and after the migration that follows it."""
    wrong: list[str] = []
    kept = path.with_name(f"{path.name}.format-2")
    try:
        async with open_store(path) as store:
            done = True
            if len(await store.entries(labels=["label"])) != len(NAMES):
                wrong.append("the new format without its entries")
    except StoreFormat:
        done = False
    if done and not kept.exists():
        wrong.append("the new format without the old file")
    report = await migrate_store(path, make_entries)
    if report.entries != (0 if done else len(NAMES)):
        wrong.append(f"{report}")
    async with open_store(path) as store:
        if not (await store.verify()).ok or what_is_stored(path) != what_is_stored(kept):
            wrong.append("something else than before")
        if len(await store.entries()) != len(NAMES):
            wrong.append("not all entries")
    if names := set(os.listdir(path.parent)) - {path.name, kept.name}:
        wrong.append(f"left over: {names}")
    return wrong


def look(path: Path, report: Path) -> None:
    report.write_text(json.dumps(anyio.run(faults, path)), encoding="utf-8")


def main(folder: Path, points: int) -> None:
    original = folder / "original" / "store.db"
    original.parent.mkdir()
    in_child(lambda: anyio.run(make_old_store, original))
    shutil.copytree(original.parent, folder / "whole")
    in_child(lambda: migrate(folder / "whole" / "store.db", 0, folder / "count"))
    total = int((folder / "count").read_text(encoding="utf-8"))
    wrong: dict[int, list[str]] = {}
    killed = 0
    report = folder / "report"
    for at in sorted({1 + index * total // points for index in range(points)}):
        place = folder / str(at)
        shutil.copytree(original.parent, place)
        killed += os.WIFSIGNALED(in_child(lambda p=place, at=at: migrate(p / "store.db", at)))
        report.write_text('["what it left can\'t be read"]', encoding="utf-8")
        in_child(lambda place=place: look(place / "store.db", report))
        if found := json.loads(report.read_text(encoding="utf-8")):
            wrong[at] = found
        shutil.rmtree(place)
    sys.stdout.write(json.dumps({"calls": total, "killed": killed, "wrong": wrong}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
