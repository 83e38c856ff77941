"""Each block of code in the documentation is what it says it is. CONTRIBUTING.md has the rules."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from workflow_register import load_config

from .commands import faults_of_commands
from .read_pages import PAGES, ROOT, Block, python_blocks, read_page
from .run_blocks import run_blocks

every_page = pytest.mark.parametrize(
    "path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix()
)
CHECKED = {"", "python", "setup", "yaml", "toml", "json", "mermaid"}
"""Languages of blocks. tests/test_readme.py looks at the pictures (mermaid)."""


def blocks_in(path: Path, language: str) -> list[Block]:
    return [each for each in read_page(path) if each.language == language and not each.not_run]


@every_page
def test_a_block_is_of_a_language_that_is_checked_or_says_why_it_is_not(path: Path) -> None:
    blocks = read_page(path)

    assert {each.place: each.language for each in blocks if each.language not in CHECKED} == {}
    assert {each.place: fault for each in blocks if (fault := each.fault())} == {}


@every_page
async def test_python_blocks_run_and_print_what_the_page_says(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UWF_HOME", str(tmp_path / "home"))

    await run_blocks(path.relative_to(ROOT).as_posix(), python_blocks(read_page(path)))


@every_page
def test_yaml_blocks_are_read_as_the_configuration(path: Path, tmp_path: Path) -> None:
    for block in blocks_in(path, "yaml"):
        (tmp_path / "workflow.yaml").write_text(block.code, encoding="utf-8")
        load_config(tmp_path)


@every_page
def test_toml_and_json_blocks_are_read(path: Path) -> None:
    for block in blocks_in(path, "toml"):
        tomllib.loads(block.code)
    for block in blocks_in(path, "json"):
        json.loads(block.code)


@every_page
def test_commands_have_the_arguments_that_the_page_gives_them(path: Path) -> None:
    blocks = blocks_in(path, "")

    assert {
        each.place: faults for each in blocks if (faults := faults_of_commands(each.code))
    } == {}
