"""A fixed command as a tool: whether it succeeded is whether its exit code is 0."""

from pathlib import Path

import pytest

from workflow_agent_react import ToolError, Toolset, command_tool
from workflow_protocol import Effect, StartStep, ThreadContext, ThreadId
from workflow_reactor import ToolCall


async def use(tools: Toolset, workspace: Path) -> str:
    start = StartStep(prompt="p", workspace=workspace, timestamp_ms=0)
    ctx = ThreadContext(thread_id=ThreadId("01J"), start=start)
    (only,) = tools.tools
    return await tools.handler(ToolCall(id="1", name=only.name, arguments="{}"), ctx)


def shell(script: str, *, timeout_s: float = 60, max_output_bytes: int = 8_000) -> Toolset:
    return command_tool(
        "check",
        ["sh", "-c", script],
        description="Check it.",
        timeout_s=timeout_s,
        max_output_bytes=max_output_bytes,
    )


def test_the_model_can_choose_nothing_but_when_it_runs() -> None:
    (check,) = shell("true").tools

    assert check.name == "check"
    assert check.description == "Check it."
    assert b'"properties":{}' in check.json.replace(b" ", b"")
    assert check.effect is Effect.UNSAFE


async def test_a_command_that_passes_gives_its_output(tmp_path: Path) -> None:
    assert (await use(shell("echo fine"), tmp_path)).startswith("fine\n[exit code 0, under 1 s")


async def test_a_command_that_fails_has_failed_with_its_output(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="broken\n\\[exit code 3"):
        await use(shell("echo broken; exit 3"), tmp_path)


async def test_a_command_that_takes_too_long_has_failed(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="it took longer than 1 s"):
        await use(shell("echo begun; sleep 60", timeout_s=1), tmp_path)


async def test_what_it_gives_is_no_longer_than_it_says(tmp_path: Path) -> None:
    tools = shell("yes | head -c 100000", max_output_bytes=500)
    (check,) = tools.tools

    assert check.max_result_chars is not None
    assert 500 < len(await use(tools, tmp_path)) <= check.max_result_chars


@pytest.mark.parametrize(
    ("command", "error"), [("pytest", TypeError), ([], ValueError), (["a\0"], ValueError)]
)
def test_a_command_that_is_none_is_refused(command: list[str], error: type[Exception]) -> None:
    with pytest.raises(error):
        command_tool("check", command, description="Check it.")
