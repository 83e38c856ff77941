"""What the README promises."""

import re
from pathlib import Path

import pytest

from workflow_register import build_bundle, check_bundle

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


async def test_the_entry_script_is_short_and_works(tmp_path: Path) -> None:
    (script,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    entry = tmp_path / "entry.py"
    entry.write_text(script, encoding="utf-8")

    described = await check_bundle(build_bundle(entry))

    assert list(described.roles) == ["reader"]
    assert len(script.splitlines()) <= 20


def test_every_package_is_on_the_map() -> None:
    packages = {path.name for path in (ROOT / "packages").iterdir()}

    assert set(re.findall(r"\]\(packages/([\w-]+)\)", README)) == packages


@pytest.mark.parametrize("document", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))])
def test_links_lead_to_files(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8"))

    assert [link for link in links if not (document.parent / link).exists()] == []
