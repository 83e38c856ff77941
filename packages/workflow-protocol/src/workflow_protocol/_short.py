"""What is shown of a value where a line has to do."""

from __future__ import annotations


def short(value: object, *, chars: int = 120) -> str:
    """The `repr` of a value, cut off where it is longer."""
    return cut(repr(value), chars=chars)


def cut(text: str, *, chars: int = 120) -> str:
    """A text, cut off where it is longer."""
    return text if len(text) <= chars else f"{text[: chars - 1]}…"


def short_path(names: tuple[str, ...], *, count: int = 8) -> str:
    """The last of some names, with arrows between them."""
    shown = " → ".join(names[-count:])
    return f"… → {shown}" if len(names) > count else shown
