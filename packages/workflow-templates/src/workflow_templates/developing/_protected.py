"""Files by which tests could be made to pass without mending anything."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

TESTS = ("test_*.py", "*_test.py", "tests.py", "*.test.js", "*.test.ts", "*_test.go")
"""Names of files with tests. Those that are there stay as they are; new ones may come."""
TEST_FOLDERS = ("test", "tests", "testing", "__tests__")
"""All that is in such a folder belongs to the tests."""
RUNNERS = (
    "conftest.py",
    "pytest.ini",
    "tox.ini",
    "noxfile.py",
    "sitecustomize.py",
    "usercustomize.py",
    "pytest.py",
    "unittest.py",
)
"""What decides on how tests run: not to be changed and not to be added."""
_RUNNER_FOLDERS = ("pytest", "_pytest", "unittest")


def is_test(path: str) -> bool:
    """Whether a file belongs to the tests."""
    *folders, name = path.split("/")
    return any(folder in TEST_FOLDERS for folder in folders) or _matches(name, TESTS)


def protected(
    changes: Mapping[str, str], patterns: Sequence[str], *, may_change_tests: bool
) -> list[str]:
    """Which changes are not allowed.

    Args:
        changes: letters of git by path.
        patterns: paths that may not be changed, where `*` stands for any characters.
        may_change_tests: whether tests that are there may be changed or deleted.
    """
    found: list[str] = []
    for path, letter in sorted(changes.items()):
        *folders, name = path.split("/")
        if _matches(path, patterns) or (
            not may_change_tests
            and (
                name in RUNNERS
                or bool(folders and folders[0] in _RUNNER_FOLDERS)
                or (letter != "A" and is_test(path))
            )
        ):
            found.append(path)
    return found


def _matches(text: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)


def shortened(text: str, limit: int) -> str:
    """A text without its middle, where it is longer than the limit."""
    if len(text) <= limit:
        return text
    half = limit // 2
    hidden = len(text) - 2 * half
    return f"{text[:half]}\n[… {hidden} characters of the diff are left out …]\n{text[-half:]}"


def imperative(subject: str) -> str:
    """The first line of a commit, without what can't stand there."""
    return re.sub(r"[\x00-\x1f\x7f]+", " ", subject).strip()
