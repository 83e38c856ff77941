"""Where things are kept: one folder for a person's configuration, store and bundles."""

from __future__ import annotations

import os
from pathlib import Path

from workflow_register._errors import RegisterError

HOME_VARIABLE = "UWF_HOME"


def find_home() -> Path:
    """Return the folder that holds everything: `$UWF_HOME`, else `~/.uwf`. It need not exist.

    It is looked up at each call, so a test or a child process may set the variable.
    """
    chosen = os.environ.get(HOME_VARIABLE)
    try:
        return Path(chosen).expanduser().absolute() if chosen else Path.home() / ".uwf"
    except RuntimeError as error:  # no such user, or no home folder
        raise RegisterError(f"{str(error).rstrip('.')}; set {HOME_VARIABLE} to a folder") from error


def config_path(home: Path) -> Path:
    """Where the configuration is written."""
    return home / "workflow.yaml"


def store_path(home: Path) -> Path:
    """Where the store of objects and refs is."""
    return home / "store.sqlite3"


def bundles_path(home: Path) -> Path:
    """The folder of the bundles that were built."""
    return home / "bundles"


def unpacked_path(home: Path) -> Path:
    """The folder of the bundles that had to be unpacked to run."""
    return home / "unpacked"
