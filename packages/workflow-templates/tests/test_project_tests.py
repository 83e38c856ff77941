"""Which command runs a project's tests, and what it says of each."""

import json
import sys
from pathlib import Path

import pytest

from workflow_agent_react import CommandResult
from workflow_templates import TestResults, find_test_command
from workflow_templates._project_tests import read_results, worse_than


def printed(output: str, code: int = 0) -> TestResults:
    return read_results(CommandResult(exit_code=code, passed=code == 0, output=output))


@pytest.mark.parametrize(
    ("files", "command"),
    [
        ({"Cargo.toml": ""}, "cargo test"),
        ({"go.mod": ""}, "go test ./..."),
        ({"package.json": json.dumps({"scripts": {"test": "node t.js"}})}, "npm test --silent"),
        ({"package.json": "{}"}, ""),
        ({"package.json": "not json"}, ""),
        ({"Makefile": "all:\n\ntest: all\n\t./t\n"}, "make test"),
        ({"test_a.py": "import unittest"}, f"{sys.executable} -B -m unittest -v"),
        ({"readme.txt": ""}, ""),
    ],
)
def test_the_command_is_found_by_the_files(
    tmp_path: Path, files: dict[str, str], command: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)

    assert " ".join(find_test_command(tmp_path)) == command


def test_pytest_is_taken_for_functions_and_the_projects_own_python(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_a.py").write_text("def test_a(): ...\n")
    assert find_test_command(tmp_path)[:4] == [sys.executable, "-B", "-m", "pytest"]

    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    assert find_test_command(tmp_path)[0] == ".venv/bin/python"


def test_single_tests_are_read_from_pytest_and_unittest() -> None:
    pytest_said = printed(
        "PASSED t.py::a\nPASSED t.py::b[x y]\nFAILED t.py::c - assert 1 == 2\nERROR t.py\n", 1
    )
    unittest_said = printed(
        "test_a (t.C.test_a) ... ok\ntest_b (t.C.test_b)\nIt does. ... FAIL\n"
        "test_c (t.C) ... ERROR\nFAILED (failures=1, errors=1)\n",
        1,
    )

    assert (pytest_said.passed, pytest_said.failed) == (
        ["t.py::a", "t.py::b[x y]"],
        ["t.py", "t.py::c"],
    )
    assert (unittest_said.passed, unittest_said.failed) == (
        ["t.C.test_a"],
        ["t.C.test_b", "t.C.test_c"],
    )


@pytest.mark.parametrize(
    ("before", "now", "faults"),
    [
        (printed("PASSED a"), printed("PASSED a"), []),
        (printed("PASSED a"), printed(""), ["a passed before and does not now"]),
        (printed("PASSED a"), printed("FAILED a", 1), ["a fails"]),
        (printed("PASSED a\nFAILED b", 1), printed("PASSED a\nFAILED b", 1), []),
        (printed("PASSED a\nFAILED b", 1), printed("PASSED a\nPASSED b"), []),
        (printed("PASSED a"), printed("PASSED a\nFAILED new", 1), ["new fails"]),
        (printed("PASSED a"), printed("PASSED a", 5), ["the command for the tests ended with 5"]),
        (printed(""), printed("", 1), ["the command for the tests ended with 1"]),
    ],
)
def test_a_run_may_stand_only_if_no_test_is_worse(
    before: TestResults, now: TestResults, faults: list[str]
) -> None:
    assert worse_than(before, now) == faults
