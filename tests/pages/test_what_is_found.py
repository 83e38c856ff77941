"""That faults on a page are found: a page with each kind of them, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from .commands import faults_of_commands
from .read_pages import Block, python_blocks, read_page
from .run_blocks import run_blocks


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty page, in the place of a real one."""
    monkeypatch.setattr("tests.pages.read_pages.ROOT", tmp_path)
    return tmp_path / "page.md"


def blocks_of(page: Path, text: str) -> list[Block]:
    page.write_text(text, encoding="utf-8")
    return read_page(page)


async def test_output_that_differs_is_told_with_its_place(page: Path) -> None:
    text = "```python\nprint(1 + 1)\n```\n\nThat prints:\n\n```\n3\n```\n"

    with pytest.raises(AssertionError, match=r"page\.md:2 prints\n2\n\nand not\n3\n"):
        await run_blocks("page.md", python_blocks(blocks_of(page, text)))


async def test_what_a_page_sets_up_is_there_for_its_blocks_and_not_for_its_scripts(
    page: Path,
) -> None:
    script = "import anyio\n\nasync def main():\n    print('value' in globals())\n\nanyio.run(main)"
    text = f"""
<!-- setup
value = 1
-->

```python
value += 1
```

```python
{script}
```

It prints:

```
False
```

<!-- check
assert value == 2
-->
"""
    await run_blocks("page.md", python_blocks(blocks_of(page, text)))


def test_a_block_that_is_not_run_needs_a_reason(page: Path) -> None:
    text = "<!-- not run: {} -->\n\n```python\nlater()\n```\n"

    (without,) = blocks_of(page, text.format(""))
    (reasoned,) = blocks_of(page, text.format("it asks a real provider"))

    assert without.fault() == "`not run:` needs a reason"
    assert reasoned.fault() is None
    assert python_blocks([without, reasoned]) == []


def test_code_that_is_left_out_is_found(page: Path) -> None:
    (block,) = blocks_of(page, "```python\ndef role(ctx):\n    ...\n```\n")

    assert block.fault() == "`...` stands for code that isn't there"


def test_a_comment_that_is_shown_sets_nothing_up(page: Path) -> None:
    blocks = blocks_of(page, "```\n<!-- setup\nx = 1\n-->\n```\n")

    assert [each.language for each in blocks] == [""]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("uwf thread list --sate failed", "--sate"),
        ("$ uv run uwf lauch flow 'Do it.'", "there is no command 'lauch'"),
        ("uwf workflow list | shwo", "there is no command 'shwo'"),
        ("uwf thread answer", "required"),
        ('pip install "uwf[locla]"', "there is no package uwf[locla]"),
        ("uv add workflow-reacter", "there is no package workflow-reacter"),
    ],
)
def test_commands_that_are_not_there_are_found(command: str, said: str) -> None:
    (fault,) = faults_of_commands(f"export X=1\n{command}   # a comment\n")

    assert said in fault


def test_commands_that_are_only_named_need_no_arguments() -> None:
    code = "uwf workflow show | graph   # both\nuwf show | head\nuwf thread resume 01K…\n"

    assert faults_of_commands(code) == []
