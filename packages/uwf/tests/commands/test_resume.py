"""`uwf thread resume`: with another bundle, in another folder."""

import json

from workflow_reactor.testing import call

from ..cli import Cli
from ..entries import AGENT, ASKING


async def test_another_bundle_is_refused_where_a_request_differs_and_fresh_goes_on(
    uwf: Cli,
) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with uwf.scripted([call("list_files")]):  # then the server fails
        assert (await uwf("run", entry, "Look.")).code == 1
    changed = uwf.write("agent2.py", AGENT.replace("PROMPT", "PROMPT, but friendly"))

    async with uwf.scripted([call("resolve", value="a"), call("resolve", value="b")]):
        other = await uwf("thread", "resume", "latest", "--bundle", changed)
        assert other.code == 1
        assert "'llm/0' can't be used for this turn" in other.err
        assert ", but friendly" in other.err
        assert "before it was " in other.err
        fresh = await uwf("thread", "resume", "latest", "--bundle", changed, "--fresh")
    assert json.loads(fresh.out) == "b"
    assert (await uwf("thread", "replay", "latest")).code == 0


async def test_a_workspace_that_is_gone_is_named_and_another_one_can_be_given(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    first, second = uwf.folder / "first", uwf.folder / "second"
    first.mkdir()
    async with uwf.scripted([call("resolve", value="a")]):  # then the server fails
        assert (await uwf("run", entry, "Look.", "--workspace", first)).code == 1
    (data,) = (await uwf("show", "--json")).lines
    first.rmdir()
    gone = await uwf("thread", "resume")
    assert gone.code == 2
    assert gone.err == (
        f"uwf: the workspace '{first}' of thread {data['thread']} is gone; create it again, or "
        f"continue in another folder: `uwf thread resume {data['thread']} --workspace DIR`\n"
    )
    wrong = await uwf("thread", "resume", "--workspace", second)
    assert (wrong.code, f"'{second}' is not a folder" in wrong.err) == (2, True)

    second.mkdir()
    async with uwf.scripted(
        [call("write_file", path="b.txt", content="b"), call("resolve", value="b")]
    ):
        resumed = await uwf("thread", "resume", "--workspace", second)
    assert json.loads(resumed.out) == "b"
    assert [path.name for path in second.iterdir()] == ["b.txt"]
    (data,) = (await uwf("show", "--json")).lines
    assert (data["workspace"], len(data["steps"])) == (str(second), 2)
    assert (await uwf("thread", "replay", "latest")).code == 0


async def test_a_bundle_that_asks_for_something_else_leaves_a_suspended_thread_as_it_is(
    uwf: Cli,
) -> None:
    assert (await uwf("run", uwf.write("asking.py", ASKING), "x")).code == 3
    (before,) = (await uwf("show", "--json", "--turns")).lines
    changed = uwf.write("changed.py", ASKING.replace("May I {key}?", "Shall I {key}?"))

    other = await uwf("thread", "resume", "--bundle", changed)

    assert other.code == 1
    assert "the question has changed" in other.err
    again = f"uwf thread resume {before['thread']} --bundle {changed} --fresh"
    assert f"The thread is as it was. To start its turn again: `{again}`" in (other.err)
    assert (await uwf("show", "--json", "--turns")).lines == [before]
    for key in ("build", "push"):
        assert (await uwf("thread", "answer", "latest", key, "--approve")).code == 0
    assert (await uwf("thread", "resume")).code == 0
