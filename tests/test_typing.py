"""The public types, as a type checker sees them."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
TYPING = ROOT / "tests" / "typing"


def pyright_errors(path: Path, tmp_path: Path) -> dict[int, str]:
    """The errors of one file by line number, counted from 1."""
    settings = {"typeCheckingMode": "strict", "venvPath": str(ROOT), "venv": ".venv"}
    (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "-p", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, check=False)
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    return {
        each["range"]["start"]["line"] + 1: each["message"]
        for each in report["generalDiagnostics"]
        if each["severity"] == "error"
    }


def test_values_have_the_types_of_their_roles(tmp_path: Path) -> None:
    assert pyright_errors(TYPING / "accepted.py", tmp_path) == {}


def test_wrong_schemas_and_wrong_uses_are_type_errors(tmp_path: Path) -> None:
    file = TYPING / "refused.py"
    lines = file.read_text(encoding="utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("# error")}

    assert pyright_errors(file, tmp_path).keys() == marked
