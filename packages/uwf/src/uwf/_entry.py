"""Where `uwf` begins: an interrupt is one clear line from the first moment on."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    try:
        from uwf._main import run_command

        return run_command(argv)
    except KeyboardInterrupt:
        print("uwf: cancelled", file=sys.stderr, flush=True)
        return 130
