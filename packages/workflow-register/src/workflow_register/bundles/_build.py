"""From an entry script to a bundle: the local modules that it imports, found without running it."""

from __future__ import annotations

import ast
import sys
import unicodedata
import warnings
from collections.abc import Iterator
from pathlib import Path

from workflow_register._errors import BundleCorrupt, EntryError
from workflow_register._files import read_regular
from workflow_register.bundles._archive import (
    ENTRY,
    MAX_BUNDLE_BYTES,
    MAX_MODULES,
    PACKAGE_FILE,
    Bundle,
    pack,
)


def build_bundle(entry: Path) -> Bundle:
    """Pack an entry script with the modules beside it that it imports. Nothing is executed.

    Modules are followed through `import` statements wherever they stand, also inside functions.
    A module is local if it is a `.py` file or a package (with `__init__.py`) in the entry's
    folder; all others have to be installed where the workflow runs. Only Python files are packed:
    data files, extension modules and what is imported by `importlib` are not.

    Raises:
        EntryError: the entry or a local module can't be read or parsed, or can't be packed.
    """
    entry = _check_entry_path(entry)
    return _Collector(entry).collect()


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
    if not ENTRY.fullmatch(entry.name):
        raise EntryError(entry, "use letters, digits, '-' and '_' in the name: review-code.py")
    try:
        return entry.resolve()
    except FileNotFoundError as error:  # it was there just now, seen from the current folder
        reason = "the current folder was deleted; `cd` to another one and run this again"
        raise EntryError(entry, reason) from error


class _Collector:
    """Follows imports from the entry. `sources` grows until nothing new is imported."""

    def __init__(self, entry: Path) -> None:
        self._entry = entry
        self._root = entry.parent
        self._sources: dict[str, bytes] = {}
        self._listings: dict[Path, frozenset[str]] = {}
        self._bytes = 0

    def collect(self) -> Bundle:
        entry = unicodedata.normalize("NFC", self._entry.name)
        waiting = [entry]
        while waiting:
            name = waiting.pop()
            if name in self._sources:
                continue
            path = self._entry if not self._sources else self._root / name
            source = self._read(path)
            self._sources[name] = source
            tree = parse(path, source)
            if path == self._entry and not tree.body:
                raise EntryError(path, "it is empty; end it with `run = create_workflow(…)`")
            for imported in self._imports(path, name, tree):
                waiting += self._imported_files(path, *imported)
        try:
            return pack(entry, self._sources, origin=self._root)
        except BundleCorrupt as error:  # a module and a package of one name
            raise EntryError(self._entry, str(error)) from error

    def _read(self, path: Path) -> bytes:
        try:
            source = read_regular(path, MAX_BUNDLE_BYTES + 1)
        except OSError as error:
            raise EntryError(path, f"it can't be read: {error.strerror or error}") from error
        self._bytes += len(source)
        if self._bytes > MAX_BUNDLE_BYTES or len(self._sources) >= MAX_MODULES:
            raise EntryError(
                path,
                f"a bundle has at most {MAX_MODULES:,} modules of {MAX_BUNDLE_BYTES:,} bytes "
                "together; move data out of the modules",
            )
        return source

    def _imports(self, path: Path, name: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
        """The absolute names that a module may import, each with the line that does."""
        package = name.split("/")[:-1]
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                if node.level > len(package):
                    raise EntryError(
                        path,
                        "this relative import leads out of the entry's packages; "
                        "import the module by its name",
                        line=node.lineno,
                    )
                above = package[: len(package) - node.level + 1] if node.level else []
                base = [*above, *(node.module.split(".") if node.module else [])]
                yield node.lineno, ".".join(base)
                # A name that is imported from a package may be a module of it.
                yield from ((node.lineno, ".".join([*base, alias.name])) for alias in node.names)

    def _imported_files(self, path: Path, line: int, dotted: str) -> Iterator[str]:
        """The local files that importing a name runs: each package on the way and the module."""
        first, *rest = dotted.split(".")
        file = self._module_file("", first)
        if file is None:
            if rest and f"{rest[0]}.py" in self._listing(self._root / first):
                message = f"the folder {first!r} has no {PACKAGE_FILE}; add an empty one"
                raise EntryError(path, message, line=line)
            return
        if first in sys.stdlib_module_names:
            message = f"the local module {first!r} has the name of a standard module; rename it"
            raise EntryError(path, message, line=line)
        folder = ""
        for name in (first, *rest):
            file = self._module_file(folder, name)
            if file is None:  # an attribute, or missing: then the import says so
                return
            yield file
            folder = f"{folder}{name}/"

    def _module_file(self, folder: str, name: str) -> str | None:
        """The file of a module in a folder of the archive (`""` or `a/b/`), if there is one."""
        listing = self._listing(self._root / folder)
        if name in listing and PACKAGE_FILE in self._listing(self._root / folder / name):
            return f"{folder}{name}/{PACKAGE_FILE}"
        return f"{folder}{name}.py" if f"{name}.py" in listing else None

    def _listing(self, folder: Path) -> frozenset[str]:
        """The names in a folder as they are written, whatever the file system folds together."""
        if folder not in self._listings:
            try:
                names = frozenset(each.name for each in folder.iterdir())
            except OSError:
                names = frozenset[str]()
            self._listings[folder] = names
        return self._listings[folder]


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
