"""What `importlib.resources` reads of a bundle."""

from __future__ import annotations

from importlib.resources.abc import TraversableResources
from pathlib import Path


class FolderResources(TraversableResources):
    """The files of one package: those in its folder, where the bundle is unpacked."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def files(self) -> Path:
        """The folder."""
        return self._folder
