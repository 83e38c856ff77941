"""What something costs, in figures that a busy machine disturbs little or not at all."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(work: Callable[[], object]) -> int:
    """How many lines of Python some work takes, with those of all functions called."""
    count = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def cpu_s(work: Callable[[], object]) -> float:
    """Seconds of this process's CPU time."""
    started = time.process_time()
    work()
    return time.process_time() - started
