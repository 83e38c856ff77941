"""What the tests of the command share; how they run it is in `cli.py`."""

from pathlib import Path

import pytest

from .cli import Cli
from .entries import ENTRY


@pytest.fixture
def uwf(tmp_path: Path) -> Cli:
    """The command with an empty home, in an empty folder."""
    (tmp_path / "work").mkdir()
    return Cli(tmp_path / "home", tmp_path / "work")


@pytest.fixture
def entry(uwf: Cli) -> Path:
    """An entry script of two modules, with one role that asks the model once."""
    uwf.write("words.py", 'PROMPT = "Greet."\n')
    return uwf.write("hello.py", ENTRY)
