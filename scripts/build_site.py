"""Lays out and builds the site of the documentation, the API reference too, for `scripts/docs`.

The pages lie in the site as they do in the repository, so that one relative link serves both.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "docs"
TOP_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
FIRST_PAGES = (
    "install", "workflows", "conditions", "agents", "tools", "mcp", "models", "durability",
    "services", "watching", "testing",
)  # fmt: skip
"""Of `docs/`, in the order in which a newcomer wants them; the others follow by name."""


def main() -> int:
    """Lay the pages out, build the site, and say where it is."""
    parser = argparse.ArgumentParser(
        description="Build the documentation into build/docs/site. Dead links fail."
    )
    parser.add_argument("--serve", action="store_true", help="serve the site on loopback")
    serve: bool = parser.parse_args().serve
    if BUILD.exists():
        shutil.rmtree(BUILD)
    pages = BUILD / "pages"
    for path in _pages():
        copy = pages / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    packages = sorted(path.parent for path in ROOT.glob("packages/*/pyproject.toml"))
    for package in packages:
        reference = pages / "reference" / f"{package.name}.md"
        reference.parent.mkdir(exist_ok=True)
        reference.write_text(_reference_page(package), encoding="utf-8")
    config = BUILD / "zensical.toml"
    config.write_text(_config(packages), encoding="utf-8")
    return _run("serve" if serve else "build", config)


def _pages() -> list[Path]:
    packages = sorted(ROOT.glob("packages/*/README.md"))
    return [*(ROOT / name for name in TOP_PAGES), *sorted(ROOT.glob("docs/*.md")), *packages]


def _reference_page(package: Path) -> str:
    (file,) = package.glob("src/*/__init__.py")
    module = file.parent.name
    readme = f"[What {package.name} is for](../packages/{package.name}/README.md)"
    names = f"::: {module}\n" if module != "uwf" else _grouped_names(file)
    return f"# {module}\n\n{readme}\n\n{names}"


def _grouped_names(file: Path) -> str:
    """The names of `uwf`, each from its own package, under the headings of docs/reference.toml."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    (names,) = (
        ast.literal_eval(each.value)
        for each in tree.body
        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "__all__"
    )
    parts = [ast.get_docstring(tree) or ""]
    for title, members in reference_groups(names):
        parts.append(f"## {title}")
        parts += [f"::: uwf.{name}\n    options:\n      {_AS_ENTRY}" for name in members]
    return "\n\n".join(parts) + "\n"


_AS_ENTRY = "\n      ".join(
    (
        "heading_level: 3",
        "show_root_heading: true",
        "show_root_toc_entry: true",
        "show_root_full_path: false",
        "members_order: source",
    )
)


def reference_groups(names: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The groups of the author's names, in order, and at the end what is in none of them."""
    written = tomllib.loads((ROOT / "docs" / "reference.toml").read_text(encoding="utf-8"))
    groups = [
        (group["title"], [name for name in group["names"] if name in names])
        for group in written["group"]
    ]
    grouped = {name for _, members in groups for name in members}
    others = [name for name in names if name not in grouped]
    return [*groups, ("Others", others)] if others else groups


def _config(packages: list[Path]) -> str:
    """The settings in `docs/`, with the pages and the folders of the packages."""
    written = (ROOT / "docs" / "zensical.toml").read_text(encoding="utf-8")
    names = sorted(path.stem for path in ROOT.glob("docs/*.md"))
    guide = [*FIRST_PAGES, *(name for name in names if name not in FIRST_PAGES)]
    nav = [
        '{ "Start" = "README.md" }',
        f'{{ "Guide" = [{_quoted(f"docs/{name}.md" for name in guide)}] }}',
        f'{{ "Packages" = [{_quoted(f"packages/{each.name}/README.md" for each in packages)}] }}',
        f'{{ "Reference" = [{_quoted(f"reference/{each.name}.md" for each in packages)}] }}',
        f'{{ "Project" = [{_quoted(TOP_PAGES[1:])}] }}',
    ]
    paths = _quoted(str(each / "src") for each in packages)
    head, rest = written.split("[project.theme]", 1)
    return (
        f"{head}nav = [{', '.join(nav)}]\n\n[project.theme]{rest}"
        f"\n[project.plugins.mkdocstrings.handlers.python]\npaths = [{paths}]\n"
    )


def _quoted(texts: Iterable[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)


def _run(task: str, config: Path) -> int:
    command = [sys.executable, "-m", "zensical", task, "-f", str(config)]
    if task == "serve":
        return subprocess.run(command, check=False).returncode
    done = subprocess.run(
        [*command, "--strict"],
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    print(done.stdout, end="")
    if done.returncode or re.search("^griffe:", done.stdout, re.MULTILINE):
        print("scripts/docs: the documentation has the faults above", file=sys.stderr)
        return 1
    print(f"scripts/docs: {config.parent / 'site' / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
