"""Imports a bundle's modules from its bytes, each bundle in a namespace of its own.

The modules of a bundle are named `uwf_bundle_<hash>.<name>`, so two bundles may both have a
`helpers`. They import each other by their plain names, at any time, because the `import` statement
asks the `__import__` of the module that it stands in: bundle modules get one that knows their
siblings. What goes around the statement (`importlib.import_module("helpers")`) does not see them.
"""

from __future__ import annotations

import builtins
import importlib
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import decode_source
from types import CodeType, ModuleType
from typing import Protocol, cast, runtime_checkable

from workflow_protocol import AnyDefinition, WorkflowDefinition, WorkflowError
from workflow_register._errors import EntryError
from workflow_register.bundles._archive import PACKAGE_FILE, Bundle, module_name

PREFIX = "uwf_bundle_"
HASH_DIGITS = 32  # 128 bits: nobody makes two bundles that share them


@runtime_checkable
class HasDefinition(Protocol):
    """What an entry's `run` is known to be here: `create_workflow`, above, makes more of it."""

    @property
    def definition(self) -> AnyDefinition:
        """The roles and the table."""
        ...


def load_workflow(bundle: Bundle) -> HasDefinition:
    """Import a bundle's entry and return its `run`. A second time gives the same object.

    Nothing is unpacked; tracebacks show source lines all the same. This runs the bundle's code in
    this process: load what you trust, as you would run a script.

    Raises:
        EntryError: the import failed, at which file and line; or `run` is no workflow.
    """
    namespace = _finder.namespace(bundle)
    entry = bundle.manifest.entry
    try:
        module = importlib.import_module(f"{namespace.name}.{module_name(entry)}")
    except BaseException as error:
        namespace.unload()
        if isinstance(error, KeyboardInterrupt):
            raise
        raise _import_error(namespace, bundle.place(entry), error) from error
    return _workflow_of(bundle.place(entry), module)


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

    def __init__(self, bundle: Bundle) -> None:
        self.name = f"{PREFIX}{bundle.hash[:HASH_DIGITS]}"
        self.bundle = bundle
        self.builtins = {**vars(builtins), "__import__": self._import}
        self._files = {f"{self.name}.{module_name(file)}": file for file in bundle.sources}
        self._top_level = {module_name(file).partition(".")[0] for file in bundle.sources}

    def find_spec(self, name: str) -> ModuleSpec | None:
        if name == self.name:
            return ModuleSpec(name, None, is_package=True)
        file = self._files.get(name)
        if file is None:
            return None
        loader = _Loader(self, file)
        spec = ModuleSpec(
            name, loader, origin=self.bundle.place(file), is_package=loader.is_package(name)
        )
        spec.has_location = True
        return spec

    def has_module(self, name: str) -> bool:
        """Whether bundle modules import a name from the bundle rather than from outside."""
        return name.partition(".")[0] in self._top_level

    def unload(self) -> None:
        """Drop what was imported, so that the next attempt begins anew."""
        for name in self._files:
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
        if level or not self.has_module(name):
            return builtins.__import__(name, globals, locals, fromlist, level)
        if fromlist:
            return builtins.__import__(f"{self.name}.{name}", globals, locals, fromlist)
        importlib.import_module(f"{self.name}.{name}")
        return sys.modules[f"{self.name}.{name.partition('.')[0]}"]


class _Loader(InspectLoader):
    """Runs one file of a bundle. Having `get_source`, it lets tracebacks show the lines."""

    def __init__(self, namespace: _Namespace, file: str) -> None:
        self._namespace = namespace
        self._file = file

    def is_package(self, fullname: str) -> bool:
        return self._file.endswith(f"/{PACKAGE_FILE}")

    def get_source(self, fullname: str) -> str:
        return decode_source(self._namespace.bundle.sources[self._file])

    def get_code(self, fullname: str) -> CodeType:
        bundle = self._namespace.bundle
        return compile(
            bundle.sources[self._file], bundle.place(self._file), "exec", dont_inherit=True
        )

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._namespace.builtins
        exec(self.get_code(module.__name__), module.__dict__)


class _Finder(MetaPathFinder):
    """Finds the modules of all bundles that were loaded in this process."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}

    def namespace(self, bundle: Bundle) -> _Namespace:
        """The namespace of a bundle, made the first time."""
        if self not in sys.meta_path:
            sys.meta_path.append(self)
        namespace = _Namespace(bundle)
        return self._namespaces.setdefault(namespace.name, namespace)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer for names that begin with a bundle's; all others are none of ours."""
        namespace = self._namespaces.get(fullname.partition(".")[0])
        return namespace.find_spec(fullname) if namespace is not None else None


_finder = _Finder()


def _import_error(namespace: _Namespace, entry: str, error: BaseException) -> EntryError:
    """One line that says where in the bundle it went wrong, and what to do."""
    place, line = entry, None
    for frame, line_number in traceback.walk_tb(error.__traceback__):
        if str(frame.f_globals.get("__name__")).startswith(f"{namespace.name}."):
            place, line = frame.f_code.co_filename, line_number
    if isinstance(error, SyntaxError):
        place, line = error.filename or place, error.lineno or line
    words = str(error.msg if isinstance(error, SyntaxError) else error)
    words = words.replace(f"{namespace.name}.", "")
    if not isinstance(error, WorkflowError):  # whose lines are made for people
        words = " ".join(words.split())
    kind = type(error).__name__
    return EntryError(
        place, f"{kind}{': ' if words else ''}{words}{_advice(namespace, error)}", line=line
    )


def _advice(namespace: _Namespace, error: BaseException) -> str:
    match error:
        case SystemExit():
            return "; importing an entry must not end the process: guard it with `if __name__ …`"
        case ModuleNotFoundError(name=str(name)) if name.startswith(namespace.name):
            return "; the bundle has no such module: check the name"
        case ModuleNotFoundError(name=str(name)) if namespace.has_module(name):
            return "; importlib doesn't see a bundle's modules: write an `import` statement"
        case ModuleNotFoundError(name=str(name)):
            return (
                f"; install it where uwf runs, or put {name.partition('.')[0]}.py beside the entry"
            )
        case KeyError() if _raising_module(error) == "os":
            return (
                "; an entry must import without environment variables: "
                "use configured_llm(), or read them when a role runs"
            )
        case _:
            return ""


def _raising_module(error: BaseException) -> object:
    """The module of the innermost frame. By its name: frozen modules have no file."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return frames[-1].f_globals.get("__name__") if frames else None
