"""Which tests run when nothing or one of them is named."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
FILE = "tests/durability/test_torn_log.py"
SLOW = f"{FILE}::test_a_log_that_is_cut_anywhere_keeps_what_is_complete_and_the_thread_goes_on"


def collected(*arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout


def test_a_slow_test_runs_when_it_is_named_and_not_by_default() -> None:
    assert SLOW in collected(SLOW)
    assert "no tests collected (1 deselected)" in collected(FILE)
