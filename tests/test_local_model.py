"""The whole path on the real local model. Protocol facts are asserted, not words."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from uwf.examples.greet import Greeting
from uwf.examples.repo_facts import RepoFacts, Review
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

README = """# Tally

Tally is a small Python program that counts words.

- Start it with `python tally.py FILE`.
- Run its tests with `pytest`.
"""


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


async def test_setup_bundle_add_run_show_on_the_embedded_model(tmp_path: Path) -> None:
    home, folder = tmp_path / "home", tmp_path / "tally"
    await anyio.Path(folder).mkdir()
    await (anyio.Path(folder) / "README.md").write_text(README, encoding="utf-8")
    code = "import sys\nprint(len(open(sys.argv[1]).read().split()))\n"
    await (anyio.Path(folder) / "tally.py").write_text(code, encoding="utf-8")

    exit_code, lines, words = await uwf(home, folder, "quickstart")

    events = [line for line in lines if "event" in line]
    ended = events[-1]
    assert ended["event"] == "ThreadEnded", words
    assert ended["state"] == "completed", words
    assert exit_code == ended["return_code"]
    values = [event for event in events if event["event"] == "RoleFinished"]
    assert [value["role"] for value in values][:2] == ["reader", "reviewer"]
    for value in values:
        schema = RepoFacts if value["role"] == "reader" else Review
        schema.model_validate_json(value["value"])
    assert any(event["event"] == "ToolFinished" and event["ok"] for event in events)
    replies = [event for event in events if event["event"] == "ModelReplied"]
    assert all(reply["usage"]["input_tokens"] > 0 for reply in replies)

    _, (shown,), _ = await uwf(home, folder, "show", "--turns")
    assert shown["thread"] == ended["thread"]
    attempts = [attempt for turn in shown["turns"] for attempt in turn["attempts"]]
    parts = [part for attempt in attempts for part in attempt["parts"]]
    assert sum(part["part"] == "round" for part in parts) == len(replies)


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
