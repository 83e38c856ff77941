"""What one argument may be, with an error that says what would do."""

from __future__ import annotations

import argparse
from pathlib import Path


def port(text: str) -> int:
    """A TCP port, where 0 is any free one."""
    if not text.isdecimal() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; give a number from 0 to 65535")
    return int(text)


def folder(text: str) -> Path:
    """A path that is not empty."""
    if not text:
        raise argparse.ArgumentTypeError("the path is empty; name a folder")
    return Path(text)


def seconds(text: str) -> float:
    """A time above 0."""
    return _number(text, "seconds above 0")


def hours(text: str) -> float:
    """A time that may be 0."""
    return _number(text, "hours, 0 or more", zero=True)


def count(text: str) -> int:
    """A whole number of 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of 1 or more")
    return int(text)


def numbers(text: str) -> range:
    """A whole number of 1 or more, or two of them with `-` between: from the one to the other."""
    first, dash, last = text.partition("-")
    if not dash:
        return range(count(first), count(first) + 1)
    if count(last) < count(first):
        raise argparse.ArgumentTypeError(f"{text!r} ends before it begins; give N-M")
    return range(count(first), count(last) + 1)


def _number(text: str, of: str, *, zero: bool = False) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9 or (number == 0 and not zero):  # NaN is refused too
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of {of}")
    return number
