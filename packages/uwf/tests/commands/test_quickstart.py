"""`uwf quickstart`: a real job by the other commands, killed in the middle of a turn."""

import json

from workflow_reactor.testing import Reply, call, loopback_server

from ..cli import Cli

READ = call("read_file", path="shopping.py")
PATCH = call("patch_file", path="shopping.py", old="100 + discount", new="100 - discount")
TEST = call("run_tests")
RESOLVE = call("resolve", value="The discount was added.")
JOB: list[Reply] = [READ, PATCH, TEST, RESOLVE]
"""The request after the patch may be sent by the process that is killed, and again on resume."""


async def test_quickstart_prints_each_command_and_does_the_whole_job(uwf: Cli) -> None:
    project = uwf.folder / "project"
    project.mkdir()
    async with uwf.scripted([READ, PATCH, TEST, TEST, RESOLVE, RESOLVE]) as server:
        done = await uwf("quickstart", "--workspace", project)

    assert done.code == 0, done.err
    commands = [line.split()[2:4] for line in done.err.splitlines() if line.startswith("$ uwf ")]
    assert [" ".join(words) for words in commands][3:] == [
        "thread list", "thread resume", "thread changes", "show latest", "thread replay"
    ]  # fmt: skip
    assert "M shopping.py  +1 -1" in done.out
    assert "interrupted" in done.out
    assert "identical: 1 steps" in done.out
    assert "state      completed" in done.out
    assert "100 - discount" in (project / "shopping.py").read_text()
    assert (project / ".git").is_dir()
    unittest = [line for line in done.err.splitlines() if line.startswith(("FAILED", "OK"))]
    assert unittest == ["FAILED (failures=1)", "OK"]
    assert len(server.requests) in {4, 5}, "only what was under way at the kill is asked again"


async def test_quickstart_takes_the_provider_of_the_environment(uwf: Cli) -> None:
    async with loopback_server([READ, PATCH, TEST, TEST, RESOLVE, RESOLVE]) as server:
        done = await uwf(
            "quickstart",
            "--json",
            OPENAI_API_KEY="sk-environment",
            OPENAI_BASE_URL=f"http://127.0.0.1:{server.port}/v1",
            OPENAI_MODEL="m",
        )

    assert done.code == 0, done.err
    assert not (uwf.home / "workflow.yaml").exists()
    assert "sk-environment" not in done.out + done.err
    started = [each for each in done.lines if each.get("event") == "ThreadStarted"]
    assert [each["recorded"] for each in started] == [False, True]


async def test_a_quickstart_that_fails_stops_there_and_says_why(uwf: Cli) -> None:
    async with uwf.scripted([]):
        done = await uwf("quickstart", "--json")

    assert done.code == 1
    assert "the script has 0 replies" in done.err
    assert done.lines[-1]["event"] == "ThreadEnded"
    assert "uwf show" not in done.err


async def test_a_quickstart_leaves_a_folder_with_files_alone(uwf: Cli) -> None:
    own = uwf.write("own.txt", "mine")
    async with uwf.scripted([]):
        done = await uwf("quickstart", "--workspace", uwf.folder)

    assert done.code == 2
    assert "is not empty" in done.err
    assert own.read_text() == "mine"
    assert not (uwf.folder / "shopping.py").exists()


async def test_the_tests_of_the_project_are_out_of_reach_of_the_model(uwf: Cli) -> None:
    cheat = call("patch_file", path="test_shopping.py", old="90)", new="110)")
    too_early = call("resolve", value="done")
    project = uwf.folder / "project"
    project.mkdir()
    replies = [cheat, too_early, PATCH, too_early, too_early, TEST, RESOLVE]
    async with uwf.scripted(replies):
        done = await uwf("quickstart", "--json", "--workspace", project)

    assert done.code == 0, done.err
    refused = [
        each["name"]
        for each in done.lines
        if each.get("event") == "ToolFinished" and not each["ok"] and not each["recorded"]
    ]
    assert refused[:2] == ["patch_file", "resolve"]
    assert "110)" not in (project / "test_shopping.py").read_text()
    assert json.loads(done.out.splitlines()[-1])["steps"] == 1
