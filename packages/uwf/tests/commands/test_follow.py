"""Threads that run in processes of their own: started, followed and waited for from any shell."""

from __future__ import annotations

import json
import os
import re
import signal
from typing import Any

import anyio
import pytest

from workflow_reactor.testing import call

from ..cli import Cli, Done, alive, until
from ..entries import AGENT

ENTRY = """
import anyio
from workflow_execute.testing import in_turn
from workflow_protocol import Question, ToolFinished, ToolStarted

async def first(ctx):
    return 1

async def second(ctx):
    await ctx.journal.note(ToolStarted(key="tool/0/0", name="dig", arguments="{}"))
    while not (ctx.start.workspace / "go").exists():
        await anyio.sleep(0.01)
    await ctx.journal.note(ToolFinished(key="tool/0/0", name="dig", ok=True))
    if ctx.start.prompt == "ask":
        await ctx.journal.ask("ask", Question(text="Really?"))
    if ctx.start.prompt == "fail":
        raise LookupError("gone")
    return 2

run = in_turn(first, second)
"""


async def begin(uwf: Cli, prompt: str = "go") -> tuple[str, int]:
    """Start a run in a process of its own; its thread and its process."""
    uwf.write("entry.py", ENTRY)
    (told,) = (await uwf.process("run", "--detach", "--json", "entry.py", prompt)).lines
    return told["thread"], told["pid"]


async def test_two_followers_see_a_detached_run_to_its_end(uwf: Cli) -> None:
    done: list[Done] = []

    async def watch(thread: str, *options: str) -> None:
        done.append(await uwf("thread", "follow", thread, *options))

    with anyio.fail_after(30):
        thread, pid = await begin(uwf)
        async with anyio.create_task_group() as group:
            group.start_soon(watch, thread, "--json", "--from-start")
            await until(lambda: bool(list(uwf.home.glob(f"locks/{thread}.now"))))
            assert alive(pid)
            await anyio.sleep(0.6)  # so that it is looked at while it runs
            (uwf.folder / "go").touch()
        plain = await uwf("thread", "follow", thread)
    (seen,) = done
    assert seen.code == plain.code == 0
    lines: list[dict[str, Any]] = seen.lines
    assert [each["value"] for each in lines if "value" in each] == [1, 2]
    at_work = [
        each["now"]["doing"][0]["name"] for each in lines if each.get("now", {}).get("doing")
    ]
    assert at_work == ["dig"]
    assert (lines[-1]["state"], lines[-1]["code"]) == ("completed", 0)
    assert plain.out.splitlines()[0].startswith("role-1 (step 2) = 2")
    assert plain.out.splitlines()[-1].startswith("completed")


@pytest.mark.slow
@pytest.mark.parametrize(("prompt", "code"), [("fail", 1), ("ask", 3)])
async def test_join_exits_as_the_run_did(uwf: Cli, prompt: str, code: int) -> None:
    (uwf.folder / "go").touch()
    with anyio.fail_after(30):
        thread, _ = await begin(uwf, prompt)
        good, _ = await begin(uwf)
        joined = await uwf("thread", "join", good, thread, "--json")
        followed = await uwf("thread", "follow", thread)

    assert joined.code == followed.code == code
    assert [each["code"] for each in joined.lines] == [0, code]


async def test_a_killed_run_is_told_as_interrupted(uwf: Cli) -> None:
    with anyio.fail_after(30):
        thread, pid = await begin(uwf)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: not alive(pid))
        followed = await uwf("thread", "follow", thread)
        joined = await uwf("thread", "join", thread)

    assert followed.code == joined.code == 1
    assert followed.out.splitlines()[-1].startswith("interrupted: its process died")
    assert "interrupted" in joined.out


@pytest.mark.slow
async def test_ctrl_c_ends_the_follower_and_not_the_thread(uwf: Cli) -> None:
    with anyio.fail_after(30):
        thread, pid = await begin(uwf)
        async with await uwf.start("thread", "follow", thread) as follower:
            assert follower.stdout is not None
            assert await follower.stdout.receive()  # it is attached
            follower.send_signal(signal.SIGINT)
            assert await follower.wait() == 130
        assert alive(pid)
        (uwf.folder / "go").touch()
        assert (await uwf("thread", "join", thread)).code == 0


async def test_a_run_that_can_not_begin_says_why(uwf: Cli) -> None:
    uwf.write("broken.py", "raise LookupError('no such thing')")

    failed = await uwf.process("run", "--detach", "broken.py", "go")

    assert failed.code != 0
    assert "before its thread was at work" in failed.err
    assert "no such thing" in failed.err
    assert json.dumps(failed.out) == '""'


@pytest.mark.slow
async def test_a_suspended_thread_goes_on_in_a_process_of_its_own(uwf: Cli) -> None:
    (uwf.folder / "go").touch()
    with anyio.fail_after(30):
        thread, _ = await begin(uwf, "ask")
        assert (await uwf("thread", "join", thread)).code == 3
        await uwf("thread", "answer", thread, "ask", "--approve")
        (told,) = (await uwf.process("thread", "resume", "--detach", "--json", thread)).lines
        assert told["thread"] == thread
        assert (await uwf("thread", "join", thread)).code == 0

    assert len(list(uwf.home.glob(f"logs/{thread}-*.log"))) == 2
    await uwf("thread", "delete", thread, "--yes")
    assert list(uwf.home.glob("logs/*")) == []


async def test_a_detached_run_is_given_a_task_of_any_length(uwf: Cli) -> None:
    (uwf.folder / "go").touch()
    uwf.write("entry.py", ENTRY)
    task = "long " * 100_000
    with anyio.fail_after(30):
        begun = await uwf.process("run", "--detach", "entry.py", "-", stdin=task.encode())
        thread = begun.out.strip()
        assert (await uwf("thread", "join", thread)).code == 0

    shown = await uwf("show", thread, "--json")
    assert shown.lines[0]["prompt"] == task


@pytest.mark.slow
async def test_a_tool_at_work_is_not_told_as_failed(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    wait = call("shell_exec", command="echo 待つ; until [ -e go ]; do sleep 0.02; done")
    replies = [json.dumps(_with_words(wait)).encode(), *[call("resolve", value="a")] * 2]
    async with uwf.scripted(replies):
        (told,) = (await uwf.process("run", "--detach", "--json", entry, "go")).lines
        with anyio.fail_after(30):
            async with await uwf.start("thread", "follow", told["thread"]) as follower:
                assert follower.stdout is not None
                out = ""
                while "shell_exec (" not in out:
                    out += (await follower.stdout.receive()).decode()
                (uwf.folder / "go").touch()
                async for part in follower.stdout:
                    out += part.decode()
    assert "unknown" not in out
    assert "“I wait.”" in out
    assert '✓ shell_exec {"command": "echo 待つ;' in out


def _with_words(reply: bytes) -> Any:
    whole = json.loads(reply)
    whole["choices"][0]["message"]["content"] = "I wait."
    return whole


@pytest.mark.slow
async def test_the_line_of_a_follower_keeps_to_the_width_of_the_terminal(uwf: Cli) -> None:
    with anyio.fail_after(30):
        thread, _ = await begin(uwf)
        (uwf.folder / "go").touch()
        drawn = await uwf.on_terminal("thread", "follow", thread, "--from-start", columns=50)
    for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;]*[mK]", "", drawn)):
        assert len(line) <= 50
