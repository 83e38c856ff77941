"""Reading a folder as a version: what has changed is read, the rest is as it is known.

Folders are opened relative to each other and never through a link, so that no race leads out.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Container, Iterable, Mapping
from typing import TypeAlias

import msgspec

from workflow_cas import Stored
from workflow_protocol import Hash
from workflow_workspace.versions._known import (
    KnownFiles,
    KnownFolder,
    KnownItem,
    is_clean,
    stat_key,
)
from workflow_workspace.versions._options import Choice, secret_by_name
from workflow_workspace.versions._read_file import left_out, read_file, read_link
from workflow_workspace.versions._records import VersionEntry, tree_node
from workflow_workspace.versions._rules import GITIGNORE, FolderRules

MAX_DEPTH = 128
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOTHING: Mapping[str, KnownItem] = {}

Wanted: TypeAlias = "dict[str, Wanted | None]"
"""The names to look at: by folder, and `None` for all that is there."""


class LookAtAll(Exception):
    """The paths that were named don't say what has changed."""


class Scan:
    """One reading of a folder.

    Args:
        known: what is known of it; used for what hasn't changed.
        choice: what is kept.
        was_kept: whether a path that `.gitignore` names is kept, as it was before it was named.
        stored: what `put` needn't have.
        put: gets each new object, what it refers to before.
        enough: is called with the number of files and bytes so far, and may raise.
        measure: only count: nothing is read, and nothing put.
    """

    def __init__(
        self,
        known: KnownFiles,
        choice: Choice,
        *,
        was_kept: Callable[[str], bool],
        stored: Container[Hash],
        put: Callable[[Stored], None],
        enough: Callable[[int, int], None],
        measure: bool = False,
    ) -> None:
        self.folders: dict[str, KnownFolder] = {}
        self.files = 0
        self.bytes = 0
        self.read = 0
        """How many files had to be read."""
        self._known = known
        self._choice = choice
        self._was_kept = was_kept
        self._stored = stored
        self._put_object = put
        self._put_now: set[Hash] = set()
        self._enough = enough
        self._measure = measure

    def root(self, fd: int, wanted: Wanted | None) -> Hash:
        """Read the folder and give its tree.

        Raises:
            LookAtAll: `wanted` isn't enough.
        """
        return self._folder(fd, "", None, wanted, ignored=False, depth=0)

    def _folder(
        self,
        fd: int,
        path: str,
        above: FolderRules | None,
        wanted: Wanted | None,
        *,
        ignored: bool,
        depth: int,
    ) -> Hash:
        known = self._known.folders.get(path)
        before = known.items if known is not None else _NOTHING
        prefix = f"{path}/" if path else ""
        items: dict[str, KnownItem] = {}
        if wanted is None:
            states = _states(fd)
        else:
            states = _some_states(fd, wanted, before)
            items.update(before)
            for name in wanted:
                items.pop(name, None)
        gitignore = self._gitignore(fd, states.get(GITIGNORE), before.get(GITIGNORE), wanted)
        rules = FolderRules(above, prefix, fd, gitignore)
        same_rules = known is not None and known.rules == rules.fingerprint
        if wanted is not None and not same_rules:
            raise LookAtAll
        name_of_folder = path.rpartition("/")[2]
        for name, state in states.items():
            old = before.get(name)
            whole = prefix + name
            is_folder = stat.S_ISDIR(state.st_mode)
            if ignored:
                is_ignored = True
            elif (
                old is not None
                and same_rules
                and stat.S_IFMT(old.key[0]) == stat.S_IFMT(state.st_mode)
            ):
                is_ignored = old.ignored
            else:
                is_ignored = rules.ignore(whole, folder=is_folder)
            if is_ignored and not self._keeps_ignored(whole, is_folder):
                if not self._choice.holds_secret(os.fsencode(name)):
                    items[name] = KnownItem(stat_key(state), None, True)
                continue
            if is_folder:
                inner = None if wanted is None else wanted[name]
                item = self._subfolder(
                    fd, name, whole, state, name_of_folder, rules, inner, is_ignored, depth
                )
            elif (
                old is not None
                and old.clean
                and old.entry is not None
                and old.key == stat_key(state)
            ):
                same = old.ignored == is_ignored
                item = old if same else KnownItem(old.key, old.entry, is_ignored, old.clean)
            elif wanted is not None and wanted[name] is not None and stat.S_ISLNK(state.st_mode):
                raise LookAtAll  # the path leads through a link
            else:
                item = self._read(fd, name, whole, state, name_of_folder)
                if item is not None:
                    item.ignored = is_ignored
            if item is not None:
                items[name] = old if old is not None and old == item else item
        return self._finish(path, known, items, rules)

    def _finish(
        self,
        path: str,
        known: KnownFolder | None,
        items: dict[str, KnownItem],
        rules: FolderRules,
    ) -> Hash:
        if known is not None and known.tree in self._stored and _unchanged(items, known.items):
            self.files += known.files
            self.bytes += known.size
            self._enough(self.files, self.bytes)
            self.folders[path] = msgspec.structs.replace(known, rules=rules.fingerprint)
            return known.tree
        entries = {name: item.entry for name, item in items.items() if item.entry is not None}
        sizes = [each.size for each in entries.values() if each.kind in {"file", "link"}]
        self.files += len(sizes)
        self.bytes += sum(sizes)
        self._enough(self.files, self.bytes)
        if self._measure:
            tree = Hash("")
        elif known is not None and known.tree in self._stored and _same(entries, known):
            tree = known.tree
        else:
            made = tree_node(entries)
            tree = self._put(made)
        self.folders[path] = KnownFolder(rules.fingerprint, items, tree, len(sizes), sum(sizes))
        return tree

    def _subfolder(
        self,
        fd: int,
        name: str,
        path: str,
        state: os.stat_result,
        in_folder: str,
        rules: FolderRules,
        wanted: Wanted | None,
        ignored: bool,
        depth: int,
    ) -> KnownItem | None:
        if self._choice.excludes(path, folder=True):
            return KnownItem(stat_key(state), None)
        hidden = secret_by_name(in_folder, name, is_folder=True)
        if hidden and not self._choice.includes(path, folder=True):
            return left_out(state, "secret name")
        if self._choice.holds_secret(os.fsencode(name)):
            return None
        if depth >= MAX_DEPTH:
            return left_out(state, "too deep")
        try:
            inner = os.open(name, _FOLDER, dir_fd=fd)
        except PermissionError:
            return left_out(state, "unreadable")
        except OSError:
            return None  # it is gone, or something else by now
        try:
            if wanted is not None and path not in self._known.folders:
                wanted = None
            names_only = ignored and not self._choice.includes(path, folder=True)
            tree = self._folder(inner, path, rules, wanted, ignored=names_only, depth=depth + 1)
        except OSError:
            for below in [each for each in self.folders if each.startswith(f"{path}/")]:
                del self.folders[below]
            return left_out(state, "unreadable")
        finally:
            os.close(inner)
        if names_only and not self._was_kept(path) and not self._holds_any(path):
            return KnownItem(stat_key(state), None, ignored)
        entry = VersionEntry(kind="folder", mode=state.st_mode & 0o777, parts=(tree,))
        return KnownItem(stat_key(state), entry, ignored)

    def _read(
        self, fd: int, name: str, path: str, state: os.stat_result, in_folder: str
    ) -> KnownItem | None:
        if self._choice.excludes(path, folder=False):
            return KnownItem(stat_key(state), None)
        if self._choice.holds_secret(os.fsencode(name)):
            return None
        wanted = self._choice.includes(path, folder=False)
        if not wanted and secret_by_name(in_folder, name, is_folder=False):
            return left_out(state, "secret name")
        if stat.S_ISLNK(state.st_mode):
            link = read_link(fd, name, state)
            if link == "gone":
                return None
            target = link.entry.target if link.entry else ""
            if self._choice.holds_secret(os.fsencode(target)):
                return left_out(state, "configured key")
            return link
        if not stat.S_ISREG(state.st_mode):
            return left_out(state, "not a file")
        if self._measure:
            size = 0 if state.st_size > self._choice.options.max_file_bytes else state.st_size
            return KnownItem(stat_key(state), VersionEntry(kind="file", size=size))
        self.read += 1
        item = read_file(fd, name, state, self._choice, self._put, wanted=wanted)
        return None if item == "gone" else item

    def _gitignore(
        self,
        fd: int,
        state: os.stat_result | None,
        old: KnownItem | None,
        wanted: Wanted | None,
    ) -> KnownItem | None:
        """The folder's `.gitignore` as it is now, if it is a file."""
        if wanted is not None and GITIGNORE in wanted:
            raise LookAtAll
        if wanted is not None:
            return old if old is not None and stat.S_ISREG(old.key[0]) else None
        if state is None or not stat.S_ISREG(state.st_mode):
            return None
        key = stat_key(state)
        if old is not None and old.key == key and old.clean:
            return old
        return KnownItem(key, None, clean=is_clean(key, time.time_ns()))

    def _keeps_ignored(self, path: str, is_folder: bool) -> bool:
        if self._was_kept(path) or self._choice.includes(path, folder=is_folder):
            return True
        return is_folder and bool(self._choice.options.include)  # something in it may be wanted

    def _holds_any(self, path: str) -> bool:
        return any(item.entry is not None for item in self.folders[path].items.values())

    def _put(self, made: Stored) -> Hash:
        if made.hash not in self._stored and made.hash not in self._put_now:
            self._put_now.add(made.hash)
            self._put_object(made)
        return made.hash


def _states(fd: int) -> dict[str, os.stat_result]:
    """What is in a folder, without `.git`: neither the repository's nor a submodule's."""
    found: dict[str, os.stat_result] = {}
    with os.scandir(fd) as listed:
        for each in listed:
            name = each.name
            if name != ".git":
                try:
                    found[name] = each.stat(follow_symlinks=False)
                except OSError:
                    continue  # it is gone
    return found


def _some_states(
    fd: int, names: Iterable[str], before: Mapping[str, KnownItem]
) -> dict[str, os.stat_result]:
    found: dict[str, os.stat_result] = {}
    for name in names:
        if name == ".git":
            continue
        try:
            found[name] = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            continue
        except (OSError, ValueError):  # a name that no file can have
            raise LookAtAll from None
        if name not in before and name not in os.listdir(fd):
            raise LookAtAll  # the file system takes it for another name
    return found


def _unchanged(items: Mapping[str, KnownItem], before: Mapping[str, KnownItem]) -> bool:
    """Whether all are the very objects that were known: most folders have nothing new."""
    if len(items) != len(before):
        return False
    return all(before.get(name) is item for name, item in items.items())


def _same(entries: Mapping[str, VersionEntry], known: KnownFolder) -> bool:
    before = {name: item.entry for name, item in known.items.items() if item.entry is not None}
    return entries == before
