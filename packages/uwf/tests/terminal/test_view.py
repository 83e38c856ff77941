"""The live view of a run."""

import json
import os
import pty
import sys
from pathlib import Path

import anyio

from uwf.terminal._view import Progress
from workflow_protocol import ToolFinished, ToolStarted
from workflow_reactor.testing import call

from ..cli import Cli, example
from ..entries import APPROVED, FACTS, ONE, PROJECT


async def test_a_terminal_gets_a_live_view(uwf: Cli, entry: Path) -> None:
    uwf.write("README.md", PROJECT)
    replies = [call("read_file", path="README.md"), call("resolve", **FACTS), APPROVED]
    async with uwf.scripted(replies):
        text = await uwf.on_terminal("run", example("repo_facts"), "What is it?")

    assert "✓ read_file" in text
    assert "reader" in text
    assert "30 in, 15 out" in text
    assert "completed (0)" in text


async def test_events_go_to_standard_output_also_beside_a_terminal(uwf: Cli) -> None:
    uwf.write("one.py", ONE)
    ours, theirs = pty.openpty()
    done = await anyio.run_process(
        [sys.executable, "-m", "uwf", "run", "one.py", "x", "--json"],
        cwd=uwf.folder, env={**uwf.environment, "TERM": "xterm"}, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    drawn = os.read(ours, 65_536).decode()
    os.close(ours)
    events = [json.loads(line)["event"] for line in done.stdout.splitlines()]
    assert events == ["ThreadStarted", "RoleStarted", "RoleFinished", "ThreadEnded"]
    assert "completed (0)" in drawn
    assert "RoleFinished" not in drawn


def test_each_of_several_calls_at_once_is_shown_with_its_own_arguments() -> None:
    progress = Progress()
    for key, path in [("tool/0/0", "a"), ("tool/0/1", "b")]:
        arguments = json.dumps({"path": path})
        progress.line(ToolStarted(thread="t", key=key, name="read_file", arguments=arguments))

    ended = [
        progress.line(ToolFinished(thread="t", key="tool/0/0", name="read_file", ok=True)),
        progress.line(
            ToolFinished(
                thread="t", key="tool/0/1", name="read_file", ok=False, summary="there is no 'b'"
            )
        ),
    ]

    assert ended == [
        '  ✓ read_file {"path": "a"}',
        '  ✗ read_file: there is no \'b\'  {"path": "b"}',
    ]
