"""The README's example runs, and the package is imported without an SDK."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"


def _run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_example_prints_its_three_spans() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)

    printed = re.findall(r'"name": "(\w+ \w+)"', _run(example))

    assert printed == ["chat scripted", "invoke_agent counter", "invoke_workflow workflow"]


def test_the_package_imports_neither_sdk_nor_engine() -> None:
    printed = _run(
        "import sys, workflow_otel\n"
        "print('opentelemetry.sdk' in sys.modules, 'workflow_execute' in sys.modules)"
    )

    assert printed.split() == ["False", "False"]
