"""`init`: writes an entry script and a test for it."""

from __future__ import annotations

import shlex
from importlib.resources import files
from pathlib import Path

from uwf._errors import UsageError
from uwf.terminal._output import Output
from workflow_register import check_name


def init(output: Output, *, name: str, template: str, folder: Path | None) -> int:
    """Write the two files of a template into a folder, and say what comes next.

    Raises:
        UsageError: the name is none, or one of the files is there.
    """
    check_name(name)
    folder = Path(name) if folder is None else folder
    module = name.replace("-", "_")
    stem = template.replace("-", "_")
    starters = files("workflow_templates") / "starters"
    made = {
        folder / f"{module}.py": (starters / f"{stem}.py.txt").read_text(encoding="utf-8"),
        folder / f"test_{module}.py": (starters / f"{stem}_test.py.txt").read_text(
            encoding="utf-8"
        ),
    }
    for path in made:
        if path.exists() or path.is_symlink():
            raise UsageError(f"{path} is there; choose another name, or a folder with --output")
    folder.mkdir(parents=True, exist_ok=True)
    for path, text in made.items():
        with path.open("x", encoding="utf-8") as file:
            file.write(text.replace("ENTRY", module).replace("NAME", name))
    entry, test = made
    task = {"minimal": "What is this project?", "develop": "WHAT TO DO", "solve-issue": "ISSUE.md"}
    words = shlex.quote(task[template])
    output.data(
        {"entry": str(entry), "test": str(test)},
        f"wrote {entry} and {test}\n\n"
        "Next:\n"
        f"  pytest {shlex.quote(str(test))}\n"
        f"  uwf run {shlex.quote(str(entry))} {words} --workspace path/to/a/project\n"
        f"  uwf add {name} {shlex.quote(str(entry))}",
    )
    return 0
