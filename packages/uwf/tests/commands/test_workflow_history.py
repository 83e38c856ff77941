"""`uwf workflow history`, `rollback`, `prune` and `rm`."""

from ..cli import Cli, example
from ..entries import ASKING, ONE


async def add_versions(uwf: Cli) -> None:
    for text in (ONE, ONE.replace("return 1", "return 2")):
        uwf.write("flow.py", text)
        assert (await uwf("add", "flow", "flow.py")).code == 0


async def test_history_tells_what_each_version_changed(uwf: Cli) -> None:
    await add_versions(uwf)
    await uwf("add", "flow", example("greet"))
    await uwf("workflow", "rollback", "flow", "2")

    done = await uwf("workflow", "history", "flow", "--json")

    found = [(each["version"], each["current"], each["changes"]) for each in done.lines]
    assert found[0] == (4, True, ["back to version 2"])
    assert found[2:] == [(2, False, ["~ module flow.py"]), (1, False, ["first version"])]
    number, _, changes = found[1]
    assert number == 3
    assert "+ role greeter" in changes
    assert "~ entry: flow.py → greet.py" in changes
    text = (await uwf("workflow", "history", "flow")).out.splitlines()
    assert [line.split("\t")[0] for line in text] == ["4", "3", "2", "1"]
    assert text[2].endswith("\t~ module flow.py")


async def test_a_rollback_runs_the_earlier_bundle(uwf: Cli) -> None:
    await add_versions(uwf)
    assert "= 2" in (await uwf("run", "flow", "x")).err

    back = await uwf("workflow", "rollback", "flow", "--json")

    assert back.lines == [
        {"name": "flow", "hash": back.lines[0]["hash"], "version": 3, "changed": True}
    ]
    assert "= 1" in (await uwf("run", "flow", "x")).err
    again = await uwf("workflow", "rollback", "flow", "1")
    assert "stands already for" in again.err
    wrong = await uwf("workflow", "rollback", "flow", "7")
    assert (wrong.code, "has no version '7'" in wrong.err) == (1, True)


async def test_a_removed_workflow_leaves_its_threads_resumable(uwf: Cli) -> None:
    uwf.write("asking.py", ASKING)
    await uwf("add", "asking", "asking.py")
    stopped = await uwf("run", "asking", "x")
    assert stopped.code == 3
    thread = stopped.err.split()[1]

    removed = await uwf("workflow", "rm", "asking", "--yes")
    assert (removed.code, removed.out) == (0, "asking is removed\n")
    assert (await uwf("workflow", "list")).out == ""
    assert (await uwf("cas", "gc", "--older-than", "0")).code == 0
    assert (await uwf("run", "asking", "x")).code == 1

    for key in ("build", "push"):
        assert (await uwf("thread", "answer", thread, key, "--approve")).code == 0
    resumed = await uwf("thread", "resume", thread)
    assert resumed.code == 0, resumed.err
    assert "build:True: push:True:" in resumed.err


async def test_nothing_is_removed_without_a_yes(uwf: Cli) -> None:
    await add_versions(uwf)

    piped = await uwf("workflow", "rm", "flow")
    assert (piped.code, "add --yes to remove them without asking" in piped.err) == (2, True)
    asks = b"for good? [y/N] "
    words = ["workflow", "rm", "flow"]
    drawn = await uwf.on_terminal(*words, replies=[b"what?\n", b"\n"], asks=asks, code=1)
    assert "Remove flow with its history of 2 versions for good?" in drawn
    assert len((await uwf("workflow", "history", "flow")).out.splitlines()) == 2

    await uwf.on_terminal(*words, replies=[b"yes\n"], asks=asks)
    assert (await uwf("workflow", "list")).out == ""


async def test_pruning_frees_the_bundles_that_no_thread_has(uwf: Cli) -> None:
    await add_versions(uwf)
    await uwf("workflow", "rollback", "flow", "1")

    kept = (await uwf("cas", "gc", "--older-than", "0", "--json")).lines[0]
    pruned = await uwf("workflow", "prune", "flow", "--keep", "1", "--json")
    freed = (await uwf("cas", "gc", "--older-than", "0", "--json")).lines[0]

    assert kept["removed"] == 0
    assert pruned.lines == [{"name": "flow", "forgotten": 2}]
    assert freed["removed"] == 4  # three records, one of them written anew, and a bundle
    (row,) = (await uwf("workflow", "history", "flow", "--json")).lines
    assert (row["version"], row["changes"]) == (3, ["earlier versions are pruned"])
    assert (await uwf("workflow", "prune", "flow", "--keep", "0")).code == 2
