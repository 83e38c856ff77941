"""What holds for JSON values everywhere: how deep they may be."""

from __future__ import annotations

from typing import cast

MAX_DEPTH = 200
"""So often may objects and arrays that a model writes stand inside each other."""


def is_deep(value: object, max_depth: int = MAX_DEPTH) -> bool:
    """Whether objects and arrays stand inside each other more than `max_depth` times."""
    level: list[object] = [value]
    for _ in range(max_depth + 1):
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner += cast("dict[str, object]", each).values()
            elif isinstance(each, list):
                inner += cast("list[object]", each)
        if not inner:
            return False
        level = inner
    return True
