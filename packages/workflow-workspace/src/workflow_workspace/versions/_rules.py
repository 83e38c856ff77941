"""The `.gitignore` files from a folder that is scanned down to one in it, read when first asked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

from workflow_workspace._gitignore import Effort, Rules
from workflow_workspace.versions._known import KnownItem

_MAX_BYTES = 256 * 1024
MAX_STEPS = 32_000_000
"""What all rules of a scan may take: a tenth of that is more than usual ones ask for."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
GITIGNORE = ".gitignore"


class TooManyRules(Exception):
    """The rules take too long to say what is ignored."""


class FolderRules:
    """What holds in one folder. Asked only while the folder's descriptor is open.

    Args:
        above: of the folder that this one is in.
        path: of the folder, with a slash at its end; empty for the first.
        folder_fd: the folder, open.
        file: what is known of the folder's own `.gitignore`, if it has one.
    """

    def __init__(
        self, above: FolderRules | None, path: str, folder_fd: int, file: KnownItem | None
    ) -> None:
        self._effort: Effort = above._effort if above is not None else Effort(steps=MAX_STEPS)
        self._above: Sequence[tuple[int, Rules]] | FolderRules = () if above is None else above
        self._prefix_bytes = len(os.fsencode(path))
        self._folder_fd = folder_fd
        self._has_file = file is not None
        self._levels: Sequence[tuple[int, Rules]] | None = None
        self.fingerprint = b"" if above is None else above.fingerprint
        if file is not None:
            own = repr(file.key).encode() if file.clean else os.urandom(16)
            parts = self.fingerprint + os.fsencode(path) + b"\0" + own
            self.fingerprint = hashlib.blake2b(parts, digest_size=16).digest()

    def ignore(self, path: str, *, folder: bool) -> bool:
        """Whether git would ignore this path, whose parents aren't ignored."""
        levels = self._read()
        if not levels:
            return False
        if self._effort.is_spent:
            raise TooManyRules
        whole = os.fsencode(path)
        for start, rules in levels:
            said = rules.decide(whole[start:], folder=folder, effort=self._effort)
            if said is not None:
                return said
        return False

    def _read(self) -> Sequence[tuple[int, Rules]]:
        if self._levels is None:
            above = self._above._read() if isinstance(self._above, FolderRules) else self._above
            data = self._file() if self._has_file else b""
            own = [(self._prefix_bytes, Rules.of(data, self._effort))] if data else []
            self._levels = [*own, *above]
        return self._levels

    def _file(self) -> bytes:
        try:
            fd = os.open(GITIGNORE, _READ, dir_fd=self._folder_fd)
        except OSError:
            return b""
        with open(fd, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
        return data if len(data) <= _MAX_BYTES else data[: data.rfind(b"\n") + 1]
