"""What happens to those who use a server when it fails: nothing but a failed call."""

import json
import logging
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from workflow_agent_react import McpError, McpServer, ToolError, Toolset, open_mcp

from .odd import ODD_SERVER, listed, odd, run, tool

pytest.importorskip("mcp")

READS = tool("add", annotations={"readOnlyHint": True})


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").split()[2] != "Z"
    except FileNotFoundError:
        return False


NOT_READY: list[tuple[dict[str, Any], str]] = [
    ({"start": [["stderr", "no database"], ["die", 3]]}, "exit code 3; it said: no database"),
    ({"initialize": [["stderr", "bad key"], ["die", 4]]}, "exit code 4; it said: bad key"),
    ({"initialize": [["hang", 0]]}, "it wasn't ready within 0.3 s"),
    ({"initialize": [["stderr", "waits"], ["hang", 0]]}, "within 0.3 s; it said: waits"),
    ({"initialize": [["close", 0]]}, "it closed its output"),
    ({"initialize": [["result", {}]]}, "its answer to `initialize` can't be understood"),
    ({"initialize": [["result", [1]]]}, "its answer to `initialize` can't be understood"),
    ({"initialize": [["error", {"code": 5, "message": "not now"}]]}, r"not now \(5\)"),
    ({"initialize": [["error", "never"]]}, r"never \(0\)"),
    ({"tools/list": [["hang", 0]]}, "it didn't list its tools within 0.3 s"),
    ({"tools/list": [["die", 5]]}, "it didn't list its tools: it ended with exit code 5"),
    ({"tools/list": [["result", {"tools": None}]]}, "its list of tools is no list"),
    ({"tools/list": [["result", 7]]}, "its list of tools is no list"),
    (listed(tool("a"), nextCursor="x"), "never ends: the cursor 'x' comes again"),
]


@pytest.mark.parametrize(("plan", "reason"), NOT_READY)
async def test_a_server_that_does_not_get_ready_says_why(plan: dict[str, Any], reason: str) -> None:
    limit_s = 0.3 if "hang" in str(plan) else 5
    start_s = 5 if "initialize" not in plan else limit_s
    server = odd(plan, start_timeout_s=start_s, list_timeout_s=limit_s, close_timeout_s=0.1)
    with anyio.fail_after(5), pytest.raises(McpError, match=reason) as caught:
        async with open_mcp(server):
            raise AssertionError("unreachable")
    assert caught.value.server == "odd"


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([["stderr", "disk full"], ["die", 9]], "it ended with exit code 9; it said: disk full"),
        ([["line", '{"jsonrpc": "2.0", "id":'], ["die", 0]], "it ended with exit code 0"),
        ([["hang", 0]], "it didn't answer within 0.3 s"),
        ([["close", 0]], "it closed its output"),
    ],
)
async def test_an_unsafe_call_that_was_cut_off_says_that_its_outcome_is_unknown(
    steps: list[object], words: str
) -> None:
    limit_s = 0.3 if "hang" in str(steps) else 5
    server = odd({"call:add": steps}, timeout_s=limit_s, close_timeout_s=0.1)
    with anyio.fail_after(5):
        async with open_mcp(server) as tools:
            with pytest.raises(ToolError) as caught:
                await run(tools, "add")
            await anyio.lowlevel.checkpoint()  # nobody was cancelled
    assert f"the MCP server 'odd' gave no result of add: {words}" in str(caught.value)
    assert "The outcome is unknown: add may have been carried out" in str(caught.value)


async def test_a_dead_server_is_started_again_for_a_call_that_may_be_repeated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plan = {**listed(READS), "call:add": [["die once", str(tmp_path / "died")], ["count", 0]]}
    with anyio.fail_after(5):
        async with open_mcp(odd(plan, trust_hints=True)) as tools:
            assert await run(tools, "add") == "1"
            assert await run(tools, "add") == "2"
    (warning,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert warning == "the MCP server 'odd' is connected again: it ended with exit code 7"


async def test_after_an_unsafe_call_the_next_one_connects_again(tmp_path: Path) -> None:
    plan = {"call:add": [["die once", str(tmp_path / "died")], ["count", 0]]}
    with anyio.fail_after(5):
        async with open_mcp(odd(plan)) as tools:
            with pytest.raises(ToolError, match="outcome is unknown"):
                await run(tools, "add")
            assert await run(tools, "add") == "1"


async def test_a_server_that_keeps_dying_is_said_to_be_gone(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    plan = listed(READS)
    plan["initialize"] = [["note", str(starts)], ["result", USUAL]]
    plan["call:add"] = [["die", 1]]
    with anyio.fail_after(10):
        async with open_mcp(odd(plan, trust_hints=True)) as tools:
            told: list[str] = []
            for _ in range(4):
                with pytest.raises(ToolError) as caught:
                    await run(tools, "add")
                told.append(str(caught.value))
    assert "it is gone: it was started 3 times in vain" in told[-1]
    assert len(starts.read_text(encoding="utf-8").splitlines()) == 4  # the first was not in vain


USUAL: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}


async def test_a_cancelled_call_is_cancelled_alone() -> None:
    plan = listed(tool("add"), tool("wait")) | {"call:wait": list[object]()}
    with anyio.fail_after(5):
        async with open_mcp(odd(plan)) as tools:
            with anyio.move_on_after(0.05) as scope:
                await run(tools, "wait")
            assert scope.cancelled_caught
            assert await run(tools, "add") == "done well"


async def test_a_server_that_dies_does_not_cancel_those_who_are_not_calling_it() -> None:
    plan = {"call:add": [["die", 1]]}
    progress: list[int] = []

    async def call(tools: Toolset) -> None:
        with pytest.raises(ToolError):
            await run(tools, "add")

    with anyio.fail_after(5):
        async with open_mcp(odd(plan)) as tools, anyio.create_task_group() as group:
            group.start_soon(call, tools)
            for each in range(20):
                await anyio.lowlevel.checkpoint()
                progress.append(each)
    assert len(progress) == 20


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("way", ["end", "exception", "cancellation"])
@pytest.mark.parametrize("ending", [[], [["ignore", 0]]], ids=["at once", "never"])
async def test_on_every_way_out_no_process_is_left(way: str, ending: list[object]) -> None:
    plan = {"start": [["spawn", 0]], "end": ending, "call:add": [["pid", 0]]}
    pid, family = 0, list[int]()
    with anyio.fail_after(10), anyio.CancelScope() as scope:
        try:
            async with open_mcp(odd(plan, close_timeout_s=0.3)) as tools:
                pid = int(await run(tools, "add"))
                family = [pid, *children_of_session(pid)]
                assert all(map(is_alive, family))
                if way == "exception":
                    raise LookupError("mine")
                if way == "cancellation":
                    scope.cancel()
                    await anyio.sleep_forever()
        except LookupError:
            pass
    assert pid
    assert not any(map(is_alive, family))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_when_the_engine_is_killed_its_servers_are() -> None:
    plan = json.dumps({"start": [["spawn", 0]], "call:add": [["pid", 0]], "end": [["ignore", 0]]})
    command = [sys.executable, "-I", "-S", str(ODD_SERVER), plan]
    engine = f"""
import anyio
from workflow_agent_react import McpServer, open_mcp
from workflow_protocol import StartStep, ThreadContext, ThreadId
from workflow_reactor import ToolCall

async def main():
    async with open_mcp(McpServer(command={command!r})) as tools:
        start = StartStep(prompt="p", workspace="/", timestamp_ms=0)
        ctx = ThreadContext(thread_id=ThreadId("T"), start=start)
        print(await tools.handler(ToolCall(id="c", name="add", arguments="{{}}"), ctx), flush=True)
        await anyio.sleep_forever()

anyio.run(main)
"""
    with subprocess.Popen([sys.executable, "-c", engine], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        family = [pid, *children_of_session(pid)]
        assert len(family) == 2
        process.kill()
    deadline = time.monotonic() + 5
    while any(map(is_alive, family)):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def children_of_session(pid: int) -> list[int]:
    return [
        int(each)
        for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    ]


async def test_lines_that_are_no_messages_are_told_once_each_and_without_a_traceback(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    plan = {"start": [["line", "Welcome!"], ["line", ""], ["line", "[1]"], ["stderr", "ready"]]}
    with caplog.at_level(logging.INFO, "workflow_agent_react"), anyio.fail_after(5):
        async with open_mcp(odd(plan)) as tools:
            assert await run(tools, "add") == "done well"
    told = [(each.levelname, each.getMessage()) for each in caplog.records]
    line = "the MCP server 'odd': this line on its standard output is no message: "
    assert ("WARNING", f"{line}'Welcome!'") in told
    assert ("WARNING", f"{line}'[1]'") in told
    assert ("INFO", "the MCP server 'odd' says: ready") in told
    assert not any(each.exc_info for each in caplog.records)
    assert len([each for each in told if each[0] == "WARNING"]) == 2
    assert capfd.readouterr() == ("", "")


async def test_a_banner_of_many_lines_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    plan = {"start": [["line", f"line {each}"] for each in range(100)]}
    with anyio.fail_after(5):
        async with open_mcp(odd(plan)):
            pass
    assert len([each for each in caplog.records if each.levelno == logging.WARNING]) == 5


async def test_another_standard_error_at_the_first_opening_does_not_break_later_ones(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with anyio.fail_after(10):
        with (
            (tmp_path / "err").open("w", encoding="utf-8") as other,
            monkeypatch.context() as patch,
        ):
            patch.setattr(sys, "stderr", other)
            async with open_mcp(odd()):
                pass
        async with open_mcp(odd()) as tools:
            assert await run(tools, "add") == "done well"


async def test_a_command_gets_a_few_variables_and_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-engine")
    monkeypatch.setenv("MY_TOKEN", "sk-mine")
    plan = {
        **listed(tool("key"), tool("token"), tool("path")),
        "call:key": [["env", "OPENAI_API_KEY"]],
        "call:token": [["env", "TOKEN"]],
        "call:path": [["env", "PATH"]],
    }
    with anyio.fail_after(5):
        async with open_mcp(odd(plan, env={"TOKEN": "<${MY_TOKEN}>"})) as tools:
            assert await run(tools, "key") == "unset"
            assert await run(tools, "token") == "<sk-mine>"
            assert await run(tools, "path") == os.environ["PATH"]


async def test_what_a_server_says_of_a_secret_is_not_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MY_TOKEN", "sk-mine")
    plan = {"start": [["stderr", "the token sk-mine is wrong"], ["die", 1]]}
    server = odd(plan, env={"TOKEN": "${MY_TOKEN}"})
    with (
        caplog.at_level(logging.DEBUG),
        anyio.fail_after(5),
        pytest.raises(McpError, match="the token … is wrong") as caught,
    ):
        async with open_mcp(server):
            raise AssertionError("unreachable")
    assert "sk-mine" not in f"{caught.value!r}{caplog.text}"


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"command": ["no-such-server"]}, "'no-such-server' can't be started: it is not on the"),
        ({"command": ["/nowhere/x"]}, "there is no such program"),
        ({"folder": Path("/nowhere")}, "there is no folder '/nowhere' to start it in"),
        ({"env": {"TOKEN": "${NOT_SET_ANYWHERE}"}}, "the environment variable NOT_SET_ANYWHERE"),
    ],
)
async def test_settings_that_can_not_be_right_are_named(
    fields: dict[str, Any], reason: str
) -> None:
    with anyio.fail_after(5), pytest.raises(McpError, match=reason):
        async with open_mcp(odd(**fields)):
            raise AssertionError("unreachable")


async def test_requests_of_the_server_are_answered_and_others_refused() -> None:
    asks = [
        "line",
        '{"jsonrpc": "2.0", "id": 99, "method": "sampling/createMessage", "params": {}}',
    ]
    plan = {"call:add": [asks, ["count", 0]]}
    with anyio.fail_after(5):
        async with open_mcp(odd(plan)) as tools:
            assert await run(tools, "add") == "1"


def test_the_server_of_these_tests_is_a_command() -> None:
    assert isinstance(odd(), McpServer)
