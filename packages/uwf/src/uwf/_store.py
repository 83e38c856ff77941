"""Opens the store of a home folder."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from workflow_cas import Store, open_store
from workflow_register import store_path


def open_existing(home: Path) -> AbstractAsyncContextManager[Store]:
    """Open the store to look at it, also where nothing can be written."""
    return open_store(store_path(home), read_only=not os.access(home, os.W_OK))
