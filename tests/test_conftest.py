"""Which tests run when nothing or one of them is named."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = "tests/durability/test_torn_log.py"
SLOW = f"{FILE}::test_a_cut_at_every_byte_leaves_exactly_the_commits_that_are_whole"


def collected(*arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def test_a_slow_test_runs_when_it_is_named_and_not_by_default() -> None:
    assert SLOW in collected(SLOW)
    assert re.search(r"no tests collected \(\d+ deselected\)", collected(FILE))
