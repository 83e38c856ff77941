"""What an entry and its project say of themselves: PEP 723, `pyproject.toml` and lock files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from workflow_register._errors import EntryError
from workflow_register._files import read_regular
from workflow_register.bundles._archive import Requirements
from workflow_register.bundles._data import Declared

PROJECT_FILE = "pyproject.toml"
MAX_PROJECT_BYTES = 2**20
MAX_LOCK_BYTES = 32 * 2**20

_BLOCK = re.compile(
    r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(?:^#(?:| .*)$\s)+)^# ///$"
)  # as PEP 723 gives it
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
_Table = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Project:
    """What is declared for an entry."""

    folder: Path | None
    """The folder of its `pyproject.toml`, if there is one."""
    declared: tuple[Declared, ...]
    requires: Requirements | None


def read_project(entry: Path, source: bytes, folder: Path | None) -> Project:
    """Read what an entry says in its PEP 723 block, and its project in `pyproject.toml`.

    Args:
        entry: the script.
        source: its bytes.
        folder: the folder of the project, if there is one.

    Raises:
        EntryError: one of them can't be read, or `[tool.uwf]` has something else than patterns.
    """
    script = _script_table(entry, source)
    declared = [_declared(entry, script)]
    requires = _requirements(entry, script)
    lock = entry.with_name(f"{entry.name}.lock")
    if folder is not None:
        path = folder / PROJECT_FILE
        table = _toml(path, _read(path, MAX_PROJECT_BYTES).decode(errors="replace"))
        declared.append(_declared(path, table))
        if requires is None:
            requires = _requirements(path, _table_of(path, table, "project"))
            lock = folder / "uv.lock"
    if requires is not None:
        requires = _with_locked(requires, lock)
    return Project(folder, tuple(declared), requires)


def find_project(folder: Path) -> Path | None:
    """The nearest folder at or above this one with a `pyproject.toml`, within its repository."""
    home = Path("~").expanduser()
    for each in (folder, *folder.parents):
        if (each / PROJECT_FILE).is_file():
            return each
        if (each / ".git").exists() or each == home:
            return None
    return None


def _script_table(entry: Path, source: bytes) -> _Table:
    """The one block of type `script` in the comments of an entry."""
    text = source.decode("utf-8-sig", errors="replace").replace("\r\n", "\n") + "\n"
    found = [match for match in _BLOCK.finditer(text) if match["type"] == "script"]
    if len(found) > 1:
        line = text.count("\n", 0, found[1].start()) + 1
        raise EntryError(entry, "it has two `# /// script` blocks; join them", line=line)
    if not found:
        return {}
    lines = found[0]["content"].splitlines()
    above = text.count("\n", 0, found[0].start()) + 1
    return _toml(entry, "".join(line[2:] + "\n" for line in lines), lines_above=above)


def _declared(source: Path, table: _Table) -> Declared:
    own = _table_of(source, _table_of(source, table, "tool"), "uwf")
    unknown = sorted(set(own) - {"files", "exclude"})
    if unknown:
        raise EntryError(source, f"`[tool.uwf]` has no {unknown[0]!r}; use `files` and `exclude`")
    return Declared(
        source,
        source.parent,
        _patterns(source, "files", own.get("files", [])),
        _patterns(source, "exclude", own.get("exclude", [])),
    )


def _patterns(source: Path, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise EntryError(source, f'`{key}` must be a list of patterns, such as ["prompts/*.md"]')
    return tuple(_pattern(source, key, each) for each in cast("list[object]", value))


def _pattern(source: Path, key: str, pattern: object) -> str:
    names = pattern.rstrip("/").split("/") if isinstance(pattern, str) else []
    if not isinstance(pattern, str) or not all(names) or {"..", "."} & set(names):
        reason = "names a path below the folder of this file, such as 'prompts/*.md'"
    elif "\\" in pattern or "\0" in pattern:
        reason = "joins folders with '/'"
    elif len(pattern) > 500 or names.count("**") > 3:
        reason = "is at most 500 characters long and has at most three '**'"
    else:
        return "/".join(names)
    raise EntryError(source, f"{pattern!r} in `{key}` can't be used: a pattern {reason}")


def _requirements(source: Path, table: _Table) -> Requirements | None:
    python, dependencies = table.get("requires-python"), table.get("dependencies")
    if python is None and dependencies is None:
        return None
    if not isinstance(python, str | None):
        raise EntryError(source, "`requires-python` must be text, such as '>=3.11'")
    written = cast("list[object]", [] if dependencies is None else dependencies)
    if not isinstance(dependencies, list | None) or not all(isinstance(e, str) for e in written):
        raise EntryError(source, '`dependencies` must be a list of texts, such as ["httpx>=0.28"]')
    return Requirements(
        source=source.name,
        python=python or "",
        dependencies=tuple(sorted(map(str, written))),
    )


def _with_locked(requires: Requirements, lock: Path) -> Requirements:
    """Add the versions that uv's lock file has for the dependencies."""
    if not lock.is_file():
        return requires
    table = _toml(lock, _read(lock, MAX_LOCK_BYTES).decode(errors="replace"))
    packages = table.get("package")
    wanted = set(dependency_names(requires))
    locked: dict[str, str] = {}
    for each in map(_table, cast("list[object]", packages) if isinstance(packages, list) else []):
        name, version = each.get("name"), each.get("version")
        if isinstance(name, str) and isinstance(version, str) and normalized(name) in wanted:
            locked[normalized(name)] = version
    return Requirements(
        source=requires.source,
        python=requires.python,
        dependencies=requires.dependencies,
        locked=dict(sorted(locked.items())),
    )


def dependency_names(requires: Requirements) -> list[str]:
    """The names of the packages that are required, as package indexes spell them."""
    found = [_NAME.match(each) for each in requires.dependencies]
    return [normalized(match[1]) for match in found if match]


def normalized(name: str) -> str:
    """The one spelling of a package's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _table(value: object) -> _Table:
    return cast("_Table", value) if isinstance(value, dict) else {}


def _table_of(source: Path, table: _Table, key: str) -> _Table:
    """The table below a key; an empty one if it isn't there."""
    value = table.get(key, {})
    if not isinstance(value, dict):
        raise EntryError(source, f"`{key}` must be a table")
    return cast("_Table", value)


def _toml(path: Path, text: str, *, lines_above: int = 0) -> _Table:
    import tomllib

    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        said = re.search(r"line (\d+)", str(error))
        line = int(said[1]) + lines_above if said else None
        words = str(error).partition(" (at ")[0] or type(error).__name__
        raise EntryError(path, f"its TOML can't be read: {words}", line=line) from error


def _read(path: Path, max_bytes: int) -> bytes:
    try:
        data = read_regular(path, max_bytes + 1)
    except OSError as error:
        raise EntryError(path, f"it can't be read: {error.strerror or error}") from error
    if len(data) > max_bytes:
        raise EntryError(path, f"it has more than {max_bytes:,} bytes")
    return data
