"""Nothing that comes from outside steers the terminal."""

from pathlib import Path

from workflow_reactor.testing import Wire, http, loopback_server, say

from ..cli import Cli


async def test_what_a_model_says_can_not_steer_the_terminal(uwf: Cli, entry: Path) -> None:
    async with uwf.scripted([say('{"value": "\\u001b[31mred\\u009b31m"}')]):
        ran = await uwf("run", "hello.py", "Greet \x1b[31mAda.")
    shown = await uwf("show", "--turns")

    for text in (ran.out, ran.err, shown.out):
        assert "\x1b" not in text
        assert "\x9b" not in text


async def test_what_a_provider_says_can_not_steer_the_terminal(uwf: Cli, entry: Path) -> None:
    refusal = Wire(data=http(503, b'{"error": {"message": "\\u001b[31mbusy\\nuwf: all is well"}}'))
    async with loopback_server([refusal, say('{"value": "Salut"}')]) as server:
        uwf.use(server)
        ran = await uwf("run", "hello.py", "x")
    assert ran.code == 0
    (line,) = (line for line in ran.err.splitlines() if "busy" in line)
    assert line.startswith("  waiting ")
    assert line.endswith("busy uwf: all is well")
    assert "\x1b" not in ran.err
