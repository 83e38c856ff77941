"""What a bundle ran under: Python, the engine and the packages that it uses, by version."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping

import msgspec

from workflow_register.bundles._archive import Bundle
from workflow_register.bundles._layout import ENGINE
from workflow_register.bundles._load import modules_from_outside
from workflow_register.bundles._project import dependency_names, normalized

_ENGINE_PACKAGE = "workflow-register"  # all of ours have one version
_MAKE_SCHEMAS = ("pydantic", "msgspec")
"""Their JSON Schemas are a part of the requests, so they count wherever they are installed."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """Versions, as they are recorded with a registration and with a thread."""

    python: str
    """Such as `3.12.4`."""
    engine: str
    """The version of these packages."""
    packages: Mapping[str, str] = {}
    """By the name of the package: those that the bundle requires or has imported."""


def environment_of(bundle: Bundle) -> Environment:
    """The versions that there are in this process for a bundle that was loaded in it.

    A package that is required and isn't installed is left out.
    """
    names: set[str] = {*_MAKE_SCHEMAS}
    if bundle.manifest.requires is not None:
        names.update(dependency_names(bundle.manifest.requires))
    names.update(_packages_of(modules_from_outside(bundle)))
    versions = {name: _version(name) for name in sorted(names)}
    return Environment(
        python=_python(),
        engine=_version(_ENGINE_PACKAGE) or "",
        packages={name: version for name, version in versions.items() if version},
    )


def changes_since(then: Environment) -> list[str]:
    """What is another version here than it was then, such as `httpx 0.27.2 → 0.28.1`."""
    pairs = {
        "Python": (then.python, _python()),
        "uwf": (then.engine, _version(_ENGINE_PACKAGE) or ""),
        **{name: (old, _version(name)) for name, old in then.packages.items()},
    }
    return [
        f"{name} {old} → {new or 'not installed'}"
        for name, (old, new) in pairs.items()
        if old != new
    ]


def unlike_lock(bundle: Bundle) -> list[str]:
    """Where the installed version of a dependency is not that of the author's lock file."""
    requires = bundle.manifest.requires
    if requires is None:
        return []
    return [
        f"{name} {wanted} → {found or 'not installed'}"
        for name, wanted in requires.locked.items()
        if (found := _version(name)) != wanted
    ]


def _packages_of(modules: Iterable[str]) -> set[str]:
    """The names of the packages that installed modules belong to."""
    outside = {name for name in modules if name not in sys.stdlib_module_names | ENGINE}
    plain = {name for name in outside if _version(name)}
    rest = outside - plain
    # Only this looks into every package that is installed, which takes some 50 ms.
    owners: Mapping[str, list[str]] = {}
    if rest:
        from importlib.metadata import packages_distributions

        owners = packages_distributions()
    return {normalized(each) for name in rest for each in owners.get(name, ())} | {
        normalized(name) for name in plain
    }


def _version(package: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version  # 15 ms that few commands need

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _python() -> str:
    return ".".join(map(str, sys.version_info[:3]))
