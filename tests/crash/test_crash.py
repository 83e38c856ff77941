"""The engine's promise: die at any instant, lose nothing, do nothing twice, end up the same."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

DRIVER = Path(__file__).with_name("driver.py")
FAMILY = Path(__file__).with_name("family.py")
CODE_ROLES = Path(__file__).with_name("code_roles.py")
PARTS = 2


@pytest.fixture
def folder() -> Generator[Path]:
    """In memory where there is such a place: what a kill loses isn't what the disk does."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as name:
        yield Path(name)


def drive(script: Path, folder: Path, *options: str) -> list[Any]:
    """Share the points among some processes and wait for their reports."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(script), str(folder), str(part), str(PARTS), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for part in range(PARTS)
    ]
    outcomes = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0] * PARTS, outcomes
    return [json.loads(out) for out, _ in outcomes]


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_thread_survives_a_kill_at_each_boundary(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = drive(DRIVER, folder)

    points = sum(report["points"] for report in reports)
    with capsys.disabled():
        sys.stdout.write(f"\nkilled at {points} points\n")
    assert [report["wrong"] for report in reports] == [{}] * PARTS
    assert points > 150


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_thread_survives_a_kill_while_it_recovers_from_one(folder: Path) -> None:
    reports = drive(DRIVER, folder, "--twice")

    assert [report["wrong"] for report in reports] == [{}] * PARTS
    assert sum(report["points"] for report in reports) == 40


@pytest.mark.slow
@pytest.mark.timeout(480)
def test_a_thread_with_children_survives_a_kill_at_each_boundary(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = drive(FAMILY, folder)

    points = sum(report["points"] for report in reports)
    with capsys.disabled():
        sys.stdout.write(f"\nkilled a thread with children at {points} points\n")
    assert [report["wrong"] for report in reports] == [{}] * PARTS
    assert points > 150


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_thread_with_children_survives_a_kill_while_it_recovers_from_one(folder: Path) -> None:
    reports = drive(FAMILY, folder, "--twice")

    assert [report["wrong"] for report in reports] == [{}] * PARTS
    assert sum(report["points"] for report in reports) == 40


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_functions_children_by_name_and_artifacts_survive_a_kill_at_each_boundary(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reports = drive(CODE_ROLES, folder)

    points = sum(report["points"] for report in reports)
    with capsys.disabled():
        sys.stdout.write(f"\nkilled functions and children by name at {points} points\n")
    assert [report["wrong"] for report in reports] == [{}] * PARTS
    assert points > 80


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_functions_and_children_by_name_survive_a_kill_while_they_recover_from_one(
    folder: Path,
) -> None:
    reports = drive(CODE_ROLES, folder, "--twice")

    assert [report["wrong"] for report in reports] == [{}] * PARTS
    assert sum(report["points"] for report in reports) == 40
