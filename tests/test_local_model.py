"""The whole path on the real local model. Protocol facts are asserted, not words."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from uwf.examples.greet import Greeting
from workflow_local_model import CATALOGUE, DEFAULT_MODEL, is_present

from .pages.read_pages import ROOT, read_page

pytestmark = [
    pytest.mark.model,
    pytest.mark.timeout(900),
    pytest.mark.skipif(
        not is_present(CATALOGUE[DEFAULT_MODEL]),
        reason=f"the weights are absent; `uv run uwf model pull {DEFAULT_MODEL}` enables it",
    ),
]


async def uwf(home: Path, folder: Path, *words: str) -> tuple[int, list[dict[str, Any]], str]:
    """Run a command; give its exit code, its JSON lines and what it told people."""
    done = await anyio.run_process(
        [sys.executable, "-m", "uwf", *words, "--json"],
        check=False,
        cwd=folder,
        env={**os.environ, "UWF_HOME": str(home)},
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, lines, done.stderr.decode()


async def test_the_quickstart_on_the_embedded_model(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    await anyio.Path(project).mkdir()

    exit_code, lines, words = await uwf(home, tmp_path, "quickstart", "--workspace", str(project))

    events = [line for line in lines if "event" in line]
    started = [event for event in events if event["event"] == "ThreadStarted"]
    ended = next(event for event in reversed(events) if event["event"] == "ThreadEnded")
    assert ended["state"] in {"completed", "failed"}, words
    assert exit_code == ended["return_code"], words
    replies = [event for event in events if event["event"] == "ModelReplied"]
    assert all(reply["usage"]["input_tokens"] > 0 for reply in replies)
    if len(started) == 2:  # killed: what was recorded is told again and not asked again
        before = events.index(started[1])
        first = [event["key"] for event in events[:before] if event["event"] == "ModelReplied"]
        again = [event["key"] for event in replies if event["recorded"]]
        assert again == first

    _, (shown,), _ = await uwf(home, tmp_path, "show", "--turns")
    assert shown["thread"] == ended["thread"]
    attempts = [attempt for turn in shown["turns"] for attempt in turn["attempts"]]
    parts = [part for attempt in attempts for part in attempt["parts"]]
    asked = {event["key"] for event in replies}
    assert sum(part["part"] == "round" for part in parts) == len(asked)
    if ended["state"] == "completed":
        tests = [sys.executable, "-B", "-m", "unittest"]
        assert (await anyio.run_process(tests, cwd=project, check=False)).returncode == 0


async def test_one_shot_on_the_embedded_model(tmp_path: Path) -> None:
    greet = Path(__file__).parent.parent / "packages/uwf/src/uwf/examples/greet.py"
    await uwf(tmp_path, tmp_path, "setup", "--local")
    exit_code, lines, words = await uwf(
        tmp_path, tmp_path, "run", str(greet), "Greet Ada in French."
    )

    assert exit_code == 0, words
    (value,) = [line["value"] for line in lines if line.get("event") == "RoleFinished"]
    assert Greeting.model_validate_json(value).greeting


async def test_the_example_of_the_packages_readme_runs(tmp_path: Path) -> None:
    blocks = read_page(ROOT / "packages" / "workflow-local-model" / "README.md")
    (example,) = [each.code for each in blocks if each.language == "python"]
    done = await anyio.run_process([sys.executable, "-c", example], cwd=tmp_path)

    assert b"http://127.0.0.1:" in done.stdout
