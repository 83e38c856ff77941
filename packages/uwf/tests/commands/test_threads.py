"""`uwf thread list`: what is found, and how it is shown."""

import time

import pytest

from workflow_reactor.testing import call

from ..cli import Cli
from ..entries import AGENT, NESTED


async def test_a_list_tells_state_cost_model_and_end_and_finds_by_tag(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    replies = [call("resolve", value="one"), call("resolve", value="two"), b"no reply"]
    began_ms = int(time.time() * 1000)
    async with uwf.scripted(replies):
        assert (await uwf("run", entry, "First.", "--tag", "nightly", "--tag", "a")).code == 0
        assert (await uwf("run", entry, "Second.")).code == 1

    second, first = (await uwf("thread", "list", "--json")).lines
    assert (first["prompt"], first["state"], first["tags"]) == (
        "First.", "completed", ["a", "nightly"],
    )  # fmt: skip
    assert (first["models"], first["steps"], first["children"]) == (["scripted"], 2, 0)
    assert (first["return_code"], first["summary"], first["error"]) == (0, 'last: "two"', None)
    assert began_ms <= first["started_at_ms"] <= first["updated_at_ms"]
    assert (second["state"], second["role"], second["return_code"]) == ("failed", "agent", 1)
    assert second["error"]
    assert second["tokens"] == 0
    for words, found in (
        (["--tag", "nightly"], ["First."]),
        (["--state", "failed"], ["Second."]),
        (["--workflow", "agent", "--since", "1h"], ["Second.", "First."]),
        (["--workflow", "agents"], []),
        (["--since", "2d", "--limit", "1"], ["Second."]),
        (["--since", "2999-01-01"], []),
    ):
        listed = await uwf("thread", "list", "--json", *words)
        assert [each["prompt"] for each in listed.lines] == found
        assert ("no thread is like this" in listed.err) == (not found)
        assert ("--limit N lists more" in listed.err) == ("--limit" in words)
    rows = (await uwf("thread", "list")).out.splitlines()
    assert [row.split("\t")[1] for row in rows] == ["failed", "completed"]
    assert rows[1].split("\t")[-2:] == ["First.", 'last: "two"']
    assert rows[0].split("\t")[-1].startswith(f"{second['error']}: ")


async def test_child_threads_are_listed_where_they_are_asked_for(uwf: Cli) -> None:
    entry = uwf.write("nested.py", NESTED)
    await uwf("run", entry, "x")
    (top,) = (await uwf("thread", "list", "--json")).lines
    assert (top["children"], top["parent"]) == (1, None)
    listed = (await uwf("thread", "list", "--json", "--children")).lines
    assert [each["parent"] for each in listed] == [top["thread"], None]


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["--since", "yesterday"], "give a duration such as 30min, 2h or 3d, or a date"),
        (["--since", "-2h"], "--since"),
        (["--since", "2y"], "is not a time"),
        (["--since", "2026-02-30"], "is not a time"),
        (["--since", "9" * 400 + "d"], "is not a time"),
        (["--state", "faild"], "--state"),
        (["--limit", "0"], "whole number of 1 or more"),
    ],
)
async def test_what_can_not_be_looked_for_is_one_error(
    uwf: Cli, words: list[str], advice: str
) -> None:
    done = await uwf("thread", "list", *words)
    assert (done.code, advice in done.err) == (2, True)


async def test_a_run_with_a_tag_that_is_none_starts_nothing(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    done = await uwf("run", entry, "First.", "--tag", "two words")
    assert (done.code, "'two words' can't be a tag" in done.err) == (2, True)
    assert (await uwf("thread", "list")).out == ""


async def test_durations_and_dates_are_times(uwf: Cli) -> None:
    from uwf.arguments._types import since

    now_ms = time.time() * 1000
    times = {"90s": 90, "30min": 1800, "1.5h": 5400, "3 d": 259_200, "2w": 1_209_600}
    for text, ago_s in times.items():
        assert abs(now_ms - ago_s * 1000 - since(text)) < 5000
    assert since("2026-11-30T18:00+00:00") == 1_796_061_600_000
    assert since("2026-11-30") == time.mktime((2026, 11, 30, 0, 0, 0, 0, 0, -1)) * 1000
    assert since("999999999w") == 0
