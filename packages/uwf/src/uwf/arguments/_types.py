"""What one argument may be, with an error that says what would do."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
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


def amount(text: str) -> float:
    """An amount of money, which may be 0."""
    return _number(text, "the currency of the prices, 0 or more", zero=True)


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


_UNITS_S = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def since(text: str) -> int:
    """A time in the past, in Unix milliseconds: how long ago it was, or when by the local clock."""
    import re
    import time
    from datetime import datetime

    ago = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([a-z]+)", text.strip(), re.ASCII)
    try:
        if ago is not None:
            at_s = time.time() - float(ago[1]) * _UNITS_S[ago[2]]
        else:
            at_s = datetime.fromisoformat(text.strip()).timestamp()
    except (KeyError, ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time; give a duration such as 30min, 2h or 3d, or a date such as "
            "2026-11-30 or 2026-11-30T18:00"
        ) from None
    return max(0, int(at_s * 1000))


LIMITS = {
    "steps": count,
    "rounds": count,
    "tokens": count,
    "cost": amount,
    "seconds": seconds,
    "depth": count,
}
"""The limits of a run by their short names, and what each may be. `none` lifts one."""


def limit(text: str) -> tuple[str, float | None]:
    """A limit as `NAME=VALUE`, by its name in `workflow.yaml` and its value."""
    name, _, value = text.partition("=")
    short = name.strip().removeprefix("max_")
    if short not in LIMITS:
        guess = guess_word(short, LIMITS) or f"; choose one of {', '.join(LIMITS)}"
        raise argparse.ArgumentTypeError(f"there is no limit {name!r}{guess}")
    if value == "none" and short != "depth":
        return f"max_{short}", None
    try:
        return f"max_{short}", LIMITS[short](value)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{name}: {error}") from None


def model_choice(text: str) -> tuple[str, str]:
    """A model as `[SCENE=]PROVIDER/MODEL`: the scene, empty for all of them, and the model."""
    scene, equals, model = text.partition("=")
    if not equals or "/" in scene:  # a model's name may have the sign
        scene, model = "", text
    provider, slash, name = model.partition("/")
    if not (provider and slash and name) or (equals and not scene and model != text):
        raise argparse.ArgumentTypeError(
            f"{text!r} does not name a model; write PROVIDER/MODEL or SCENE=PROVIDER/MODEL"
        )
    return scene, model


def guess_word(word: str, known: Iterable[str]) -> str:
    """Say what was probably meant, as the end of a sentence; nothing if that can't be told."""
    import difflib

    near = difflib.get_close_matches(word.lower(), sorted(known), n=2)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def _number(text: str, of: str, *, zero: bool = False) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e9 or (number == 0 and not zero):  # NaN is refused too
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of {of}")
    return number
