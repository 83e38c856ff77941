"""`uwf quickstart`: the other commands, one after the other."""

from workflow_reactor.testing import call, loopback_server

from ..cli import Cli
from ..entries import APPROVED, FACTS, PROJECT


async def test_quickstart_prints_each_command_and_does_the_whole_job(uwf: Cli) -> None:
    uwf.write("README.md", PROJECT)
    replies = [call("read_file", path="README.md"), call("resolve", **FACTS), APPROVED]
    async with uwf.scripted(replies):
        done = await uwf("quickstart")

    assert done.code == 0, done.err
    commands = [line for line in done.err.splitlines() if line.startswith("$ uwf ")]
    assert [line.split()[2] for line in commands] == ["bundle", "add", "run", "show"]
    assert "state      completed" in done.out


async def test_quickstart_takes_the_provider_of_the_environment(uwf: Cli) -> None:
    uwf.write("README.md", PROJECT)
    replies = [call("read_file", path="README.md"), call("resolve", **FACTS), APPROVED]
    async with loopback_server(replies) as server:
        done = await uwf(
            "quickstart",
            OPENAI_API_KEY="sk-environment",
            OPENAI_BASE_URL=f"http://127.0.0.1:{server.port}/v1",
            OPENAI_MODEL="m",
        )

    assert done.code == 0, done.err
    assert not (uwf.home / "workflow.yaml").exists()
    assert "sk-environment" not in done.out + done.err


async def test_a_quickstart_that_fails_stops_there_with_the_code_of_the_step(uwf: Cli) -> None:
    async with uwf.scripted([]):
        done = await uwf("quickstart", "--json")

    assert done.code == 1
    assert "the script has 0 replies" in done.err
    assert done.lines[-1]["event"] == "ThreadEnded"
    assert "uwf show" not in done.err
