"""The data files of a bundle: those that are declared, and those inside local packages."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from workflow_register._errors import EntryError
from workflow_register.bundles._names import PACKAGE_FILE
from workflow_register.bundles._never import never_packed

MAX_VISITED = 50_000
"""How many names a pattern may look at; more means that it looks in the wrong folder."""
_WILD = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Declared:
    """One `[tool.uwf]` table: patterns of files, and the folder that they are relative to."""

    source: Path
    """The file that has the table, for errors."""
    folder: Path
    files: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def excludes(self, path: Path) -> bool:
        """Whether a file is excluded by name, by a pattern, or with a folder that it is in."""
        try:
            names = path.relative_to(self.folder).parts
        except ValueError:
            return False
        return any(_covers(tuple(pattern.split("/")), names) for pattern in self.exclude)

    def find(self) -> Iterator[Path]:
        """The declared files.

        Raises:
            EntryError: a pattern names nothing, or only what is never packed.
        """
        for pattern in self.files:
            found = [each for each in self._matching(pattern) if not self.excludes(each)]
            if not found:
                raise EntryError(
                    self.source,
                    f"the pattern {pattern!r} in `files` names no file in {str(self.folder)!r}"
                    f"{self._kept_out(pattern)}; correct it",
                )
            yield from found

    def _matching(self, pattern: str) -> Iterator[Path]:
        """The files of a pattern; a folder stands for all in it."""
        if not _WILD.search(pattern):
            path = self.folder / pattern
            if reason := _reason_for_any(self.folder, path):
                raise EntryError(
                    self.source, f"{pattern!r} is never packed: {reason}; remove it from `files`"
                )
        walk = _Walk(self.source)
        yield from walk.matching(self.folder, tuple(pattern.split("/")))

    def _kept_out(self, pattern: str) -> str:
        path = self.folder / pattern
        if not _WILD.search(pattern) and path.is_dir():
            return " (folders that are empty, and files that may hold keys, are not packed)"
        return " (names with keys, caches and hidden files are not matched)"


def files_of_package(source: Path, package: Path) -> Iterator[Path]:
    """The data files in a package's folder and its plain subfolders, without its Python files.

    A subfolder that is a package itself brings its own files when it is imported.
    """
    for path in _Walk(source).below(package):
        if path.suffix not in {".py", ".pyi"} and path.name != "py.typed":
            yield path


class _Walk:
    """Looks through folders in order, past nothing that is never packed, and not without end."""

    def __init__(self, source: Path) -> None:
        self._source = source
        self._visited = 0

    def matching(self, folder: Path, names: tuple[str, ...]) -> Iterator[Path]:
        """The files that a pattern names, once each."""
        yield from dict.fromkeys(self._matching(folder, names))

    def _matching(self, folder: Path, names: tuple[str, ...]) -> Iterator[Path]:
        if not names:
            yield from self.below(folder, also_packages=True)
            return
        first, *rest = names
        if first == "**":
            yield from (
                self._matching(folder, tuple(rest))
                if rest
                else self.below(folder, also_packages=True)
            )
        for path, is_folder in self._entries(folder):
            if first == "**":
                if is_folder:
                    yield from self._matching(path, names)
            elif _matches(first, path.name):
                if is_folder:
                    yield from self._matching(path, tuple(rest))
                elif not rest:
                    yield path

    def below(self, folder: Path, *, also_packages: bool = False) -> Iterator[Path]:
        """All files in a folder and its subfolders."""
        for path, is_folder in self._entries(folder):
            if not is_folder:
                yield path
            elif also_packages or not (path / PACKAGE_FILE).is_file():
                yield from self.below(path, also_packages=also_packages)

    def _entries(self, folder: Path) -> Iterator[tuple[Path, bool]]:
        """What is in a folder and may be packed, and whether it is a folder. Linked folders are
        not entered, for they may lead anywhere or around."""
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            reason = f"the folder {str(folder)!r} can't be read: {error.strerror or error}"
            raise EntryError(self._source, reason) from error
        self._visited += len(entries)
        if self._visited > MAX_VISITED:
            raise EntryError(
                self._source,
                f"{str(folder)!r} and its neighbours have more than {MAX_VISITED:,} files; "
                "name a smaller folder in `files`, or put large ones in `exclude`",
            )
        for entry in entries:
            path, is_folder = Path(entry.path), entry.is_dir(follow_symlinks=False)
            if entry.is_symlink() and entry.is_dir():
                continue
            if not never_packed(path, is_folder=is_folder):
                yield path, is_folder


def _reason_for_any(folder: Path, path: Path) -> str | None:
    """Why a path is never packed, for its own name or that of a folder on the way."""
    below = [path, *path.parents][: len(path.relative_to(folder).parts)]
    return next(
        (reason for each in below if (reason := never_packed(each, is_folder=each.is_dir()))), None
    )


@lru_cache(1_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def _matches(pattern: str, name: str) -> bool:
    """Whether one name fits; a wild card at the front finds no hidden file, as in a shell."""
    hidden = name.startswith(".") and not pattern.startswith(".")
    return not hidden and _compiled(pattern).match(name) is not None


def _covers(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a pattern names a path or a folder on the way to it."""
    if not pattern:
        return True
    first, *rest = pattern
    if first == "**":
        return any(_covers(rest, names[start:]) for start in range(len(names)))
    return bool(names) and _compiled(first).match(names[0]) is not None and _covers(rest, names[1:])
