"""`uwf thread compare`: where two threads part."""

from workflow_reactor.testing import call, say

from ..cli import Cli
from ..entries import AGENT, ONE


async def test_two_runs_of_one_workflow_part_at_their_first_other_request(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    replies = [call("list_files"), call("resolve", value="a"), call("resolve", value="the end")]
    async with uwf.scripted([*replies, *replies[:1], call("resolve", value="b"), replies[2]]):
        for _ in "ab":
            assert (await uwf("run", entry, "Look.")).code == 0
        rows = (await uwf("thread", "list", "--json")).lines
    b, a = (row["thread"] for row in rows[:2])

    compared = await uwf("thread", "compare", a, b)

    assert (compared.code, compared.err) == (0, "")
    assert compared.out.startswith(f"a  {a}  agent  completed (0)  2 steps\nb  {b}  agent")
    first, second, last = compared.out.split("\n\n")[1:]
    assert first.startswith(
        "The first 2 requests are the same. The first that differs:\n"
        "  a: request 3, in step 2 (llm/0)\n  b: request 3, in step 2 (llm/0)\n"
        "  $.messages[1].content\n"
    )
    assert second.startswith("1. agent\n  a: agent  ")
    assert second.endswith('  $\n    a: "a"\n    b: "b"')
    assert last.rstrip().endswith("  the values are the same")
    (data,) = (await uwf("thread", "compare", a, b, "--json")).lines
    assert (data["requests"], data["shared_steps"]) == (2, 0)
    assert data["request"]["a"] == {"number": 3, "step": 2, "key": "llm/0"}
    assert data["steps"][0]["differences"] == [{"path": "$", "a": "a", "b": "b"}]
    (same,) = (await uwf("thread", "compare", a, a, "--json")).lines
    assert (same.get("request"), same["requests"], same["shared_steps"]) == (None, 3, 2)


async def test_a_fork_shares_its_first_steps_and_what_it_alone_has_is_named(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    replies = [call("resolve", value="a"), call("resolve", value="b")]
    async with uwf.scripted([*replies, say("no call"), call("resolve", value="c")]):
        assert (await uwf("run", entry, "Look.")).code == 0
        fork = (await uwf("thread", "fork", "latest", "--at-step", "1")).out.strip()
        origin = (await uwf("thread", "list", "--json")).lines[-1]["thread"]
        assert (await uwf("thread", "resume", fork)).code == 0
    compared = (await uwf("thread", "compare", origin, fork)).out
    assert "The first step is the same one: one thread was forked from the other.\n" in compared
    assert "The first 2 requests are the same. Only b has more: request 3, in step 2" in compared
    assert "\n1. agent  the same step\n" in compared
    assert '    a: "b"\n    b: "c"' in compared


async def test_what_can_not_be_compared_is_said(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with uwf.scripted([call("resolve", value="a"), call("resolve", value="b")]):
        assert (await uwf("run", entry, "Look.")).code == 0
    assert (await uwf("run", uwf.write("one.py", ONE), "x")).code == 0
    other, agent = (row["thread"] for row in (await uwf("thread", "list", "--json")).lines)
    compared = (await uwf("thread", "compare", agent, other)).out
    assert "Only a has more: request 1, in step 1 (llm/0).\n" in compared
    assert "1. agent / role-0\n" in compared
    assert "the roles differ, so their values are not compared" in compared
    assert "2. last\n" in compared
    assert "  b: no such step\n" in compared
    assert "the workflows differ (agent and one), so steps are put side by side" in compared
    missing = await uwf("thread", "compare", agent, "zzz")
    assert (missing.code, missing.err.startswith("uwf: there is no thread 'zzz'")) == (1, True)
