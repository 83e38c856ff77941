"""What takes the versions of workspaces: one object a folder, for all threads that work in it."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from workflow_cas import Store
from workflow_workspace import FolderVersions, Versioned


class FolderVersionsByPath:
    """The folders that the threads of an engine work in, by their paths.

    Args:
        store: gets the contents.
        options: what is kept of a folder.
        caches: a folder for what is known of each workspace's files, so that unchanged ones aren't
            read again by the next process; `None` to know it in memory only.
        secrets: gives the values of which no file may hold one.
        own: files and folders of the engine's own, left out where they lie in a workspace: a
            version that had its own store in it would never be the last.
    """

    def __init__(
        self,
        store: Store,
        options: Versioned,
        caches: Path | None,
        secrets: Callable[[], Sequence[bytes]],
        own: Sequence[Path] = (),
    ) -> None:
        self._store = store
        self._options = options
        self._caches = caches
        self._secrets = secrets
        self._own = own
        self._known: dict[Path, FolderVersions] = {}

    def of(self, folder: Path) -> FolderVersions:
        """What takes the versions of a folder."""
        found = self._known.get(folder)
        if found is None:
            cache = None
            if self._caches is not None:
                name = hashlib.sha256(bytes(folder)).hexdigest()[:24]
                cache = self._caches / name
            options = msgspec.structs.replace(
                self._options, exclude=(*self._options.exclude, *self._own_in(folder))
            )
            found = self._known[folder] = FolderVersions(
                self._store, folder, options, cache=cache, secrets=self._secrets()
            )
        return found

    def _own_in(self, folder: Path) -> list[str]:
        """The engine's own files in a workspace, as patterns."""
        top = os.path.realpath(folder)
        inside = [os.path.relpath(os.path.realpath(each), top) for each in self._own]
        return [
            "/" + re.sub(r"([\\*?\[\]!# ])", r"\\\1", each)
            for each in inside
            if each != "." and each.split("/")[0] != ".."
        ]
