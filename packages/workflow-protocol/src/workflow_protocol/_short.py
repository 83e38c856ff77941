"""What is shown of a value where a line has to do."""

from __future__ import annotations


def short(value: object, *, chars: int = 120) -> str:
    """The `repr` of a value, cut off where it is longer."""
    shown = repr(value)
    return shown if len(shown) <= chars else f"{shown[: chars - 1]}…"


def short_path(names: tuple[str, ...], *, count: int = 8) -> str:
    """The last of some names, with arrows between them."""
    shown = " → ".join(names[-count:])
    return f"… → {shown}" if len(names) > count else shown
