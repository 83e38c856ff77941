"""What `from uwf import …` gives to who writes workflows."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import uwf

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCE = ast.parse((ROOT / "packages/uwf/src/uwf/__init__.py").read_text(encoding="utf-8"))
STATIC = {
    alias.name: node.module
    for node in ast.walk(SOURCE)
    if isinstance(node, ast.ImportFrom) and node.module not in {"importlib", "uwf._entry"}
    for alias in node.names
}


def test_every_name_is_that_of_the_package_where_a_type_checker_looks_for_it() -> None:
    assert {*STATIC, "main"} == set(uwf.__all__)
    assert set(uwf.__all__) <= set(dir(uwf))
    for name, module in STATIC.items():
        assert getattr(uwf, name) is getattr(import_module(str(module)), name)
        assert name in import_module(str(module)).__all__


def test_the_import_alone_loads_none_of_the_packages() -> None:
    script = (
        "import sys, __future__, collections.abc; before = {*sys.modules}; import uwf; "
        "print(*sorted({*sys.modules} - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["uwf", "uwf._entry"]


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'uwf' has no attribute 'Transitoin'"):
        _ = getattr(uwf, "Transitoin")  # noqa: B009 - a checker would refuse the attribute


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_that_the_pages_import_is_there(page: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    names = {
        name.strip()
        for block in blocks
        for names in re.findall(
            r"^ *from uwf import \(?([\w\s,]+?)\)?(?:#.*)?$", block, re.MULTILINE
        )
        for name in names.split(",")
    }

    assert names - {""} <= set(uwf.__all__)
