"""Stores that earlier versions wrote are carried over, and all of their threads go on."""

import gzip
from pathlib import Path

import pytest

from uwf import main
from workflow_cas import StoreFormat, migrate_store, open_store
from workflow_execute import (
    check_summaries,
    list_threads,
    read_attempts,
    read_summaries,
    read_thread,
    thread_entries,
)
from workflow_register import store_path

SAMPLES = Path(__file__).with_name("samples")
STATES = {
    "Write a plan.": "completed",
    "Fetch the table.": "failed",
    "Fetch another table.": "suspended",
    "Deploy it.": "suspended",
    "Deploy that.": "cancelled",
    "Deploy later.": "suspended",
    "Do it below.": "completed",
    "Ask below.": "suspended",
    "Twice.": "completed",
    "Die in the middle.": "interrupted",
}


def home_of(sample: str, folder: Path) -> Path:
    """A home with the store that an earlier version wrote."""
    path = store_path(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.decompress((SAMPLES / f"{sample}.db.gz").read_bytes()))
    return folder


async def test_a_store_of_format_2_is_carried_over_with_all_its_threads(tmp_path: Path) -> None:
    home = home_of("format-2", tmp_path)
    path = store_path(home)
    with pytest.raises(StoreFormat, match="format 2"):
        async with open_store(path):
            pass

    report = await migrate_store(path, thread_entries)

    assert (report.from_format, report.entries, report.problems) == (2, 13, ())
    async with open_store(path) as store:
        assert (await store.verify()).ok
        assert await check_summaries(store) == []
        assert len(await list_threads(store)) == 13
        found = await read_summaries(store, top=True, locks=home / "locks")
        assert STATES.items() <= {each.prompt: each.state for each in found}.items() | {
            ("Fetch the table.", "failed")  # a fork of it has the same task
        }
        (tree,) = [each for each in found if each.prompt == "Ask below."]
        assert (tree.children, tree.tokens, tree.cost_micros) == (1, 1234, 3340)
        (failed,) = [each for each in found if each.state == "failed"]
        assert (failed.error, failed.summary) == ("ValueError", "the page has no table")
        for each in found:
            thread = await read_thread(store, each.thread_id)
            await read_attempts(store, thread.turn)
            for step in thread.steps:
                await read_attempts(store, step.turn)


def test_the_command_refuses_an_old_store_names_the_way_and_carries_it_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = home_of("format-2", tmp_path)

    def uwf(*words: str) -> tuple[int, str, str]:
        code = main([*words, "--home", str(home)])
        said = capsys.readouterr()
        return code, said.out, said.err

    for words in (["thread", "list"], ["show"], ["cas", "verify"], ["thread", "resume"]):
        code, _, err = uwf(*words)
        assert (code, "`uwf store migrate`" in err) == (1, True), err
        assert len(err.splitlines()) == 1
    assert uwf("store", "migrate", "--dry-run")[1] == (
        "the store can be carried over from format 2 to 3: 13 threads\n"
    )
    code, out, err = uwf("store", "migrate")
    kept = f"{store_path(home)}.format-2"
    assert (code, out) == (0, "the store is carried over from format 2 to 3: 13 threads\n")
    assert err == f"The old file is kept; delete it when you like: {kept}\n"
    again = uwf("store", "migrate")
    assert again[:2] == (0, "the store has format 3 already; nothing to do\n")
    code, out, _ = uwf("thread", "list", "--state", "failed")
    assert (code, "ValueError: the page has no table" in out) == (0, True)
