"""`uwf thread export` and `import`: a thread goes from one home to another as one file."""

import json
import runpy
import sys
from pathlib import Path

import pytest

from pytest_uwf import ReplayDiffers, replay_file
from workflow_reactor.testing import call, say
from workflow_register import update_config

from ..cli import Cli
from ..entries import AGENT, ASKING


@pytest.fixture
def other(tmp_path: Path) -> Cli:
    """The command with a home of somebody else."""
    return Cli(tmp_path / "other-home", tmp_path / "work")


async def test_a_thread_is_shown_replayed_forked_and_resumed_where_it_was_imported(
    uwf: Cli, other: Cli
) -> None:
    uwf.write("a.txt", "hello\n")
    entry = uwf.write("agent.py", AGENT)
    async with uwf.scripted([call("read_file", path="a.txt"), call("resolve", value="read")]):
        assert (await uwf("run", entry, "Read it.", "--tag", "night")).code == 1

    written = await uwf("thread", "export", "latest", "--to", "x.uwf")
    assert written.code == 0
    assert written.out.startswith("x.uwf: 01")
    assert "It holds no configuration, no keys" in written.err
    taken = await other("thread", "import", "x.uwf")
    assert (taken.code, "is imported" in taken.out) == (0, True)
    assert "brings the code of its workflow" in taken.err
    assert "thread resume" in taken.err

    shown = [await each("thread", "show", "latest", "--turns") for each in (uwf, other)]
    assert shown[0].out == shown[1].out != ""
    (row,) = (await other("thread", "list", "--json")).lines
    assert (row["steps"], row["state"], row["tags"]) == (1, "failed", ["night"])
    async with other.scripted([call("resolve", value="summed"), call("resolve", value="again")]):
        replayed = await other("thread", "replay", "latest")
        assert (replayed.code, "identical: 1 steps" in replayed.out) == (0, True)
        fork = (await other("thread", "fork", "latest")).out.strip()
        resumed = await other("thread", "resume", row["thread"])
        assert json.loads(resumed.out) == "summed"
        assert json.loads((await other("thread", "resume", fork)).out) == "again"

    again = await other("thread", "import", "x.uwf", "--json")
    assert (again.code, "gone on otherwise" in again.err) == (1, True)


async def test_standard_output_takes_the_file_and_a_second_import_is_the_same(
    uwf: Cli, other: Cli
) -> None:
    entry = uwf.write("asking.py", ASKING)
    await uwf("run", entry, "p")
    (made,) = (await uwf("thread", "export", "latest", "--to", "a.uwf", "--json")).lines
    await uwf.shell("$UWF thread export latest > b.uwf")
    a, b = (uwf.folder / name for name in ("a.uwf", "b.uwf"))
    assert a.read_bytes() == b.read_bytes()
    (taken,) = (await other("thread", "import", "b.uwf", "--json")).lines
    assert (taken["thread"], taken["new"]) == (made["thread"], made["threads"])
    same = await other("thread", "import", "a.uwf")
    assert (same.code, "is here already, the same" in same.out) == (0, True)


async def test_what_a_command_ran_is_replayed_by_a_test_against_the_script(
    uwf: Cli, entry: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with uwf.scripted([say('"Bonjour."')]):
        assert (await uwf("run", entry, "Greet Ada.")).code == 0
    await uwf("thread", "export", "latest", "--to", "x.uwf")
    monkeypatch.setenv("UWF_HOME", str(uwf.home))
    monkeypatch.setattr(sys, "path", [str(uwf.folder), *sys.path])
    run = runpy.run_path(str(entry))["run"]

    assert (await replay_file(uwf.folder / "x.uwf", run)).requests == 1

    uwf.write("words.py", 'PROMPT = "Greet in French."\n')
    monkeypatch.delitem(sys.modules, "words")
    with pytest.raises(ReplayDiffers, match="role 'greeter', llm/0"):
        await replay_file(uwf.folder / "x.uwf", runpy.run_path(str(entry))["run"])


async def test_a_terminal_gets_no_file_and_json_none_beside_it(uwf: Cli) -> None:
    await uwf("run", uwf.write("asking.py", ASKING), "p")
    drawn = await uwf.on_terminal("thread", "export", "latest", code=2)
    assert "name a file with --to" in drawn
    both = await uwf("thread", "export", "latest", "--json")
    assert (both.code, "--to" in both.err) == (2, True)
    for place, words in (("no/x.uwf", "No such file or directory"), (".", "Is a directory")):
        refused = await uwf("thread", "export", "latest", "--to", place)
        assert (refused.code, refused.err) == (1, f"uwf: {place}: {words}\n")
    none = await uwf("thread", "export", "01NONE", "--to", "x.uwf")
    assert (none.code, "there is no thread" in none.err) == (1, True)


async def test_a_key_that_is_configured_does_not_leave(uwf: Cli, entry: Path) -> None:
    key = "planted-0123456789"
    async with uwf.scripted([say(json.dumps(key))]):
        update_config(uwf.home, {"providers": {"loopback": {"api_key": "${LLM_ACCESS}"}}})
        ran = await uwf("run", entry, "p", LLM_ACCESS=key)
        assert (ran.code, key in ran.out) == (0, True), ran.err

    for words in (["--to", "x.uwf"], []):
        refused = await uwf("thread", "export", "latest", *words, LLM_ACCESS=key)
        assert (refused.code, refused.out) == (1, "")
        assert "the value of LLM_ACCESS" in refused.err
        assert "--with-secrets" in refused.err
        assert key not in refused.err
    assert not (uwf.folder / "x.uwf").exists()
    done = await uwf(
        "thread", "export", "latest", "--to", "x.uwf", "--with-secrets", LLM_ACCESS=key
    )
    assert "it may hold some" in done.err
    assert "no keys" not in done.err
    assert (done.code, key.encode() in (uwf.folder / "x.uwf").read_bytes()) == (0, True)


async def test_what_is_no_thread_file_is_one_clear_error(uwf: Cli) -> None:
    uwf.write("x.uwf", "hello")
    refused = await uwf("thread", "import", "x.uwf")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err == (
        "uwf: 'x.uwf' can't be read: this is not a thread file; `uwf thread export` makes one\n"
    )
    missing = await uwf("thread", "import", "y.uwf")
    assert (missing.code, missing.err) == (1, "uwf: y.uwf: No such file or directory\n")
