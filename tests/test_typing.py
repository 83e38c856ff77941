"""The public types, as a type checker sees them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import uwf

ROOT = Path(__file__).parent.parent
TYPING = ROOT / "tests" / "typing"


def pyright_errors(path: Path, tmp_path: Path, severity: str = "error") -> dict[int, str]:
    """The errors of one file, or what it reveals, by line number, counted from 1."""
    settings = {"typeCheckingMode": "strict", "venvPath": str(ROOT), "venv": ".venv"}
    project = tmp_path / "project"
    project.mkdir(exist_ok=True)
    (project / path.name).write_bytes(path.read_bytes())
    (project / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(project)]
    done = subprocess.run(command, capture_output=True, check=False)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    return {
        each["range"]["start"]["line"] + 1: each["message"]
        for each in report["generalDiagnostics"]
        if each["severity"] == severity
    }


@pytest.mark.slow
def test_values_have_the_types_of_their_roles(tmp_path: Path) -> None:
    assert pyright_errors(TYPING / "accepted.py", tmp_path) == {}


def test_wrong_schemas_and_wrong_uses_are_type_errors(tmp_path: Path) -> None:
    file = TYPING / "refused.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("# error")}

    assert pyright_errors(file, tmp_path).keys() == marked


@pytest.mark.slow
def test_each_name_of_uwf_has_a_type(tmp_path: Path) -> None:
    names = uwf.__all__
    file = tmp_path / "source" / "names.py"
    file.parent.mkdir()
    lines = [f"from uwf import {name}; reveal_type({name})" for name in names]
    file.write_text("\n".join(lines), encoding="utf-8")

    assert pyright_errors(file, tmp_path) == {}
    revealed = pyright_errors(file, tmp_path, "information")
    assert len(revealed) == len(names)
    kinds = {names[line - 1]: words.partition(" is ")[2] for line, words in revealed.items()}
    assert {name: kind for name, kind in kinds.items() if kind in {'"Any"', '"Unknown"', ""}} == {}
