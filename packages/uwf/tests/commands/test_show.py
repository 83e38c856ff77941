"""`uwf show`: what a thread has taken, and what was cut off."""

import re

import pytest
from rich.cells import cell_len

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
    assert re.search(
        r"round 1  [\d:]+  no reply\n    ✗ a reply was lost, counted as 100", shown.out
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
    late = "      - not run: it came after the result\n"
    assert f'    → write_file  path="a.txt"  content="x"\n{late}    → list_files\n{late}' in shown
    (data,) = (await uwf("show", "--turns", "--json")).lines
    assert data["turns"][0]["skipped_calls"] == ["tool/0/2 write_file", "tool/0/3 list_files"]
    ((part,), _) = [turn["attempts"][0]["parts"] for turn in data["turns"]]
    assert [call["state"] for call in part["calls"]] == ["done", "accepted", "skipped", "skipped"]
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


def written_in(dialect: str) -> list[bytes]:
    """A look at the folder, a refused result and a good one, as each dialect writes them."""
    if dialect == "json":
        look = say('{"tool": "list_files", "args": {"path": "."}}')
        bad = say('{"tool": "resolve", "args": {"value": 3}}')
        return [look, bad, say('{"tool": "resolve", "args": {"value": "done"}}')]
    if dialect == "xml":
        look = say('<thought>I look around.</thought>\n<action>list_files(path=".")</action>')
        return [look, say("nothing"), say("<final_answer>done</final_answer>")]
    look = say("I look around.", function("list_files", path=".", id="a"))
    return [look, call("resolve", value=3), call("resolve", value="done")]


@pytest.mark.parametrize("dialect", ["native", "json", "xml"])
async def test_each_dialect_is_told_with_its_words_calls_and_results(
    uwf: Cli, dialect: str
) -> None:
    entry = uwf.write("agent.py", AGENT.replace('"native"', f'"{dialect}"'))
    async with uwf.scripted([*written_in(dialect), *written_in(dialect)[2:]]):
        assert (await uwf("run", entry, "Look.")).code == 0
    shown = (await uwf("show", "--step", "1")).out
    assert '    → list_files  path="."\n' in shown
    assert re.search(r"\n      ✓ ([\d.]+ s: )?agent\.py\n", shown)
    assert ("    I look around.\n" in shown) == (dialect != "json")
    assert "✗ not accepted" in shown or "↻ not accepted" in shown
    assert '      ✓ taken as the result\n  = "done"\n' in shown
    with_requests = (await uwf("show", "--step", "1", "--requests")).out
    assert "↻ told: " in with_requests
    assert "see it with --requests" not in with_requests


async def test_a_part_of_a_transcript_is_shown_by_its_role_and_step(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with uwf.scripted([call("resolve", value="a"), call("resolve", value="b")]):
        assert (await uwf("run", entry, "Look.")).code == 0

    async def heads(*words: str) -> list[str]:
        lines = (await uwf("show", *words)).out.splitlines()
        return [line.split("  ")[0] for line in lines if re.match(r"\d+\. ", line)]

    assert await heads("--turns") == ["1. agent", "2. last"]
    assert await heads("--role", "last") == ["2. last"]
    assert await heads("--step", "1") == await heads("--role", "agent") == ["1. agent"]
    assert await heads("--step", "1-2") == await heads("--step", "2", "--step", "1")
    assert await heads("--step", "1", "--role", "last") == []
    no_role = await uwf("show", "--role", "agnet")
    assert (no_role.code, no_role.err) == (
        2,
        "uwf: no turn of the role 'agnet' is recorded; there are: agent, last\n",
    )
    no_step = await uwf("show", "--step", "3")
    assert (no_step.code, no_step.err) == (2, "uwf: there is no step 3; the steps are 1 to 2\n")
    assert "'2-1' ends before it begins; give N-M" in (await uwf("show", "--step", "2-1")).err


async def test_long_and_hostile_texts_are_cut_with_a_count_and_can_not_steer_a_terminal(
    uwf: Cli,
) -> None:
    odd = "\x1b[2J\u202e\x00\x9b31m"
    rows = "\n".join(f"row {number} {odd}" for number in range(100))
    entry = uwf.write("agent.py", AGENT)
    replies = [
        say(odd, function("write_file", path="a.txt", content=rows, id="a")),
        call("read_file", path="a.txt"),
        call("resolve", value="x" * 1000),
        call("resolve", value="b"),
    ]
    async with uwf.scripted(replies):
        assert (await uwf("run", entry, "Look.")).code == 0
    cut, full = (await uwf("show", "--turns")).out, (await uwf("show", "--full")).out
    assert "[… 87 lines, " in cut
    assert "row 50 " not in cut
    assert all(f"row {number} \\x1b[2J\\u202e\\x00\\x9b31m\n" in full for number in range(100))
    assert "… 700 characters left out …" in cut
    assert "left out" not in full
    for text in (cut, full):
        assert not {"\x1b", "\u202e", "\x00", "\x9b"}.intersection(text)


LONG = (
    "Find out which of the modules read the file 設定 and say in a sentence what they make of it."
)


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
async def test_long_fields_are_broken_under_their_own_text(uwf: Cli, columns: int) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with uwf.scripted([call("resolve", value=LONG), call("resolve", value="ok")]):
        assert (await uwf("run", entry, LONG)).code == 0

    drawn = await uwf.on_terminal("show", columns=columns)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", drawn)
    rows = plain.replace("\r\n", "\n").splitlines()
    head = rows[: rows.index("")]
    assert all(cell_len(row) <= columns for row in rows)
    assert {row[:11].strip() for row in head} >= {"thread", "state", "prompt", "summary"}
    prompt = next(at for at, row in enumerate(head) if row.startswith("prompt"))
    workspace = next(at for at, row in enumerate(head) if row.startswith("workspace"))
    assert " ".join(row[11:].strip() for row in head[prompt:workspace]) == LONG
    assert "\x1b[32mcompleted (return code 0)\x1b[0m" in drawn
    assert "\x1b[1m1. agent\x1b[0m" in drawn

    piped = (await uwf("show")).out.splitlines()
    assert f"prompt     {LONG}" in piped
