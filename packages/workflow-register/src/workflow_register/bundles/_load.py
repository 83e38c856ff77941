"""Imports a bundle's modules from its bytes, each bundle in a namespace of its own.

The modules of a bundle are named `uwf_bundle_<hash>.<name>`, so two bundles may both have a
`helpers`. They import each other by their plain names, at any time, because the `import` statement
asks the `__import__` of the module that it stands in: bundle modules get one that knows their
siblings, and that gives them views of `importlib` and `pkgutil` that do so too.
"""

from __future__ import annotations

import builtins
import errno
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import decode_source
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from workflow_protocol import AnyDefinition, WorkflowDefinition
from workflow_register._errors import EntryError
from workflow_register._home import find_home, unpacked_path
from workflow_register.bundles._archive import Bundle
from workflow_register.bundles._layout import ENGINE, INSTALLED_FOLDERS
from workflow_register.bundles._load_error import import_error
from workflow_register.bundles._names import PACKAGE_FILE, is_identifier, module_name
from workflow_register.bundles._unpack import unpack
from workflow_register.bundles._views import View, viewed

if TYPE_CHECKING:
    from importlib.resources.abc import TraversableResources

PREFIX = "uwf_bundle_"
HASH_DIGITS = 32  # 128 bits: nobody makes two bundles that share them


@runtime_checkable
class HasDefinition(Protocol):
    """What an entry's `run` is known to be here: `create_workflow`, above, makes more of it."""

    @property
    def definition(self) -> AnyDefinition:
        """The roles and the table."""
        ...


def load_workflow(bundle: Bundle, *, unpack_to: Path | None = None) -> HasDefinition:
    """Import a bundle's entry and return its `run`. A second time gives the same object.

    A bundle with files, or with modules that ask for their `__file__`, is unpacked. Others are
    imported from memory. This runs the bundle's code in this process: load what you trust, as you
    would run a script.

    Args:
        unpack_to: the folder for unpacked bundles; `unpacked` in the folder of uwf if not given.

    Raises:
        EntryError: the import failed, at which file and line; or `run` is no workflow.
        OSError: the bundle can't be unpacked.
    """
    folder = None
    if _needs_folder(bundle):
        folder = unpack(bundle, unpack_to or unpacked_path(find_home()))
    namespace = _finder.namespace(bundle, folder)
    entry = bundle.place(bundle.manifest.entry)
    before = frozenset(sys.modules)
    try:
        module = importlib.import_module(f"{namespace.name}.{namespace.entry}")
        _check_origins(bundle, before)
    except BaseException as error:
        namespace.unload()
        if isinstance(error, KeyboardInterrupt | EntryError):
            raise
        raise import_error(bundle, namespace.name, namespace.has_module, error) from error
    return _workflow_of(entry, module)


def modules_from_outside(bundle: Bundle) -> frozenset[str]:
    """The top-level modules that a loaded bundle has imported so far and that are not its own."""
    return frozenset(_finder.namespace(bundle, None).outside)


_FILE_WORDS = (b"__file__", b"__path__", b"resources", b"get_data")


def _needs_folder(bundle: Bundle) -> bool:
    sources = bundle.sources.values()
    return bool(bundle.files) or any(word in source for source in sources for word in _FILE_WORDS)


def _check_origins(bundle: Bundle, before: frozenset[str]) -> None:
    """Refuse what the import took from beside the origin, for elsewhere it would not be there.

    Raises:
        EntryError: a module came from one of the folders of local code, not from the bundle.
    """
    for name in [each for each in sys.modules if each not in before]:
        file: object = getattr(sys.modules[name], "__file__", None)
        if not isinstance(file, str) or name.partition(".")[0] in {*ENGINE, "__main__"}:
            continue
        if name.startswith(PREFIX):  # unpacked, perhaps below the origin: a home is often there
            continue
        for folder in bundle.local_folders:
            path = Path(file)
            if path.is_relative_to(folder) and not (
                INSTALLED_FOLDERS & set(path.relative_to(folder).parts)
            ):
                for taken in set(sys.modules) - before:
                    if taken.partition(".")[0] == name.partition(".")[0]:
                        del sys.modules[taken]
                raise EntryError(
                    bundle.place(bundle.manifest.entry),
                    f"the module {name!r} was imported from {file!r}, not from the bundle; "
                    "write an `import` statement for it, or name the file in `files` of "
                    "`[tool.uwf]`",
                )


_MISSING = object()


def _workflow_of(file_name: str, module: ModuleType) -> HasDefinition:
    run: object = getattr(module, "run", _MISSING)
    if run is _MISSING:
        raise EntryError(file_name, "it has no `run`; end it with `run = create_workflow(…)`")
    definition = None if isinstance(run, type) else getattr(run, "definition", None)
    if not isinstance(definition, WorkflowDefinition):
        raise EntryError(
            file_name,
            f"its `run` is of type {type(run).__name__}, not a workflow; "
            "write `run = create_workflow(…)`",
        )
    return cast("HasDefinition", run)


class _Namespace:
    """The modules of one bundle: their names, their sources and how they import each other."""

    def __init__(self, bundle: Bundle, folder: Path | None) -> None:
        self.name = f"{PREFIX}{bundle.hash[:HASH_DIGITS]}"
        self.bundle = bundle
        self.outside: set[str] = set()
        self.builtins = {**vars(builtins), "__import__": self._import}
        self.folder = folder
        self._modules: dict[str, str] = {}
        """The files of modules by their names."""
        self._folders: dict[str, str] = {}
        """The folders of namespace packages by their names."""
        for root in bundle.manifest.roots:
            self._add_root(f"{root}/" if root else "")
        root = f"{bundle.manifest.roots[0]}/" if bundle.manifest.roots[0] else ""
        self.entry = module_name(bundle.manifest.entry.removeprefix(root))
        self._modules[self.entry] = bundle.manifest.entry
        self._top_level = {name for name in self._modules if "." not in name}
        self._views: dict[str, View] = {}

    def _add_root(self, root: str) -> None:
        importable = {**self.bundle.files, **self.bundle.sources}
        for path in sorted(importable):
            *folders, file = path.removeprefix(root).split("/")
            if not path.startswith(root):
                continue
            for depth in range(1, len(folders) + 1):
                if all(map(is_identifier, folders[:depth])):
                    below = "/".join(folders[:depth])
                    self._folders.setdefault(module_name(below), f"{root}{below}")
            if file.endswith(".py") and all(map(is_identifier, (*folders, file[:-3]))):
                self._modules.setdefault(module_name(path.removeprefix(root)), path)

    def file_name(self, path: str) -> str:
        """What a module's `__file__` is: the real file if the bundle is unpacked."""
        return (
            str(self.folder / path) if self.folder else f"<bundle {self.bundle.hash[:12]}>/{path}"
        )

    def find_spec(self, long_name: str) -> ModuleSpec | None:
        if long_name == self.name:
            return ModuleSpec(long_name, None, is_package=True)
        name = long_name.removeprefix(f"{self.name}.")
        if (file := self._modules.get(name)) is not None:
            loader = _Loader(self, file)
            is_package = loader.is_package(long_name)
            spec = ModuleSpec(long_name, loader, origin=self.file_name(file), is_package=is_package)
            spec.has_location = True
            locations = [self.file_name(file.rpartition("/")[0])] if is_package else []
        elif (folder := self._folders.get(name)) is not None:
            spec = ModuleSpec(long_name, _FolderLoader(self, folder), is_package=True)
            locations = [self.file_name(folder)]
        else:
            return None
        if spec.submodule_search_locations is not None and self.folder is not None:
            spec.submodule_search_locations.extend(locations)
        return spec

    def has_module(self, name: str) -> bool:
        """Whether bundle modules import a name from the bundle rather than from outside."""
        name = name.partition(":")[0]
        return (
            name.partition(".")[0] in self._top_level
            or name in self._modules
            or name in self._folders
        )

    def long_name(self, name: str) -> str:
        """The name that a module has in this process, if it is one of the bundle's."""
        return f"{self.name}.{name}" if self.has_module(name) else name

    def unload(self) -> None:
        """Drop what was imported, so that the next attempt begins anew."""
        for name in [each for each in sys.modules if each.startswith(f"{self.name}.")]:
            sys.modules.pop(name, None)

    def _import(
        self,
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """`builtins.__import__`, with the bundle's modules before installed ones."""
        if level:
            return builtins.__import__(name, globals, locals, fromlist, level)
        if not self.has_module(name):
            self.outside.add(name.partition(".")[0])
            found = builtins.__import__(name, globals, locals, fromlist)
            view = viewed(name, has_fromlist=bool(fromlist))
            return found if view is None else self._view(view)
        if fromlist:
            return builtins.__import__(f"{self.name}.{name}", globals, locals, fromlist)
        importlib.import_module(f"{self.name}.{name}")
        return sys.modules[f"{self.name}.{name.partition('.')[0]}"]

    def _view(self, name: str) -> View:
        if name not in self._views:
            self._views[name] = View(name, self.long_name)
        return self._views[name]

    def data(self, path: str) -> bytes:
        """The bytes of a file, named as `file_name` does.

        Raises:
            OSError: the bundle has no such file.
        """
        start = self.file_name("")
        name = os.path.normpath(path)
        name = name.removeprefix(start.rstrip("/") + "/").replace(os.sep, "/")
        for files in (self.bundle.files, self.bundle.sources):
            if name in files:
                return files[name]
        raise FileNotFoundError(errno.ENOENT, "the bundle has no such file", path)

    def resources(self, folder: str) -> TraversableResources:
        """The files of a package, for `importlib.resources`."""
        from workflow_register.bundles._resources import FolderResources

        return FolderResources(Path(self.file_name(folder)))


class _FolderLoader(InspectLoader):
    """Stands for a folder without `__init__.py`, which is a package with no code."""

    def __init__(self, namespace: _Namespace, folder: str) -> None:
        self._namespace = namespace
        self._folder = folder

    def is_package(self, fullname: str) -> bool:
        return True

    def get_source(self, fullname: str) -> str:
        return ""

    def exec_module(self, module: ModuleType) -> None:
        """There is nothing to run."""

    def get_resource_reader(self, fullname: str) -> TraversableResources:
        return self._namespace.resources(self._folder)


class _Loader(InspectLoader):
    """Runs one file of a bundle. Having `get_source`, it lets tracebacks show the lines."""

    def __init__(self, namespace: _Namespace, file: str) -> None:
        self._namespace = namespace
        self._file = file

    def is_package(self, fullname: str) -> bool:
        return self._file.endswith(f"/{PACKAGE_FILE}")

    def get_source(self, fullname: str) -> str:
        return decode_source(self._source())

    def get_data(self, path: str) -> bytes:
        return self._namespace.data(path)

    def get_filename(self, fullname: str) -> str:
        return self._namespace.file_name(self._file)

    def get_resource_reader(self, fullname: str) -> TraversableResources:
        return self._namespace.resources(self._file.rpartition("/")[0])

    def get_code(self, fullname: str) -> CodeType:
        bundle = self._namespace.bundle
        return compile(self._source(), bundle.place(self._file), "exec", dont_inherit=True)

    def _source(self) -> bytes:
        bundle = self._namespace.bundle
        return bundle.sources.get(self._file) or bundle.files.get(self._file, b"")

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._namespace.builtins
        exec(self.get_code(module.__name__), module.__dict__)


class _Finder(MetaPathFinder):
    """Finds the modules of all bundles that were loaded in this process."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}

    def namespace(self, bundle: Bundle, folder: Path | None) -> _Namespace:
        """The namespace of a bundle, made the first time."""
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)  # before what would find the unpacked files itself
        made = _Namespace(bundle, folder)
        namespace = self._namespaces.setdefault(made.name, made)
        namespace.folder = folder or namespace.folder
        return namespace

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for names that begin with a bundle's; all others are none of ours."""
        namespace = self._namespaces.get(fullname.partition(".")[0])
        return namespace.find_spec(fullname) if namespace is not None else None


_finder = _Finder()
