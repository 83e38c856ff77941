"""What the package's README promises."""

import re
import subprocess
import sys
from pathlib import Path

import workflow_reactor

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_it_says() -> None:
    example, shown = re.findall(r"```(?:python)?\n(.*?)```", README, re.DOTALL)[:2]

    ran = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == (shown, "")


def test_it_names_every_function_and_error() -> None:
    names = {name for name in workflow_reactor.__all__ if name[0].islower() or "Error" in name}

    assert {name for name in names if name not in README} == {"ReactorError"}
