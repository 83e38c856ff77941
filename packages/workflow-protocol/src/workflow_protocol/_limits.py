"""Limits that a workflow says itself, beside those of the engine that runs it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TypedDict, cast

from workflow_protocol._errors import Fault
from workflow_protocol._short import cut, short


class OwnLimits(TypedDict, total=False):
    """What one thread of a workflow may take, with its children. Of each limit and the engine's,
    the tighter one holds; what isn't said here is the engine's."""

    max_steps: int
    """Steps of the thread, its children's not counted."""
    max_rounds: int
    """Model calls in one turn of a role."""
    max_tokens: int
    """Input and output tokens together."""
    max_cost: float
    """In the currency of the price table."""
    max_seconds: float
    """Time that the thread has been run for, all its runs together."""
    max_depth: int
    """How many levels of child threads there may be below the topmost thread."""


NO_LIMITS = OwnLimits()

_WHOLE = {"max_steps", "max_rounds", "max_tokens", "max_depth"}


def limit_faults(limits: object) -> Iterator[Fault]:
    """All that is wrong with limits."""
    if not isinstance(limits, Mapping):
        kind = type(limits).__name__
        yield Fault("limits", f"it is of type {kind}; use a dict such as {{'max_steps': 20}}")
        return
    known = ", ".join(OwnLimits.__annotations__)
    for name, value in cast("Mapping[object, object]", limits).items():
        if name not in OwnLimits.__annotations__:
            yield Fault("limits", f"there is no limit {cut(repr(name))}; there are {known}")
        elif not _is_amount(value, whole=name in _WHOLE):
            kind = "a whole number" if name in _WHOLE else "a number"
            yield Fault(f"limits[{short(str(name))}]", f"it is {cut(repr(value))}; use {kind} > 0")


def _is_amount(value: object, *, whole: bool) -> bool:
    if isinstance(value, bool):
        return False
    if whole:
        return isinstance(value, int) and value > 0
    return isinstance(value, int | float) and math.isfinite(value) and value > 0
