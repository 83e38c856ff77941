"""`uwf thread pause` and `cancel`: a thread that another process runs."""

import json
import time

import anyio
import pytest

from workflow_reactor.testing import call

from ..cli import Cli, alive, pids_in
from ..entries import AGENT, AGENT_BELOW


@pytest.mark.parametrize(("what", "state"), [("pause", "suspended"), ("cancel", "cancelled")])
async def test_a_shell_command_of_another_process_is_stopped_with_its_whole_tree(
    uwf: Cli, what: str, state: str
) -> None:
    entry = uwf.write("agent.py", AGENT)
    tree = "sh -c 'sleep 300 & echo $! >> pids; sleep 300 & echo $! >> pids; echo $$ >> pids; wait'"
    replies = [
        call("shell_exec", command=tree),
        call("resolve", value="a"),
        call("resolve", value="b"),
    ]
    async with uwf.scripted(replies):
        with anyio.fail_after(60):
            async with await uwf.start("run", entry, "Sleep.") as process:
                pids = await pids_in(uwf.folder / "pids", 3)
                stopping = time.monotonic()
                stopped = await uwf("thread", what, "latest")
                took_s = time.monotonic() - stopping
                assert (stopped.code, stopped.err) == (0, "")
                assert await process.wait() == (130 if what == "cancel" else 3)
        assert not any(map(alive, pids))
        assert took_s < 10  # far from 300, however long the command takes to start
        (data,) = (await uwf("show", "--json")).lines
        assert (data["state"], data["role"]) == (state, "agent")

        resumed = await uwf("thread", "resume")
        assert json.loads(resumed.out) == "b"


@pytest.mark.parametrize(
    ("what", "whom", "state"), [("pause", "top", "suspended"), ("cancel", "child", "cancelled")]
)
async def test_a_thread_and_its_child_are_stopped_together_from_another_process(
    uwf: Cli, what: str, whom: str, state: str
) -> None:
    entry = uwf.write("below.py", AGENT_BELOW)
    replies = [
        call("shell_exec", command="echo $$ >> pids; sleep 300"),
        call("resolve", value="a"),
        call("resolve", value="b"),
    ]
    async with uwf.scripted(replies):
        with anyio.fail_after(60):
            async with await uwf.start("run", entry, "Sleep.") as process:
                pids = await pids_in(uwf.folder / "pids", 1)
                child, top = [
                    each["thread"]
                    for each in (await uwf("thread", "list", "--children", "--json")).lines
                ]
                busy = await uwf("thread", "resume", child)
                assert (busy.code, f"thread {top} is running elsewhere" in busy.err) == (1, True)
                stopped = await uwf("thread", what, top if whom == "top" else child)
                assert (stopped.code, stopped.err) == (0, "")
                assert await process.wait() == (130 if what == "cancel" else 3)
        assert not any(map(alive, pids))
        listed = (await uwf("thread", "list", "--children", "--json")).lines
        assert [each["state"] for each in listed] == [state] * 2

        resumed = await uwf("thread", "resume", top)
        assert json.loads(resumed.out) == "b"
        (data,) = (await uwf("show", "--json")).lines
        assert (data["usage"].get("calls", 0), data["tree"]["usage"]["calls"]) == (0, 3)
        assert ", 3 model calls, its child threads included\n" in (await uwf("show")).out
        (data,) = (await uwf("show", child, "--json")).lines
        assert (data["usage"]["calls"], data["tree"]) == (3, None)
