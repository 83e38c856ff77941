"""`uwf show`: what a thread has taken, and what was cut off."""

from workflow_reactor.testing import call

from ..cli import Cli
from ..entries import AGENT


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
