"""Limits, prices and the supervisor of `workflow.yaml`."""

import json
import os
import shutil

import pytest

from workflow_reactor.testing import call, say

from .cli import Cli
from .entries import AGENT


async def test_limits_of_the_configuration_suspend_and_raising_them_goes_on(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    replies = [call("list_files"), call("resolve", value="a"), call("resolve", value="b")]
    async with uwf.scripted(replies):
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        config.write_text(f"{plain}limits: {{max_rounds: 1}}\n", encoding="utf-8")
        stopped = await uwf("run", entry, "Look.")
        assert (stopped.code, "limit of 1 model calls" in stopped.err) == (3, True)
        assert "Raise `limits.max_rounds`, now 1, in " in stopped.err
        config.write_text(f"{plain}limits: {{max_tokens: 100}}\n", encoding="utf-8")
        stopped = await uwf("thread", "resume")
        assert (stopped.code, "limit of 100 tokens" in stopped.err) == (3, True)
        assert "Raise `limits.max_tokens`, now 100, in " in stopped.err
        prices = "prices: {scripted: {input: 1, output: 1}}"
        config.write_text(f"{plain}limits: {{max_cost: 0.5, {prices}}}\n", encoding="utf-8")
        assert json.loads((await uwf("thread", "resume")).out) == "b"


async def test_a_supervisor_of_the_configuration_stops_a_thread_that_goes_in_circles(
    uwf: Cli,
) -> None:
    entry = uwf.write("agent.py", AGENT.replace("last: END", "last: role"))
    words = [call("resolve", value=word) for word in "abcd"]
    go_on = call("resolve", decision="continue", reason="fine")
    stop = call("resolve", decision="stop", reason="they repeat themselves")
    async with uwf.scripted([*words[:2], go_on, *words[2:], call("read_step", number=4), stop]):
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        watch = "supervisor: {every: 2, model: loopback/watcher, prompt: Stop at d.}\n"
        prices = "limits: {prices: {watcher: {input: 1000, output: 0}}}\n"
        config.write_text(f"{plain}{watch}{prices}", encoding="utf-8")
        ran = await uwf("run", entry, "Talk.")
    assert ran.code == 1
    assert "completed (1): stopped by the supervisor: they repeat themselves" in ran.err

    shown = await uwf("show", "--turns")
    assert "state      completed (return code 1)" in shown.out
    assert "summary    stopped by the supervisor: they repeat themselves" in shown.out
    assert "tokens     70 in (0 cached), 35 out, 7 model calls" in shown.out
    assert "cost       0.0300" in shown.out
    assert "\n5. the supervisor ended the thread\n  supervisor\n" in shown.out
    assert "  stop: they repeat themselves\n" in shown.out
    (data,) = (await uwf("show", "--json")).lines
    assert (data["return_code"], len(data["steps"]), data["usage"]["calls"]) == (1, 4, 7)

    replayed = await uwf("thread", "replay", "latest")
    assert (replayed.code, replayed.out.startswith("identical: 4 steps")) == (0, True)
    resumed = await uwf("thread", "resume")
    assert (resumed.code, "is completed; fork it" in resumed.err) == (1, True)


async def test_a_resumed_thread_is_supervised_too(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT.replace("last: END", "last: role"))
    stop = call("resolve", decision="stop", reason="enough")
    async with uwf.scripted([call("resolve", value="a"), say(""), stop]) as server:
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        config.write_text(f"{plain}limits: {{max_steps: 1}}\n", encoding="utf-8")
        assert (await uwf("run", entry, "Talk.")).code == 3
        config.write_text(f"{plain}supervisor: {{every: 1}}\n", encoding="utf-8")
        resumed = await uwf("thread", "resume")
    assert "completed (1): stopped by the supervisor: enough" in resumed.err
    assert {request["model"] for request in server.requests} == {"scripted"}


async def test_a_supervisor_that_fails_is_told_in_a_line_and_stops_nothing(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    async with uwf.scripted([call("resolve", value="a"), call("resolve", value="b")]):
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        other = "\n  other: {base_url: 'http://x/v1', api_key: '${NO_SUCH_KEY}'}\n"
        plain = plain.replace("providers:\n", f"providers:{other}")
        watch = "supervisor: {every: 1, model: other/m}\n"
        config.write_text(f"{plain}{watch}", encoding="utf-8")
        ran = await uwf("run", entry, "Talk.")
    assert (ran.code, json.loads(ran.out)) == (0, "b")
    assert "Traceback" not in ran.err
    (line,) = (line for line in ran.err.splitlines() if "supervisor" in line)
    assert line.startswith("uwf: the supervisor of thread 01")
    assert "the environment variable NO_SUCH_KEY is not set" in line


async def test_a_supervisor_that_cannot_be_is_refused_before_anything_runs(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    uwf.home.mkdir()
    config = uwf.home / "workflow.yaml"
    config.write_text("supervisor:\n  every: 2\n  model: cheap\n", encoding="utf-8")
    ran = await uwf("run", entry, "Talk.")
    assert ran.code == 1
    assert ran.err == (
        f"uwf: {config}:3: supervisor.model: 'cheap' is neither a scene nor PROVIDER/MODEL; "
        "there is none yet\n"
    )


async def test_a_command_without_a_sandbox_is_told_when_it_runs_and_in_show(uwf: Cli) -> None:
    bare = str(uwf.folder / "no-programs")
    entry = uwf.write("agent.py", AGENT.replace('sandbox="off"', ""))
    replies = [call("shell_exec", command="echo hello"), call("resolve", value="a"), say("b")]
    async with uwf.scripted(replies):
        ran = await uwf.process("run", entry, "Look.", PATH=bare)

    assert ran.err.count("commands run without a sandbox: bwrap is not installed\n") == 1
    shown = await uwf("show")
    assert "\nsandbox    commands ran without one: bwrap is not installed\n" in shown.out
    (data,) = (await uwf("show", "--json")).lines
    assert data["commands_without_sandbox"] == "bwrap is not installed"


async def test_the_configuration_can_require_a_sandbox_whatever_the_workflow_says(
    uwf: Cli,
) -> None:
    bare = str(uwf.folder / "no-programs")
    entry = uwf.write("agent.py", AGENT)
    assert 'sandbox="off"' in AGENT
    async with uwf.scripted([]) as model:
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        config.write_text(f"{plain}sandbox: require\n", encoding="utf-8")
        refused = await uwf.process("run", entry, "Look.", PATH=bare)
        config.write_text(f"{plain}sandbox: never\n", encoding="utf-8")
        unknown = await uwf("run", entry, "Look.")

    assert refused.code == 1
    assert "commands must run in a sandbox, but bwrap is not installed" in refused.err
    assert "`sandbox: auto` in workflow.yaml" in refused.err
    assert model.requests == []
    assert "sandbox: should be 'auto' or 'require'" in unknown.err


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
async def test_where_it_is_required_commands_run_in_the_sandbox(uwf: Cli) -> None:
    entry = uwf.write("agent.py", AGENT)
    replies = [call("shell_exec", command="id -un"), call("resolve", value="a"), say('"b"')]
    async with uwf.scripted(replies):
        config = uwf.home / "workflow.yaml"
        plain = config.read_text(encoding="utf-8")
        config.write_text(f"{plain}sandbox: require\n", encoding="utf-8")
        await uwf("run", entry, "Look.")

    shown = await uwf("show", "--turns")
    assert "agent\n        [exit code 0, " in shown.out
    assert "commands ran without" not in shown.out
    assert "UWF_SANDBOX" not in os.environ
