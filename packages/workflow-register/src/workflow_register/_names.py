"""What a workflow may be called."""

from __future__ import annotations

import re

from workflow_register._errors import NameRejected

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def check_name(name: str) -> str:
    """Return a name that a workflow may have.

    Raises:
        NameRejected: it isn't lower-case words joined by '-'.
    """
    if len(name) > 100 or not NAME.fullmatch(name):
        raise NameRejected(name)
    return name
