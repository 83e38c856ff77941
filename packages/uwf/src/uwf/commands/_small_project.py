"""A small project with a fault, for the quickstart: a git repository in a folder of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FAULT = "total([50, 50], discount=10) in shopping.py gives 110.0 and should give 90. Mend it."

_SHOPPING = '''"""A shopping basket."""


def total(prices, discount=0):
    """Add up the prices, and take a discount in percent off."""
    return sum(prices) * (100 + discount) / 100


def most_expensive(prices):
    """Give the highest price; 0 for an empty basket."""
    return max(prices, default=0)
'''

_TESTS = """import unittest

from shopping import most_expensive, total


class Shopping(unittest.TestCase):
    def test_prices_are_added_up(self):
        self.assertEqual(total([2, 3]), 5)

    def test_a_discount_makes_it_cheaper(self):
        self.assertEqual(total([50, 50], discount=10), 90)

    def test_the_highest_price_is_found(self):
        self.assertEqual(most_expensive([1, 7, 3]), 7)
"""


def make_small_project(folder: Path) -> bool:
    """Write the project into an empty folder, and commit it where there is git.

    Returns:
        Whether it is a git repository.
    """
    (folder / "shopping.py").write_text(_SHOPPING, encoding="utf-8")
    (folder / "test_shopping.py").write_text(_TESTS, encoding="utf-8")
    try:
        for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "A shopping basket"]):
            _git(folder, *words)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def run_its_tests(folder: Path) -> tuple[bool, str]:
    """Run the project's tests: whether they pass, and what they say."""
    done = subprocess.run(
        [sys.executable, "-B", "-m", "unittest"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode == 0, done.stderr


def _git(folder: Path, *words: str) -> None:
    """Run git with no settings but these, so that it is the same for everybody."""
    who = ("-c", "user.name=uwf quickstart", "-c", "user.email=quickstart@localhost")
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }
    subprocess.run(
        ["git", *who, *words], cwd=folder, env=environment, check=True, capture_output=True
    )
