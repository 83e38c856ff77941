"""`uwf cas verify` and `gc`."""

import contextlib
import sqlite3

import pytest

from workflow_reactor.testing import call

from ..cli import Cli
from ..entries import AGENT, ONE


async def two_threads(uwf: Cli) -> list[str]:
    """The ids of two threads that are completed."""
    entry = uwf.write("agent.py", AGENT)
    ids: list[str] = []
    for word in ("first", "second"):
        async with uwf.scripted([call("resolve", value=word), call("resolve", value=word)]):
            assert (await uwf("run", entry, word)).code == 0
        ids += [(await uwf("show", "--json")).lines[0]["thread"]]
    return ids


async def test_damage_is_listed_with_the_threads_that_it_concerns(uwf: Cli) -> None:
    nothing = await uwf("cas", "verify")
    assert (nothing.code, "nothing is stored" in nothing.err) == (0, True)
    ids = await two_threads(uwf)
    whole = await uwf("cas", "verify")
    assert (whole.code, whole.out.endswith(": no problems\n")) == (0, True)

    (data,) = (await uwf("show", ids[0], "--json")).lines
    hash = data["steps"][0]["hash"]
    with sqlite3.connect(uwf.home / "store.sqlite3") as database:
        update = "UPDATE object SET data = 'x' WHERE id = (SELECT id FROM name WHERE hash = ?)"
        assert database.execute(update, (bytes.fromhex(hash),)).rowcount == 1
    database.close()
    damaged = await uwf("cas", "verify", "--json")
    assert damaged.code == 1
    problem, concerned, total = damaged.lines
    assert (problem["kind"], problem["place"]) == ("damaged", hash)
    assert concerned == {"threads": [ids[0]]}
    assert total["problems"] == 1
    assert f"threads    {ids[0]}\n" in (await uwf("cas", "verify")).out

    shown = await uwf("show", ids[0])
    assert (shown.code, "`uwf cas verify` lists all damage" in shown.err) == (1, True)
    assert (await uwf("show", ids[1])).code == 0


async def test_what_is_deleted_frees_its_space(uwf: Cli) -> None:
    nothing = await uwf("cas", "gc")
    assert (nothing.code, "nothing is stored" in nothing.err) == (0, True)
    ids = await two_threads(uwf)

    wrong = await uwf("thread", "delete", "0000")
    assert (wrong.code, "there is no thread '0000'" in wrong.err) == (1, True)
    deleted = await uwf("thread", "delete", ids[0], "--yes", "--json")
    assert (deleted.code, deleted.lines) == (0, [{"thread": ids[0], "deleted": [ids[0]]}])
    assert ids[0] not in (await uwf("thread", "list")).out
    young = await uwf("cas", "gc")
    assert (young.code, young.out.startswith("removed 0 objects, 0 bytes; ")) == (0, True)
    dry = await uwf("cas", "gc", "--older-than", "0", "--dry-run")
    assert dry.out.startswith("would remove ")
    removed = await uwf("cas", "gc", "--older-than", "0")
    assert removed.out == dry.out.replace("would remove", "removed")
    again = await uwf("cas", "gc", "--older-than", "0", "--json")
    assert again.lines == [
        {"removed": 0, "bytes": 0, "kept": again.lines[0]["kept"], "unpacked": 0, "dry_run": False}
    ]

    assert (await uwf("cas", "verify")).code == 0
    assert (await uwf("thread", "replay", ids[1])).code == 0
    assert (await uwf("cas", "gc", "--older-than", "0.0")).code == 0
    for wrong_age in ("nan", "-1", "x"):
        assert (await uwf("cas", "gc", "--older-than", wrong_age)).code == 2


STATE = "the index has another state"
UNREADABLE = "its entry in the index can't be read"


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("DELETE FROM label; DELETE FROM entry", "it is not in the index"),
        ("UPDATE entry SET data = CAST(replace(data, 'completed', 'failed') AS BLOB)", STATE),
        ("UPDATE entry SET data = CAST('{' AS BLOB)", UNREADABLE),
        ("UPDATE entry SET data = '{'", UNREADABLE),
    ],
)
async def test_an_index_that_is_wrong_is_told_and_mended(uwf: Cli, damage: str, fault: str) -> None:
    entry = uwf.write("one.py", ONE)
    assert (await uwf("run", entry, "x")).code == 0
    before = (await uwf("thread", "list", "--json")).lines
    with contextlib.closing(sqlite3.connect(uwf.home / "store.sqlite3")) as connection:
        connection.executescript(damage)

    found = await uwf("cas", "verify", "--json")
    assert found.code == 1
    assert {
        "kind": "index",
        "place": f"thread {before[0]['thread']}",
        "message": fault,
    } in found.lines
    assert "`uwf store reindex`" in found.err
    mended = await uwf("store", "reindex", "--json")
    assert (mended.code, mended.lines) == (0, [{"thread": before[0]["thread"], "fault": fault}])
    assert (await uwf("cas", "verify")).code == 0
    assert (await uwf("thread", "list", "--json")).lines == before
    assert "nothing to do" in (await uwf("store", "reindex")).err
