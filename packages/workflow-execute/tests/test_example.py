"""The example of the README, as it is printed there."""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_example_of_the_readme_prints_what_the_readme_says(tmp_path: Path) -> None:
    script, output = re.findall(
        r"```python\n(.*?)```\n\n```\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL
    )[0]
    (tmp_path / "example.py").write_text(script, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert (done.stderr, done.stdout) == ("", output)
