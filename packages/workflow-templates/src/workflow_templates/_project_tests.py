"""The tests of a project: which command runs them, and what it says of each test."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import msgspec

from workflow_agent_react import CommandResult, command_adapter
from workflow_protocol import Effect, ThreadContext

MAX_OUTPUT_BYTES = 400_000
"""Of a test run, so that each test is found in it."""
SHOWN_CHARS = 6_000
"""Of the output that later roles read: the end, where the failures are summed up."""

_PYTEST = re.compile(r"^(PASSED|FAILED|ERROR) ([^\s(].*?)(?: - .*)?$", re.MULTILINE)
_UNITTEST = re.compile(
    r"^(\w+) \(([\w.<>]+)\)(?:\n[^\n]*?)?? \.\.\. (ok|FAIL|ERROR)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Commands:
    """How commands of a project run: what of this machine they see, and how long they take."""

    timeout_s: float = 600.0
    """Of one command."""
    readable: tuple[Path, ...] = ()
    """Folders outside of the workspace that they need in the sandbox."""

    async def run(
        self, ctx: ThreadContext, key: str, command: Sequence[str], *, trusted: bool = True
    ) -> CommandResult:
        """Run one as a part of the turn, once.

        Args:
            ctx: the turn's thread; the command runs in its workspace.
            key: tells it from other commands of the turn.
            command: the program and its arguments.
            trusted: whether it may run where the sandbox doesn't work.

        Raises:
            SandboxUnavailable: it is not trusted, and the sandbox doesn't work here.
        """
        adapter = command_adapter(
            list(command),
            sandbox="auto" if trusted else "require",
            env={"PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1", "CI": "1"},
            readable=[Path(sys.prefix), Path(sys.base_prefix), *self.readable],
            timeout_s=self.timeout_s,
            max_output_bytes=MAX_OUTPUT_BYTES,
            effect=Effect.REPEATABLE,
        )
        return await adapter("", CommandResult)(ctx.scoped(key))


class TestResults(msgspec.Struct, frozen=True, kw_only=True):
    """What a run of the tests came to."""

    __test__ = False

    exit_code: int | None
    """`None` where its time ran out."""
    passed: list[str] = []
    """The names of the tests that passed, where the output tells them (pytest, unittest)."""
    failed: list[str] = []
    """Those that failed or could not run."""
    output: str = ""
    """The end of what it printed."""

    @property
    def ran(self) -> bool:
        """Whether tests were run at all: some passed or failed, or the command succeeded."""
        return bool(self.passed or self.failed) or self.exit_code == 0


def read_results(done: CommandResult) -> TestResults:
    """Find the single tests in what the command printed."""
    passed: set[str] = set()
    failed: set[str] = set()
    for word, name in _PYTEST.findall(done.output):
        (passed if word == "PASSED" else failed).add(name)
    for name, place, word in _UNITTEST.findall(done.output):
        whole = place if place.endswith(f".{name}") else f"{place}.{name}"
        (passed if word == "ok" else failed).add(whole)
    shown = done.output
    if len(shown) > SHOWN_CHARS:
        shown = f"[…]\n{shown[-SHOWN_CHARS:]}"
    return TestResults(
        exit_code=done.exit_code,
        passed=sorted(passed - failed),  # of one with two outcomes the worse counts
        failed=sorted(failed),
        output=shown,
    )


def worse_than(before: TestResults, now: TestResults) -> list[str]:
    """In which ways a run is worse than an earlier one; none where it may stand.

    Tests that failed before may fail still. A test that passed has to pass: one that is gone or
    skipped no longer does.
    """
    faults = [f"{name} passed before and does not now" for name in _lost(before, now)]
    faults += [f"{name} fails" for name in sorted({*now.failed} - {*before.failed})]
    explained = bool(now.failed) and {*now.failed} <= {*before.failed}
    if now.exit_code != 0 and not faults and not explained:
        code = "no exit code: its time ran out" if now.exit_code is None else f"{now.exit_code}"
        faults.append(f"the command for the tests ended with {code}")
    return faults


def _lost(before: TestResults, now: TestResults) -> list[str]:
    return sorted({*before.passed} - {*now.passed} - {*now.failed})


def find_test_command(folder: Path) -> list[str]:
    """The command that runs a project's tests, by the files that it has; empty if none is seen."""
    if (folder / "Cargo.toml").is_file():
        return ["cargo", "test"]
    if (folder / "go.mod").is_file():
        return ["go", "test", "./..."]
    if (folder / "package.json").is_file() and _npm_has_tests(folder / "package.json"):
        return ["npm", "test", "--silent"]
    files = [*_test_files(folder)]
    if files:
        return _python_command(folder, files)
    makefile = folder / "Makefile"
    if makefile.is_file() and re.search(r"^test:", _text(makefile), re.MULTILINE):
        return ["make", "test"]
    return []


def _python_command(folder: Path, files: Sequence[Path]) -> list[str]:
    own = folder / ".venv" / "bin" / "python"
    python = ".venv/bin/python" if own.exists() else sys.executable
    needs_pytest = any("unittest" not in _text(path) for path in files) or any(
        "import pytest" in _text(path) for path in files
    )
    has_pytest = own.exists() or importlib.util.find_spec("pytest") is not None
    if needs_pytest and has_pytest:
        options = ["-rfEp", "-q", "--tb=short", "--color=no", "-p", "no:cacheprovider"]
        return [python, "-B", "-m", "pytest", *options]
    return [python, "-B", "-m", "unittest", "-v"]


def _test_files(folder: Path) -> list[Path]:
    found = [*folder.glob("test*.py")]
    for name in ("tests", "test", "testing"):
        found += [path for path in (folder / name).glob("**/*.py") if "test" in path.name]
    return sorted(found)[:200]


def _npm_has_tests(path: Path) -> bool:
    try:
        read = cast("object", json.loads(_text(path)))
    except ValueError:
        return False
    scripts = cast("dict[str, object]", read).get("scripts") if isinstance(read, dict) else None
    return isinstance(scripts, dict) and "test" in scripts


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
