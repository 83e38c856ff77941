"""Which folders hold an entry's local modules: its own, its package's, its project's."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from workflow_register._errors import EntryError
from workflow_register.bundles._names import PACKAGE_FILE, is_identifier

INSTALLED_FOLDERS = frozenset({"site-packages", "dist-packages"})

ENGINE = frozenset(
    {
        "pytest_uwf",
        "uwf",
        "workflow_agent_cli",
        "workflow_agent_llm",
        "workflow_agent_react",
        "workflow_cas",
        "workflow_eval",
        "workflow_execute",
        "workflow_local_model",
        "workflow_otel",
        "workflow_postgres",
        "workflow_protocol",
        "workflow_reactor",
        "workflow_register",
        "workflow_templates",
        "workflow_temporal",
        "workflow_util_agent",
        "workflow_web",
        "workflow_workspace",
    }
)
"""Our own packages, which are never local code of an entry, wherever they lie."""


class Imported(NamedTuple):
    """One name that a module may import."""

    line: int
    """From 1."""
    level: int
    """The dots in front; 0 for an absolute import."""
    dotted: str
    """Empty for the package itself."""

    @property
    def names(self) -> list[str]:
        """The parts of the dotted name."""
        return self.dotted.split(".") if self.dotted else []


def imports_of(tree: ast.Module) -> Iterator[Imported]:
    """All that the `import` statements of a module may import, wherever they stand."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Imported(node.lineno, 0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            yield Imported(node.lineno, node.level, base)
            # A name that is imported from a package may be a module of it.
            dot = "." if base else ""
            for alias in node.names:
                yield Imported(node.lineno, node.level, f"{base}{dot}{alias.name}")


class Folders:
    """The names in folders as they are written, whatever the file system folds together."""

    def __init__(self) -> None:
        self._listings: dict[Path, frozenset[str]] = {}

    def names(self, folder: Path) -> frozenset[str]:
        """What is in a folder; nothing if it is none."""
        if folder not in self._listings:
            try:
                names = frozenset(each.name for each in folder.iterdir())
            except OSError:
                names = frozenset[str]()
            self._listings[folder] = names
        return self._listings[folder]

    def module_file(self, folder: Path, name: str) -> Path | None:
        """The file of a module or a regular package in a folder, if there is one."""
        names = self.names(folder)
        if name in names and PACKAGE_FILE in self.names(folder / name):
            return folder / name / PACKAGE_FILE
        return folder / f"{name}.py" if f"{name}.py" in names else None

    def follow(self, folder: Path, names: Sequence[str]) -> list[Path]:
        """The files that importing a name runs: each package on the way, and the module.

        A folder without `__init__.py` on the way is a namespace package, which runs nothing.
        """
        files: list[Path] = []
        for name in names:
            file = self.module_file(folder, name)
            if file is not None:
                files.append(file)
            elif name not in self.names(folder):
                break  # an attribute, or missing: then the import says so
            folder = folder / name
        return files


@dataclass(frozen=True, slots=True)
class Layout:
    """Where modules are looked up, in order. The first root is the one that names the entry."""

    entry: Path
    roots: tuple[Path, ...]

    @property
    def is_script(self) -> bool:
        """Whether the entry stands alone in its folder, rather than in a package."""
        return self.roots[0] == self.entry.parent

    def may_own(self, root: Path, name: str) -> bool:
        """Whether a top-level module of a root is local code."""
        if name in ENGINE:
            return False
        if root.name in INSTALLED_FOLDERS:  # of all that is installed, only the entry's package
            return name == self.entry.relative_to(root).parts[0]
        return True


def project_of(entry: Path, project: Path | None) -> Path | None:
    """The project of an entry, unless the entry is an example that the engine itself brings."""
    package = _outermost_package(entry.parent)
    return None if package is not None and package.name in ENGINE else project


def find_layout(entry: Path, tree: ast.Module, project: Path | None, folders: Folders) -> Layout:
    """Decide from an entry's own imports whether it is a script or a module of a package.

    Raises:
        EntryError: a folder on the way to its package can't be imported.
    """
    imported = list(imports_of(tree))
    root = _root_of_named_package(entry, imported, folders)
    if root is None and any(each.level for each in imported):
        root = _root_of_relative_imports(entry, project)
    first = root or entry.parent
    for name in entry.parent.relative_to(first).parts:
        if not is_identifier(name):
            reason = f"its folder {name!r} can't be a package's; use letters, digits and '_'"
            raise EntryError(entry, reason)
    more = [] if project is None else [project / "src", project]
    return Layout(entry, tuple(dict.fromkeys([first, *(each for each in more if each.is_dir())])))


def _root_of_named_package(
    entry: Path, imported: Sequence[Imported], folders: Folders
) -> Path | None:
    """The folder above the one that the entry is in and imports from: `mypkg` in `from mypkg.x`."""
    absolute = [each.names for each in imported if not each.level]
    for folder in (entry.parent, *entry.parent.parents):
        names = [each for each in absolute if each[0] == folder.name]
        if not names or folder.name in ENGINE or folder.name in sys.stdlib_module_names:
            continue
        if any(folders.follow(folder.parent, each) for each in names):
            return folder.parent
    return None


def _root_of_relative_imports(entry: Path, project: Path | None) -> Path | None:
    package = _outermost_package(entry.parent)
    if package is not None:
        return package.parent
    for root in [] if project is None else [project / "src", project]:
        if root in entry.parent.parents:
            return root
    return None


def _outermost_package(folder: Path) -> Path | None:
    """The topmost of the folders with `__init__.py` from this one up."""
    found: Path | None = None
    while (folder / PACKAGE_FILE).is_file() and folder != folder.parent:
        found, folder = folder, folder.parent
    return found
