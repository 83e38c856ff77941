"""`importlib` and `pkgutil` as a bundle's modules see them: they know the bundle's own modules.

A bundle's `mypkg` is called `uwf_bundle_<hash>.mypkg` in this process, so that two bundles may both
have one. Functions that take a module by its name get that longer name here.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import cast

_Function = Callable[..., object]

_NAMING: Mapping[str, frozenset[str]] = {
    "importlib": frozenset({"import_module"}),
    "importlib.util": frozenset({"find_spec"}),
    "importlib.resources": frozenset(
        {
            "contents", "files", "is_resource", "open_binary", "open_text", "path",
            "read_binary", "read_text",
        }
    ),
    "pkgutil": frozenset({"get_data", "resolve_name"}),
}  # fmt: skip
"""The functions whose first argument may be the name of a module."""
_TAKE_A_PACKAGE = frozenset({"import_module", "find_spec"})
"""Those whose second argument is the package of a relative name."""


def viewed(name: str, *, has_fromlist: bool) -> str | None:
    """The module whose view an import of this name gives; `None` if it gives the real one."""
    given = name if has_fromlist else name.partition(".")[0]
    return given if given in _NAMING else None


class View(ModuleType):
    """A module whose functions take the names that the bundle's modules have for each other."""

    def __init__(self, name: str, long_name: Callable[[str], str]) -> None:
        super().__init__(name)
        self.__dict__["_uwf_real"] = importlib.import_module(name)
        self.__dict__["_uwf_long_name"] = long_name

    def __getattr__(self, attribute: str) -> object:
        """What the real module has."""
        name = self.__name__
        below = f"{name}.{attribute}"
        long_name = cast("Callable[[str], str]", self.__dict__["_uwf_long_name"])
        found: object = getattr(self.__dict__["_uwf_real"], attribute)
        if below in _NAMING:
            found = View(below, long_name)
        elif attribute in _NAMING[name]:
            found = _with_long_names(cast("_Function", found), long_name)
        self.__dict__[attribute] = found
        return found

    def __dir__(self) -> list[str]:
        """The names of the real module."""
        return dir(self.__dict__["_uwf_real"])


def _with_long_names(function: _Function, long_name: Callable[[str], str]) -> _Function:
    def called(*args: object, **kwargs: object) -> object:
        if not args and not kwargs and function.__name__ == "files":
            caller = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # as `files` does
            args = (caller.f_globals["__package__"],)  # Python 3.12 and later take none
        count = 2 if function.__name__ in _TAKE_A_PACKAGE else 1
        first = [long_name(each) if isinstance(each, str) else each for each in args[:count]]
        for key in ("name", "package", "anchor"):
            if isinstance(value := kwargs.get(key), str):
                kwargs[key] = long_name(value)
        return function(*first, *args[count:], **kwargs)

    called.__name__ = function.__name__
    called.__doc__ = function.__doc__
    return called
