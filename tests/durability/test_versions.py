"""A thread replays byte for byte in another process, locale, hash seed and Python version."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
SCENARIO = Path(__file__).with_name("scenario.py")


def run(command: Sequence[str | Path], what: str, folder: Path, **environment: str) -> Any:
    done = subprocess.run(
        [*command, SCENARIO, what, folder],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def interpreters() -> dict[str, str]:
    """The newest installed CPython of each minor version that is supported."""
    listed = subprocess.run(
        ["uv", "python", "list", "--only-installed", "--output-format", "json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYENV_VERSION": ""},
    )
    found: dict[str, str] = {}
    for each in json.loads(listed.stdout):
        parts = each["version_parts"]
        if each["implementation"] == "cpython" and (parts["major"], parts["minor"]) >= (3, 11):
            found.setdefault(f"3.{parts['minor']}", each["path"])
    for path in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python")):
        minor = ".".join(path.parent.parent.name.split(".")[:2])
        if int(minor.split(".")[1]) >= 11:
            found.setdefault(minor, str(path))
    return found


def third_party() -> list[str]:
    """What the packages need beside each other."""
    needed: set[str] = set()
    for name in ("protocol", "cas", "execute", "reactor", "agent-react", "util-agent"):
        path = ROOT / "packages" / f"workflow-{name}" / "pyproject.toml"
        project = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
        extras = [
            each for group in project.get("optional-dependencies", {}).values() for each in group
        ]
        needed |= {*project["dependencies"], *extras, "h11", "pydantic"}
    return sorted(each for each in needed if not re.match(r"workflow-|uwf", each))


@pytest.mark.parametrize(
    ("seed", "language"), [("0", "C"), ("1", "C.UTF-8"), ("4294967295", "tr_TR.UTF-8")]
)
def test_another_process_locale_and_hash_seed(tmp_path: Path, seed: str, language: str) -> None:
    ran = run([sys.executable], "run", tmp_path, PYTHONHASHSEED="7")
    replayed = run(
        [sys.executable], "replay", tmp_path, PYTHONHASHSEED=seed, LC_ALL=language, LANG=language
    )

    assert replayed == ran
    assert (ran["steps"], ran["requests"]) == (4, 9)


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.parametrize("minor", ["3.12", "3.13", "3.14"])
def test_another_minor_version_of_python(tmp_path: Path, minor: str) -> None:
    python = interpreters().get(minor)
    if python is None:
        pytest.skip(f"Python {minor} is not installed")
    environment = tmp_path / "venv"
    subprocess.run(["uv", "venv", "-q", "--python", python, environment], check=True)
    other = environment / "bin" / "python"
    installed = subprocess.run(
        ["uv", "pip", "install", "-q", "--python", other, *third_party()],
        capture_output=True,
        text=True,
        check=False,
    )
    if installed.returncode:
        pytest.skip(f"the dependencies can't be installed for {minor}: {installed.stderr[-200:]}")
    sources = os.pathsep.join(str(path) for path in sorted(ROOT.glob("packages/*/src")))

    folder = tmp_path / "thread"
    folder.mkdir()
    ran = run([sys.executable], "run", folder)
    assert run([other], "replay", folder, PYTHONPATH=sources) == ran
    back = tmp_path / "back"
    back.mkdir()
    made = run([other], "run", back, PYTHONPATH=sources)
    assert run([sys.executable], "replay", back) == made
