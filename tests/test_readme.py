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

    described = (await check_bundle(build_bundle(entry))).workflow

    assert list(described.roles) == ["reader"]
    assert len(script.splitlines()) <= 10


def test_the_bundle_of_the_first_example_has_the_hash_that_is_shown() -> None:
    entry = ROOT / "packages/uwf/src/uwf/examples/mend.py"
    name = build_bundle(entry).hash

    assert f"~/.uwf/bundles/{name[:12]}…{name[-5:]}.zip\nbundled 1 module" in README
    assert f"mend is registered as {name[:12]}\n" in README


def test_every_package_is_on_the_map() -> None:
    packages = {path.name for path in (ROOT / "packages").iterdir()}

    assert set(re.findall(r"\]\(packages/([\w-]+)\)", README)) == packages


@pytest.mark.parametrize(
    "document", [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
)
def test_links_lead_to_files(document: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8"))

    assert [link for link in links if not (document.parent / link).exists()] == []


def test_the_picture_of_the_architecture_shows_what_is_there() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (picture,) = re.findall(r"```mermaid\n(.*?)```", page, re.DOTALL)
    shown = set(re.findall(r"\b([a-z]+/|[a-z]+/_\w+|_\w+)(?=[:,\"])", picture))
    sources = [path for path in ROOT.glob("packages/*/src/*") if path.is_dir()]

    there = {
        name
        for source in sources
        for path in source.rglob("*")
        for name in (
            f"{path.relative_to(source)}/",
            str(path.relative_to(source).with_suffix("")),
        )
    }
    assert len(shown) > 20
    assert shown - there == set()
