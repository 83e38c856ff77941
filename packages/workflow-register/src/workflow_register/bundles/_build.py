"""From an entry script to a bundle: the modules and files that it needs, without running it."""

from __future__ import annotations

import ast
import os
import sys
import unicodedata
import warnings
from collections import Counter
from pathlib import Path

from workflow_register._errors import BundleCorrupt, EntryError
from workflow_register._files import read_regular
from workflow_register.bundles._archive import MAX_BUNDLE_BYTES, MAX_FILES, Bundle, pack
from workflow_register.bundles._data import Declared, files_of_package
from workflow_register.bundles._layout import (
    Folders,
    Imported,
    find_layout,
    imports_of,
    project_of,
)
from workflow_register.bundles._names import ENTRY_FILE, PACKAGE_FILE, is_identifier
from workflow_register.bundles._never import holds_private_key
from workflow_register.bundles._project import find_project, read_project


def build_bundle(entry: Path) -> Bundle:
    """Pack an entry script with the local modules and files that it needs. Nothing is executed.

    Modules are followed through `import` statements wherever they stand, also inside functions.
    Local are the modules in the entry's folder, in the folder above the package that it belongs
    to, and in its project (the folder of `pyproject.toml`, and `src` in it). All others have to be
    installed where the workflow runs. Files are packed if `[tool.uwf] files` names them, in a
    `# /// script` block of the entry or in `pyproject.toml`, or if they lie in a local package.

    Raises:
        EntryError: the entry, a local module or a file can't be read or can't be packed.
    """
    return _Collector(_check_entry_path(entry)).collect()


def _check_entry_path(entry: Path) -> Path:
    try:
        if entry.is_dir():
            raise EntryError(entry, "this is a folder; name the entry script in it")
        if not entry.exists():
            raise EntryError(entry, "there is no such file; check the path")
        if not entry.is_file():
            raise EntryError(entry, "this is not a regular file; name a Python script")
    except (OSError, ValueError) as error:
        raise EntryError(entry, f"the path can't be used: {error}") from error
    if entry.suffix != ".py":
        raise EntryError(entry, "this is not a Python script; the name of an entry ends in .py")
    if entry.name == PACKAGE_FILE:
        raise EntryError(entry, "a package can't be an entry; name a script that imports it")
    if not ENTRY_FILE.fullmatch(entry.name):
        raise EntryError(entry, "use letters, digits, '-' and '_' in the name: review-code.py")
    try:
        return entry.resolve()
    except FileNotFoundError as error:  # it was there just now, seen from the current folder
        reason = "the current folder was deleted; `cd` to another one and run this again"
        raise EntryError(entry, reason) from error


class _Collector:
    """Follows imports from the entry until nothing new is imported, then adds the files."""

    def __init__(self, entry: Path) -> None:
        self._entry = entry
        self._bytes = 0
        self._modules: dict[Path, bytes] = {}
        self._files: dict[Path, bytes] = {}
        self._modules[entry] = source = self._read(entry)
        tree = parse(entry, source)
        if not tree.body:
            raise EntryError(entry, "it is empty; end it with `run = create_workflow(…)`")
        self._project = read_project(entry, source, project_of(entry, find_project(entry.parent)))
        self._folders = Folders()
        self._layout = find_layout(entry, tree, self._project.folder, self._folders)
        self._used_roots = {self._layout.roots[0]}
        self._trees: list[tuple[Path, Path, ast.Module]] = [(self._layout.roots[0], entry, tree)]

    def collect(self) -> Bundle:
        root = self._layout.roots[0]
        self._add(root, self._folders.follow(root, self._entry.parent.relative_to(root).parts))
        self._follow_imports()
        for declared in self._project.declared:
            for path in declared.find():
                self._add_declared(declared, path)
        self._follow_imports()
        for package in [path.parent for path in self._modules if path.name == PACKAGE_FILE]:
            self._add_files_of(package)
        return self._pack()

    def _follow_imports(self) -> None:
        while self._trees:
            root, path, tree = self._trees.pop()
            for imported in imports_of(tree):
                if imported.level:
                    self._add(root, self._relative(root, path, imported))
                else:
                    self._add(*self._absolute(path, imported))

    def _relative(self, root: Path, path: Path, imported: Imported) -> list[Path]:
        folder = path.parent
        if imported.level > len(folder.relative_to(root).parts):
            raise EntryError(
                path,
                "this relative import leads out of the entry's packages; "
                "import the module by its name",
                line=imported.line,
            )
        for _ in range(imported.level - 1):
            folder = folder.parent
        names = [*folder.relative_to(root).parts, *imported.names]
        return self._folders.follow(root, names)

    def _absolute(self, path: Path, imported: Imported) -> tuple[Path, list[Path]]:
        """The local files that importing a name runs, and the root that they are found from."""
        first = imported.names[0]
        roots = [each for each in self._layout.roots if self._layout.may_own(each, first)]
        for root in roots:
            if self._folders.module_file(root, first) is None:
                continue
            if first not in sys.stdlib_module_names:
                return root, self._folders.follow(root, imported.names)
            if root == self._entry.parent:
                reason = f"the local module {first!r} has the name of a standard module; rename it"
                raise EntryError(path, reason, line=imported.line)
        for root in [] if first in sys.stdlib_module_names else roots:
            if files := self._folders.follow(root, imported.names):
                return root, files  # in a namespace package: a folder without __init__.py
        return self._layout.roots[0], []

    def _add(self, root: Path, paths: list[Path]) -> None:
        for path in paths:
            if path not in self._modules:
                self._modules[path] = source = self._read(path)
                self._trees.append((root, path, parse(path, source)))
        if paths:
            self._used_roots.add(root)

    def _add_declared(self, declared: Declared, path: Path) -> None:
        if path in self._modules or path in self._files:
            return
        data = self._read_file(declared.source, path, within=declared.folder)
        root = self._root_of_module(path) if path.suffix == ".py" else None
        if root is not None:
            try:
                tree = parse(path, data)
            except EntryError:  # a template, which is no Python
                root = None
            else:
                self._modules[path] = data
                self._trees.append((root, path, tree))
                self._used_roots.add(root)
        if root is None:
            self._files[path] = data

    def _root_of_module(self, path: Path) -> Path | None:
        """The root from which a declared Python file could be imported."""
        for root in self._layout.roots:
            if path.is_relative_to(root):
                names = path.relative_to(root).with_suffix("").parts
                if all(map(is_identifier, names)) and self._layout.may_own(root, names[0]):
                    return root
        return None

    def _add_files_of(self, package: Path) -> None:
        for path in files_of_package(self._entry, package):
            excluded = any(declared.excludes(path) for declared in self._project.declared)
            if path not in self._files and path not in self._modules and not excluded:
                self._files[path] = self._read_file(path, path, within=package)

    def _read_file(self, source: Path, path: Path, *, within: Path) -> bytes:
        if not path.resolve().is_relative_to(within.resolve()):
            raise EntryError(path, f"it is a link that leads out of {str(within)!r}; copy the file")
        data = self._read(path)
        if holds_private_key(data):
            raise EntryError(
                path, "it holds a private key, which no bundle may; name it in `exclude`"
            )
        return data

    def _read(self, path: Path) -> bytes:
        try:
            data = read_regular(path, MAX_BUNDLE_BYTES + 1)
        except OSError as error:
            raise EntryError(path, f"it can't be read: {error.strerror or error}") from error
        self._bytes += len(data)
        if self._bytes > MAX_BUNDLE_BYTES or len(self._modules) + len(self._files) >= MAX_FILES:
            raise EntryError(
                path,
                f"a bundle has at most {MAX_FILES:,} files of {MAX_BUNDLE_BYTES:,} bytes "
                "together; name what is not needed in `exclude` of `[tool.uwf]`",
            )
        return data

    def _pack(self) -> Bundle:
        folders = [*self._used_roots, *(path.parent for path in self._files)]
        base = Path(os.path.commonpath(folders))
        names = {path: _archive_name(path, base) for path in (*self._modules, *self._files)}
        name, count = Counter(names.values()).most_common(1)[0]
        if count > 1:
            reason = f"two files have the name {name!r} in different Unicode forms; rename one"
            raise EntryError(self._entry, reason)
        roots = [root for root in self._layout.roots if root in self._used_roots]
        try:
            return pack(
                names[self._entry],
                {names[path]: data for path, data in self._modules.items()},
                {names[path]: data for path, data in self._files.items()},
                roots=tuple(_archive_name(root, base) for root in roots),
                requires=self._project.requires,
                origin=base,
                local_folders=(self._entry.parent, *self._layout.roots),
            )
        except BundleCorrupt as error:  # a module and a package of one name
            raise EntryError(self._entry, str(error)) from error


def _archive_name(path: Path, base: Path) -> str:
    relative = path.relative_to(base).as_posix()
    return "" if relative == "." else unicodedata.normalize("NFC", relative)


def parse(path: Path | str, source: bytes) -> ast.Module:
    """Parse a module's source.

    Raises:
        EntryError: it isn't Python of this version.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # shown when the module runs; here they'd come twice
            return ast.parse(source, str(path))
    except SyntaxError as error:
        raise EntryError(path, f"{type(error).__name__}: {error.msg}", line=error.lineno) from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise EntryError(path, f"it can't be parsed: {error or type(error).__name__}") from error
