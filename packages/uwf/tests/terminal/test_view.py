"""The live view of a run."""

import json
import os
import pty
import sys
from pathlib import Path

import anyio
import pytest

from uwf.terminal._view import Progress
from workflow_protocol import ModelReplied, ToolFinished, ToolStarted, Usage
from workflow_reactor.testing import call, function, say

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


async def test_what_a_model_says_beside_its_calls_is_shown_before_them(uwf: Cli) -> None:
    uwf.write("README.md", PROJECT)
    look = say("I will read\x1b[2J the README.", function("read_file", path="README.md"))
    async with uwf.scripted([look, call("resolve", **FACTS), APPROVED]):
        ran = await uwf("run", example("repo_facts"), "What is it?")

    said, read = ran.err.splitlines()[2:4]
    assert said == "  “I will read [2J the README.”"
    assert read.startswith("  ✓ read_file")
    assert "approved" not in "".join(line for line in ran.err.splitlines() if "“" in line)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", None),
        ('{"tool": "read_file", "args": {}}', None),
        ('```json\n{"approved": true}', None),
        ("true", None),
        ("<final_answer>42</final_answer>", None),
        ("<thought>I look.</thought>\n<action>read_file()</action>", "  “I look.”"),
        ("one\ttwo\r\n\nthree", "  “one two three”"),
        ("word " * 40, f"  “{'word ' * 6}word…”"),
        ("x" * 200, f"  “{'x' * 35}…”"),
    ],
)
def test_only_words_for_people_are_shown_cut_at_a_space(text: str, shown: str | None) -> None:
    replied = ModelReplied(round=0, usage=Usage(), text=text)
    assert Progress(lambda: 40).line(replied) == shown
