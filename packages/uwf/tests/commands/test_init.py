"""`uwf init`: what it writes runs, passes its own test and is clean under a strict checker."""

import json
import sys
from pathlib import Path

import anyio
import pytest

from workflow_reactor.testing import call

from ..cli import Cli

ROOT = Path(__file__).parents[4]
TEMPLATES = ["minimal", "develop", "solve-issue"]


@pytest.mark.parametrize(
    "template",
    [*(pytest.param(name, marks=pytest.mark.slow) for name in TEMPLATES[:2]), "solve-issue"],
)
async def test_it_writes_an_entry_and_its_test_and_says_what_comes_next(
    uwf: Cli, template: str
) -> None:
    done = await uwf("init", "my-flow", "--template", template)

    assert done.code == 0
    assert done.out.splitlines()[0] == "wrote my-flow/my_flow.py and my-flow/test_my_flow.py"
    assert "  pytest my-flow/test_my_flow.py\n  uwf run my-flow/my_flow.py " in done.out
    assert "  uwf add my-flow my-flow/my_flow.py" in done.out
    added = await uwf("add", "my-flow", "my-flow/my_flow.py")
    assert added.code == 0, added.err


async def test_what_is_there_is_not_overwritten(uwf: Cli) -> None:
    uwf.write("test_mine.py", "KEEP = 1\n")

    done = await uwf("init", "mine", "--output", ".")

    assert done.code == 2
    assert "test_mine.py is there; choose another name" in done.err
    assert (uwf.folder / "test_mine.py").read_text() == "KEEP = 1\n"
    assert not (uwf.folder / "mine.py").exists()


async def test_a_name_that_is_none_writes_nothing(uwf: Cli) -> None:
    done = await uwf("init", "../Away")

    assert done.code == 1
    assert "Traceback" not in done.err
    assert not list(uwf.folder.parent.glob("Away*"))


@pytest.mark.slow
async def test_the_minimal_workflow_runs_with_the_default_model(uwf: Cli) -> None:
    await uwf("init", "ask")

    async with uwf.scripted([call("resolve", value="Bread.")]):
        done = await uwf("run", "ask/ask.py", "What?")

    assert "Bread." in done.out


@pytest.mark.slow
@pytest.mark.parametrize("template", TEMPLATES)
async def test_its_own_test_passes_and_a_strict_checker_finds_nothing(
    uwf: Cli, template: str
) -> None:
    await uwf("init", "my-flow", "--template", template)
    folder = uwf.folder / "my-flow"
    settings = {
        "typeCheckingMode": "strict",
        "venvPath": str(ROOT),
        "venv": ".venv",
        "pythonVersion": "3.11",
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))

    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    for command in (tests, ["pyright"]):
        done = await anyio.run_process(command, cwd=folder, check=False)
        assert done.returncode == 0, done.stdout.decode()
