"""`uwf show`: what a thread has taken, and what was cut off."""

from workflow_reactor.testing import call, function, say

from ..cli import Cli
from ..entries import AGENT, AGENT_BELOW


async def test_what_an_unfinished_turn_took_is_in_the_totals(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    replies = [call("list_files"), call("list_files"), call("resolve", value="a")]
    async with uwf.scripted(replies):
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        prices = "prices: {scripted: {input: 1000, output: 2000}}"
        config.write_text(f"{plain}limits: {{max_rounds: 2, {prices}}}\n", encoding="utf-8")
        assert (await uwf("run", entry, "Look.")).code == 3
        shown = await uwf("show")
        assert "tokens     20 in (0 cached), 10 out, 2 model calls" in shown.out
        assert "cost       0.0400" in shown.out
        config.write_text(f"{plain}limits: {{max_steps: 1, {prices}}}\n", encoding="utf-8")
        assert (await uwf("thread", "resume")).code == 3
    (data,) = (await uwf("show", "--json")).lines
    assert data["usage"] == {"input_tokens": 30, "output_tokens": 15, "calls": 3}
    assert (data["cost"], len(data["steps"])) == (0.06, 1)


WAITING_CALL = """
import anyio
from workflow_execute.testing import in_turn
from workflow_protocol import Metered, Usage

async def turn(ctx):
    async def ask():
        await anyio.sleep(60)
        return 1

    metered = Metered(
        model="m", at_most=lambda: Usage(output_tokens=100), used=lambda value: Usage(calls=1)
    )
    return await ctx.journal.run("llm/0", ask, type=int, metered=metered)

run = in_turn(turn)
"""


async def test_a_call_that_was_cut_off_is_shown_as_such(uwf: Cli) -> None:
    uwf.home.mkdir()
    (uwf.home / "workflow.yaml").write_text("limits: {max_seconds: 0.5}\n", encoding="utf-8")
    ran = await uwf("run", uwf.write("waiting.py", WAITING_CALL), "Ask.")
    assert (ran.code, "the limit of 0.5 seconds is reached" in ran.err) == (3, True)
    shown = await uwf("show", "--turns")
    assert (
        "llm/0      (stopped before its reply; counted with the largest possible cost)" in shown.out
    )


async def test_calls_that_came_after_the_result_are_told(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    several = say(
        None,
        function("list_files", id="a"),
        function("resolve", value="done", id="b"),
        function("write_file", path="a.txt", content="x", id="c"),
        function("list_files", id="d"),
    )
    async with uwf.scripted([several, call("resolve", value="sum")]):
        assert (await uwf("run", entry, "Look.")).code == 0
    shown = (await uwf("show", "--turns")).out
    assert "    tool/0/2   write_file (skipped: it came after the result)\n" in shown
    assert "    tool/0/3   list_files (skipped: it came after the result)\n" in shown
    (data,) = (await uwf("show", "--turns", "--json")).lines
    assert [step["skipped_calls"] for step in data["steps"]] == [
        [{"key": "tool/0/2", "name": "write_file"}, {"key": "tool/0/3", "name": "list_files"}],
        [],
    ]
    assert (await uwf("thread", "replay", "latest")).code == 0


async def test_a_thread_with_a_limit_of_cost_says_what_each_child_has_spent(uwf: Cli) -> None:
    entry = uwf.write("below.py", AGENT_BELOW)
    replies = [call("resolve", value="a"), call("resolve", value="b")]
    async with uwf.scripted(replies):
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        prices = "prices: {scripted: {input: 1000, output: 2000}}"
        config.write_text(f"{plain}limits: {{max_cost: 0.02, {prices}}}\n", encoding="utf-8")
        stopped = await uwf("run", entry, "Look.")
        assert stopped.code == 3
        assert "Raise `limits.max_cost`, now 0.02, in " in stopped.err
        config.write_text(f"{plain}limits: {{max_cost: 10000, {prices}}}\n", encoding="utf-8")
        assert (await uwf("thread", "resume")).code == 0
    (data,) = (await uwf("show", "--json")).lines
    (child,) = data["tree"]["children"]
    assert (data["cost"], data["tree"]["cost"], child["cost"]) == (None, 0.04, 0.04)
    assert (child["workflow"], child["usage"]["calls"]) == ("develop", 2)
    shown = (await uwf("show")).out
    used = "20 in (0 cached), 10 out, 2 model calls, cost 0.0400"
    assert f"  in all   {used}, its child threads included\n" in shown
    assert f"  child    {used}, {child['thread']} develop\n" in shown
